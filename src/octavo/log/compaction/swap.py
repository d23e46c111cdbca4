"""Replace the source segments of a compaction by its output (Kafka's `replaceSegments`).

1. The `.cleaned` files are on the disk, including their names. A crash before the end of step 2 undoes everything.
2. `.cleaned` becomes `.swap`, file by file. From here on the output takes its place, whatever happens: opening a log
   removes the segments that a `.swap` file replaces, and gives the file its final name.
3. The old segments become `.deleted`.
4. `.swap` loses its suffix, the data first: without a `.log.swap`, recovery takes no other file for replaced.

Each step is on the disk before the next one begins, because a power cut may lose any name that was not synced.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from octavo.log.compaction.output import CleanedSegment
from octavo.log.names import CLEANED, SWAP
from octavo.log.segment.segment import Segment
from octavo.log.storage import Storage


def rename_to_swap(storage: Storage, folder: Path, cleaned: CleanedSegment) -> list[Path]:
    """Rename `.cleaned` files to `.swap` (step 2). Return the new paths. If this fails, call `remove_swap_files`."""
    files = cleaned.files()
    offered = [_swap_path(path) for path in files]
    for path, target in zip(files, offered, strict=True):
        storage.rename(path, target)
    storage.sync_folder(folder)
    return offered


def remove_swap_files(storage: Storage, folder: Path, cleaned: CleanedSegment) -> None:
    """Remove the `.swap` and `.cleaned` files, to undo step 2 or the part of it that was done.

    The data are removed last: an index left alone would replace the index that belongs to the old data.
    """
    for path in reversed(cleaned.paths):
        if _swap_path(path).exists():
            storage.remove(_swap_path(path))
            storage.sync_folder(folder)
    cleaned.discard()


def _swap_path(path: Path) -> Path:
    return path.with_name(path.name.removesuffix(CLEANED) + SWAP)


def replace_segments(storage: Storage, folder: Path, old: Sequence[Segment], offered: Sequence[Path]) -> None:
    """Put the old segments away, and give the `.swap` files their final names (steps 3 and 4)."""
    for segment in old:
        segment.put_away(keep_snapshot=segment is old[0])
    storage.sync_folder(folder)
    data, *indexes = offered
    storage.rename(data, data.with_name(data.name.removesuffix(SWAP)))
    storage.sync_folder(folder)
    for path in indexes:
        storage.rename(path, path.with_name(path.name.removesuffix(SWAP)))
    storage.sync_folder(folder)
