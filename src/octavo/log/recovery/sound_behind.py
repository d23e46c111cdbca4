"""Find out what a cut would take, and keep it: sound batches behind damage.

A crash of the process leaves at most an incomplete batch at the end of a file. Where sound batches lie behind damage, a
cut loses records that can still be read. After a power cut that is ordinary for bytes that were never flushed, and
Apache Kafka cuts there too; after a flipped bit it is a loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from octavo.log.names import LOST
from octavo.log.segment.block_reader import LARGE, BlockReader
from octavo.log.segment.damage import BatchSearch
from octavo.log.segment.header_scan import scan_headers
from octavo.log.segment.segment import Segment
from octavo.log.storage import TMP, Storage
from octavo.records.kernels import kernels, scan
from octavo.records.kernels.batch_checksums import first_mismatch
from octavo.records.kernels.batch_table import Table

_BLOCK: Final = 4 << 20  # bytes
_ROWS: Final = 1 << 13


class Behind(NamedTuple):
    """The sound batches behind damage."""

    batches: int = 0
    records: int = 0  # a compressed wrapper of old messages counts as one

    def plus(self, table: Table) -> Behind:
        """Add the batches of a table (see `kernels.scan`)."""
        return Behind(self.batches + len(table), self.records + _records(table))


def records_before(segment: Segment, position: int) -> int:
    """Return the number of records in the batches of a segment before `position`."""
    return sum(_records(table) for table, _ in scan_headers(segment.file, 0, position))


def find_behind(segment: Segment, position: int, last_offset: int, later: Sequence[Segment]) -> Behind:
    """Return what is sound in a segment from the damage at `position` on, and in the segments after it.

    last_offset: of the last batch before the damage
    """
    found = _find(segment, position, last_offset, Behind())
    for each in later:
        found = _find(each, 0, each.base_offset - 1, found)
    return found


def _find(segment: Segment, position: int, last_offset: int, found: Behind) -> Behind:
    file, end = segment.file, segment.size
    if position >= end:
        return found
    kernel_set = kernels(end - position)
    reader = BlockReader(kernel_set, min(_BLOCK, end - position), _ROWS)
    reader.begin(file, position, end)
    search = BatchSearch()
    while (met := reader.next()) != scan.DONE:
        table = reader.table
        damage: int | None = reader.position
        if met == scan.MORE:
            wrong = first_mismatch(kernel_set, reader.memory, table)
            if wrong is not None:
                damage = reader.shift + int(table[wrong, scan.POSITION])
                table = table[:wrong]
            else:
                damage = None
        elif met == LARGE:
            if reader.check_large() is None:
                damage = None
                reader.pass_large()
            else:
                table = table[:0]
        else:
            table = table[:0]
        found = found.plus(table)
        if len(table):
            last_offset = int(table[-1, scan.LAST_OFFSET])
        if damage is not None:
            reader.go_to(search.next_batch(file, damage, end, last_offset))
    return found


def _records(table: Table) -> int:
    return int(np.maximum(table[:, scan.COUNT], 1).sum()) if len(table) else 0


def lost_path(path: Path) -> Path:
    """Return a name beside a file, which neither Kafka nor Octavo reads or removes, and which no file has."""
    kept = path.with_name(path.name + LOST)
    while kept.exists() or kept.is_symlink():
        kept = kept.with_name(kept.name + LOST)
    return kept


def keep_copy(storage: Storage, path: Path) -> Path:
    """Copy a file that is about to be cut, and return the copy. It is on the disk when this returns.

    Raises `OSError`, with the same number, if that is impossible, as on a full disk. Then there is no copy.
    """
    kept = lost_path(path)
    temporary = kept.with_name(kept.name + TMP)
    try:
        source = storage.open(path)
        if temporary.is_symlink():  # not made by us, and it may point to anybody's file
            storage.remove(temporary)
        copy = storage.open_to_write(temporary, create=True)
        copy.truncate(0)
        position = 0
        while data := source.read_at(_BLOCK, position):
            copy.write_at([data], position)
            position += len(data)
        copy.sync()
        copy.close()
        storage.rename(temporary, kept)
        storage.sync_folder(path.parent)
    except OSError as error:
        if temporary.exists():
            storage.remove(temporary)
        why = f"{error.strerror}: it is damaged, and would be cut, but cannot be kept beside; nothing was cut"
        raise OSError(error.errno, why, str(path)) from error
    return kept
