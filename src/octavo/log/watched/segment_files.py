"""Find the segment files of a partition that another process writes, as recovery would choose them.

When a compaction replaces segments by its output, it removes the segments first. For a moment, offsets exist only in a
`.log.swap` file; if the process crashes then, or the folder is copied, they stay there. Such a file is read in place of
the segments that it replaces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

from octavo.errors import CorruptFile, NoSegments
from octavo.log.names import CLEANED, LOG, SWAP, base_offset_of, file_name
from octavo.log.recovery.leftovers import replaced_files, unfinished_swaps
from octavo.log.segment.segment import Segment
from octavo.log.storage import File, FileStatus, Storage

T = TypeVar("T")


class SegmentFiles(NamedTuple):
    """The files of the segments by base offset, in order."""

    files: Mapping[int, FileStatus]
    swaps: frozenset[int]  # base offsets of the files that are named `.log.swap`
    storage: Storage  # opens the files and their indexes under their current names

    def name(self, base_offset: int) -> str:
        """Return the current name of a segment's file."""
        return file_name(base_offset, LOG) + (SWAP if base_offset in self.swaps else "")


def find_segments(storage: Storage, folder: Path) -> SegmentFiles:
    """Find the segments. Raises `BadDirectory` if there are none, `FileNotFoundError` if files vanish meanwhile.

    The sizes are read after all names, so the size of a segment with a successor is final.
    """
    found = storage.files(folder, (LOG, SWAP, CLEANED))
    names = [name for name in found if base_offset_of(name) is not None]
    swaps = [name for name in names if name.endswith(SWAP)]
    outputs: dict[int, FileStatus] = {}
    if swaps:
        unfinished = unfinished_swaps(folder, names)
        swaps = [name for name in swaps if name not in unfinished]
        storage = _Swapping(storage, frozenset(name.removesuffix(SWAP) for name in swaps))
        outputs = {base: found[name] for base, name in _by_base(swaps, LOG + SWAP).items()}
        ends = {base: _end_offset(storage, folder, base, status.size) for base, status in outputs.items()}
        replaced = frozenset(replaced_files(names, ends))
        names = [name for name in names if name not in replaced]
    files = {base: found[name] for base, name in _by_base(names, LOG).items()} | outputs
    if not files:
        raise NoSegments(folder)
    return SegmentFiles(dict(sorted(files.items())), frozenset(outputs), storage)


def _by_base(names: list[str], suffix: str) -> dict[int, str]:
    return {base: name for name in names if name.endswith(suffix) and (base := base_offset_of(name)) is not None}


def _end_offset(storage: Storage, folder: Path, base_offset: int, size: int) -> int:
    """Return the end offset of a segment; its base offset if it is damaged, so that it replaces no other segment."""
    try:
        return Segment(storage, folder, base_offset, size=size, created_ms=0).end_offset()[0]
    except CorruptFile:
        return base_offset


class _Swapping(Storage):
    """A storage that adds `.swap` to the names of some files when it opens them, unless they were renamed meanwhile."""

    def __init__(self, storage: Storage, names: frozenset[str]) -> None:
        self._storage = storage
        self._names = names

    def open(self, path: Path) -> File:
        """Open an existing file for reading."""
        return self._try_both(path, self._storage.open)

    def status(self, path: Path) -> FileStatus:
        """Return the status of a file. Raises `FileNotFoundError`."""
        return self._try_both(path, self._storage.status)

    def identity(self, file: File) -> int:
        """Return the identity of an open file, the same as in `status`."""
        return self._storage.identity(file)

    def _try_both(self, path: Path, use: Callable[[Path], T]) -> T:
        if path.name in self._names:
            try:
                return use(path.with_name(path.name + SWAP))
            except FileNotFoundError:
                pass  # it has been renamed meanwhile
        return use(path)
