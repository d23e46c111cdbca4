"""Write the segment that replaces a group of segments: `CleanedSegment`.

Its files, data and indexes, have names that end in `.cleaned`, and are synced. Index entries are those that Kafka 4.1
and later write: an entry is considered for each batch, as if each batch were appended alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from octavo.errors import BadRecord
from octavo.log.names import CLEANED, INDEX, LOG, TIME_INDEX, TXN_INDEX, file_name
from octavo.log.segment.index import OffsetIndex, TimeEntry, TimeIndex
from octavo.log.segment.index_entries import packed_offsets, packed_times
from octavo.log.segment.transaction_index import TransactionIndex
from octavo.log.storage import Storage
from octavo.records.kernels import Kernels, index, scan
from octavo.records.kernels.batch_table import BatchTable, Table
from octavo.records.layout import NO_TIMESTAMP, Buffer

_ROWS: Final = 1 << 12


class CleanedSegment:
    """A segment of compacted data that is being written."""

    def __init__(self, storage: Storage, folder: Path, base_offset: int, *, interval: int, kernels: Kernels) -> None:
        """Create the segment's files. Leftovers of an interrupted run are replaced."""
        self.base_offset: Final = base_offset
        self.size = 0
        names = (file_name(base_offset, suffix) + CLEANED for suffix in (LOG, INDEX, TIME_INDEX, TXN_INDEX))
        self.paths: Final = [folder / name for name in names]  # in the order in which they are to be renamed
        self.txn_index: Final = TransactionIndex(storage, self.paths[3], base_offset)
        self._storage = storage
        self._folder = folder
        self._interval = interval
        self._kernels = kernels
        self._offset_index = OffsetIndex(storage, self.paths[1], base_offset)
        self._time_index = TimeIndex(storage, self.paths[2], base_offset)
        self._table: Final = BatchTable(kernels, _ROWS)
        self._entries: Final = np.empty((3, _ROWS, 2), np.int64)
        self._state: Final = np.zeros(index.STATE, np.int64)
        self._state[index.NEXT_OFFSET] = self._state[index.LARGEST_OFFSET] = base_offset
        self._state[index.LARGEST_TIMESTAMP] = self._state[index.INDEXED_TIMESTAMP] = NO_TIMESTAMP
        self.discard()
        self._file = storage.open_to_write(self.paths[0], create=True)
        self._offset_index.clear()
        self._time_index.clear()

    def files(self) -> list[Path]:
        """Return the files that exist; the transaction index exists only if a transaction was aborted."""
        return [path for path in self.paths if path.exists()]

    def append(self, batches: Buffer) -> None:
        """Write whole batches at the end. Raises `OSError`, and `BadRecord` if offsets do not increase."""
        data = np.frombuffer(batches, np.uint8)
        at = 0
        while at < len(data):
            self._table.scan(data, at, len(data))
            assert len(self._table.batches), "the output of compaction is no batch"
            self._index(self._table.batches)
            at = self._table.position
        self._file.write_at([batches], self.size)
        self.size += len(data)

    def _index(self, table: Table) -> None:
        offsets, times, epochs = self._entries
        rows = len(table)
        sound = self._kernels.index_batches(
            table, rows, self.size, self.base_offset, self._interval, self._state, offsets, times, epochs
        )
        if sound < rows:
            at = self.size + int(table[sound, scan.POSITION])
            raise BadRecord(at, "the batch's offsets do not follow those before it, or are too far from the segment's")
        if count := int(self._state[index.OFFSET_ENTRIES]):
            self._offset_index.append_packed(packed_offsets(offsets[:count], self.base_offset))
        if count := int(self._state[index.TIME_ENTRIES]):
            self._time_index.append_packed(packed_times(times[:count], self.base_offset))

    def finish(self, modified_ms: int) -> None:
        """Complete and sync the files, and give them the modification time of the last source segment."""
        largest = TimeEntry(int(self._state[index.LARGEST_TIMESTAMP]), int(self._state[index.LARGEST_OFFSET]))
        self._time_index.add(largest)
        self._file.sync()
        self._offset_index.sync()
        self._time_index.sync()
        self.txn_index.sync()
        for path in self.files():
            self._storage.set_modified(path, modified_ms)
        self._storage.sync_folder(self._folder)

    def discard(self) -> None:
        """Remove the segment's files."""
        for path in self.files():
            self._storage.remove(path)
