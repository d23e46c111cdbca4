"""Finish or undo what a crashed process was doing with the files of a partition.

Deletions are finished. Half-written output of a compaction or a split is removed. Finished output replaces its input;
the input is removed first. Every step can be interrupted and repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from octavo.errors import BadDirectory
from octavo.log.names import CLEANED, DELETED, LOG, SWAP, base_offset_of
from octavo.log.recovery_report import RecoveryReport
from octavo.log.segment.batch_walk import walk
from octavo.log.storage import Storage
from octavo.records.layout import MAX_INT64


def finish_what_was_under_way(storage: Storage, folder: Path, report: RecoveryReport) -> list[str]:
    """Finish or undo interrupted work, and add it to the report. Returns the names of the remaining files in order."""
    return _Leftovers(storage, folder, report).finish()


def base_offset_in(folder: Path, name: str) -> int:
    """Return the offset that a segment's file is named after. Raises `BadDirectory` for other names."""
    base_offset = base_offset_of(name)
    if base_offset is None:
        raise BadDirectory(folder / name, "no segment has a file of this name: move it out of the log's folder")
    return base_offset


def unfinished_swaps(folder: Path, names: Iterable[str]) -> set[str]:
    """Return the `.swap` files whose output is not finished: all at or above the lowest offset of a `.cleaned` file.

    Raises `BadDirectory` for a `.swap` or `.cleaned` file that is not named after an offset.
    """
    bases = {name: base_offset_in(folder, name) for name in names if name.endswith((SWAP, CLEANED))}
    first_cleaned = min((base for name, base in bases.items() if name.endswith(CLEANED)), default=MAX_INT64)
    return {name for name, base in bases.items() if name.endswith(SWAP) and base >= first_cleaned}


def replaced_files(names: Iterable[str], outputs: Mapping[int, int]) -> list[str]:
    """Return the files that finished output replaces. `outputs` maps base offsets of the output to end offsets."""
    first, behind = min(outputs, default=MAX_INT64), max(outputs.values(), default=-1)
    bases = ((name, base_offset_of(name)) for name in names if not name.endswith(SWAP))
    return [name for name, base in bases if base is not None and first <= base < behind]


class _Leftovers:
    def __init__(self, storage: Storage, folder: Path, report: RecoveryReport) -> None:
        self._storage = storage
        self._folder = folder
        self._report = report

    def finish(self) -> list[str]:
        return self._finish_swaps(self._remove(self._names()))

    def _names(self) -> list[str]:
        return sorted(entry.name for entry in self._folder.iterdir() if entry.is_file())

    def _remove(self, names: Sequence[str]) -> list[str]:
        """Remove deleted files, and unfinished output of a compaction or split. Returns the names that stay.

        Only the `.cleaned` files tell which `.swap` files are unfinished. So the `.swap` files are removed first, and
        their removal is synced to disk before any `.cleaned` file is removed.
        """
        unfinished = unfinished_swaps(self._folder, names)
        for name in sorted(unfinished):
            self._remove_file(name)
        if unfinished:
            self._storage.sync_folder(self._folder)
        stay = []
        for name in names:
            if name.endswith((DELETED, CLEANED)):
                self._remove_file(name)
            elif name not in unfinished:
                stay.append(name)
        return stay

    def _finish_swaps(self, names: Sequence[str]) -> list[str]:
        """Replace segments by the finished output of a compaction or split. Returns the names of the files after it."""
        swaps = [name for name in names if name.endswith(SWAP)]
        if not swaps:
            return list(names)
        outputs = {}
        for name in swaps:
            if name.endswith(LOG + SWAP):
                base_offset = end_offset = base_offset_in(self._folder, name)
                file = self._storage.open(self._folder / name)
                for entry in walk(file, 0, file.size()):
                    end_offset = entry.last_offset + 1
                outputs[base_offset] = end_offset
        for name in replaced_files(names, outputs):
            self._remove_file(name)
        self._storage.sync_folder(self._folder)
        # Data files first, synced to disk: as long as a `.log.swap` exists, other files in its range count as replaced.
        for is_data in (True, False):
            for name in swaps:
                if name.endswith(LOG + SWAP) is is_data:
                    self._storage.rename(self._folder / name, self._folder / name.removesuffix(SWAP))
                    self._report.renamed.append(name.removesuffix(SWAP))
            self._storage.sync_folder(self._folder)
        return self._names()

    def _remove_file(self, name: str) -> None:
        self._storage.remove(self._folder / name)
        self._report.removed.append(name)
