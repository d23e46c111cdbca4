"""A segment: the file of batches, its offset and time indexes, and its index of aborted transactions.

When `append` returns, the batches are in the page cache. Readers take no lock: `size` tells them where the complete
batches end, and it is set last. Files are opened when they are needed (`open_files`), and stay open while somebody
reads from them, even if the segment is deleted meanwhile.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from octavo.errors import CorruptFile, FormatError, Unsupported
from octavo.log.names import DELETED, INDEX, LOG, SNAPSHOT, TIME_INDEX, TXN_INDEX, file_name
from octavo.log.segment.batch_span import BatchSpan
from octavo.log.segment.batch_walk import Entry, walk
from octavo.log.segment.find import DamageBefore, batches_from, find, find_last, find_past_damage, find_timestamp
from octavo.log.segment.index import OffsetEntry, OffsetIndex, TimeEntry, TimeIndex
from octavo.log.segment.open_files import LazyFile
from octavo.log.segment.transaction_index import TransactionIndex
from octavo.log.storage import File, Storage
from octavo.records import read_batches
from octavo.records.kernels.machine import read_i64
from octavo.records.kernels.scan import entry_extent
from octavo.records.layout import (
    MAGIC_AT,
    MAX_INT32,
    NO_TIMESTAMP,
    Buffer,
)

_FUTURE_MAGIC: Final = 8  # larger numbers are more likely garbage than a future format
_FILES: Final = (LOG, INDEX, TIME_INDEX, TXN_INDEX, SNAPSHOT)


class Segment:
    """The batches from `base_offset` up to the base offset of the next segment."""

    def __init__(
        self, storage: Storage, folder: Path, base_offset: int, *, size: int, created_ms: int, is_new: bool = False
    ) -> None:
        """Describe a segment whose files exist. `size`: the bytes of its complete batches."""
        self.base_offset: Final = base_offset
        self.size = size
        self.created_ms = created_ms
        self.synced_names = 0  # how many of `name_count` are known to be on the disk
        self._is_made = is_new
        self.is_put_away = False  # its files are renamed to `.deleted`, or about to be
        self.path: Final = folder / file_name(base_offset, LOG)
        self.offset_index: Final = OffsetIndex(storage, folder / file_name(base_offset, INDEX), base_offset, size)
        self.time_index: Final = TimeIndex(storage, folder / file_name(base_offset, TIME_INDEX), base_offset, size)
        self.txn_index: Final = TransactionIndex(storage, folder / file_name(base_offset, TXN_INDEX), base_offset, size)
        self._storage = storage
        self._folder = folder
        self._data: Final = LazyFile(storage, self.path)
        self._unindexed = 0  # bytes since the last index entry; 0 again when a segment is opened, as in Kafka
        self._largest: TimeEntry | None = None
        self._first_timestamp_ms: int | None = None

    @classmethod
    def create(
        cls, storage: Storage, folder: Path, base_offset: int, *, created_ms: int, preallocate: int = 0
    ) -> Segment:
        """Make the files of an empty segment. Existing files of the same names are emptied."""
        segment = cls(storage, folder, base_offset, size=0, created_ms=created_ms, is_new=True)
        file = segment._data.to_write(create=True)
        file.truncate(0)
        if preallocate:
            file.truncate(preallocate)
        segment.clear_indexes()
        segment.txn_index.clear()
        return segment

    @property
    def name_count(self) -> int:
        """How many times files were made for the segment: its transaction index is made later than the other files."""
        return self._is_made + self.txn_index.name_count

    @property
    def is_new(self) -> bool:
        """Whether the names of some of its files may not be on the disk yet."""
        return self.name_count > self.synced_names

    @property
    def is_dirty(self) -> bool:
        """Whether a file of the segment was written since its last sync."""
        return any(file.is_dirty for file in self._lazy_files())

    # ------------------------------------------------------------------------------------------------------- writing

    def append(self, parts: Sequence[Buffer], size: int, spans: Sequence[BatchSpan], index_interval: int) -> None:
        """Write batches after the last one. Raises `OSError`, and then the segment is as it was."""
        position = self.size
        base_offset = self.base_offset
        largest = self._largest or self.largest
        largest_ms, largest_offset = largest
        indexed_ms: int | None = None
        unindexed = self._unindexed
        offsets: list[tuple[int, int]] = []
        times: list[tuple[int, int]] = []
        at = position
        for span_size, _, last_offset, max_timestamp_ms, _, _ in spans:
            if max_timestamp_ms > largest_ms:
                largest_ms, largest_offset = max_timestamp_ms, last_offset
            if unindexed > index_interval:
                offsets.append((last_offset - base_offset, at))
                if indexed_ms is None:
                    indexed_ms = self.time_index.largest_ms
                if largest_ms > indexed_ms:
                    times.append((largest_ms, largest_offset - base_offset))
                    indexed_ms = largest_ms
                unindexed = 0
            unindexed += span_size
            at += span_size
        try:
            self._data.to_write().write_at(parts, position)
            if offsets:
                self._add_entries(offsets, times)
        except OSError:
            with contextlib.suppress(OSError):  # bytes after `size` are overwritten, or cut by recovery
                self._data.to_write().truncate(position)
            raise
        if position == 0:
            self._first_timestamp_ms = spans[0].max_timestamp_ms
        self._unindexed = unindexed
        if largest_ms != largest.timestamp_ms:
            self._largest = TimeEntry(largest_ms, largest_offset)
        self.size = position + size

    def _add_entries(self, offsets: Sequence[tuple[int, int]], times: Sequence[tuple[int, int]]) -> None:
        """Add entries to both indexes, or to neither if one of them fails."""
        offset_count = time_count = 0
        try:
            for entry in offsets:
                self.offset_index.append(entry)
                offset_count += 1
            for entry in times:
                self.time_index.append(entry)
                time_count += 1
        except OSError:
            self.offset_index.take_back(offset_count)
            self.time_index.take_back(time_count)
            raise

    def seal(self) -> None:
        """Bring the files into their final form: every index complete, no bytes after the last batch or entry."""
        self.time_index.add(self.largest)
        self.offset_index.complete()
        self.time_index.complete()
        file = self._data.to_write()
        if file.size() != self.size:
            file.truncate(self.size)

    def begin_sync(self) -> None:
        """Have the disk begin to write the batches, so that `sync` waits less."""
        self._data.to_read().begin_sync()

    def sync(self) -> None:
        """Write everything to the disk except the files' names."""
        for sync in (self._data.sync, self.offset_index.sync, self.time_index.sync, self.txn_index.sync):
            if self.is_put_away:
                return  # nobody needs it, and files made by compaction may have its names now
            sync()

    def truncate_to(self, offset: int, now_ms: int) -> int:
        """Remove the batches whose last offset is `offset` or larger. Returns the number of bytes removed."""
        found = self.find(offset, self.size)
        before = self.size
        if found is not None:
            self.size = found.position  # first, so that no reader begins with what is about to be removed
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.txn_index.truncate_to(offset)
        file = self._data.to_write()
        if file.size() != self.size:
            file.truncate(self.size)
        if self.size == 0:
            self.created_ms = now_ms
            self._first_timestamp_ms = None
        self._unindexed = 0
        self._largest = self._find_largest()
        return before - self.size

    def cut(self, position: int) -> None:
        """Remove the bytes from `position` on, which the indexes do not cover."""
        file = self._data.to_write()
        file.truncate(position)
        file.sync()
        self.size = position

    def clear_indexes(self) -> None:
        """Empty the offset and time indexes, so that they can be rebuilt."""
        self.offset_index.clear()
        self.time_index.clear()
        self._unindexed = 0
        self._largest = None

    def put_away(self, *, keep_snapshot: bool = False) -> None:
        """Rename the files to `.deleted`. Readers go on: they have the files open or find the new names.

        `keep_snapshot`: another segment begins at the same offset, and the producer snapshot belongs to that one.
        Raises `OSError`; call it again then.
        """
        self.is_put_away = True
        for file in self._lazy_files():
            file.rename(self._deleted(file.path))
        snapshot = self._folder / file_name(self.base_offset, SNAPSHOT)
        if not keep_snapshot and snapshot.exists():
            self._storage.rename(snapshot, self._deleted(snapshot))

    def remove_deleted(self) -> None:
        """Remove the files that `put_away` has renamed."""
        for file in self._lazy_files():
            with contextlib.suppress(FileNotFoundError):
                file.remove()
        with contextlib.suppress(FileNotFoundError):
            self._storage.remove(self._folder / (file_name(self.base_offset, SNAPSHOT) + DELETED))

    def _lazy_files(self) -> tuple[LazyFile, ...]:
        """Return the segment's files, the data first: without the data, the other files are useless."""
        return self._data, self.offset_index.file, self.time_index.file, self.txn_index.file

    @staticmethod
    def _deleted(path: Path) -> Path:
        return path if path.name.endswith(DELETED) else path.with_name(path.name + DELETED)

    def files(self) -> list[Path]:
        """Return the paths of the files that exist, the data first: without the data, the others are useless."""
        paths = (self._folder / file_name(self.base_offset, suffix) for suffix in _FILES)
        return [path for path in paths if path.exists()]

    def forget(self) -> None:
        """Close the files until they are needed again."""
        for file in self._lazy_files():
            file.forget()

    # ------------------------------------------------------------------------------------------------------- reading

    @property
    def file(self) -> File:
        """The file of batches, open for reading."""
        return self._data.to_read()

    @property
    def largest(self) -> TimeEntry:
        """The largest timestamp of the segment, and the last offset of the batch that has it."""
        if self._largest is None:
            self._largest = self._find_largest()
        return self._largest

    def has_largest(self) -> bool:
        """Return whether the time index ends with the largest timestamp, judging by the data near the end."""
        last = self.time_index.last
        tail = walk(self.file, self.last_indexed(), self.size)
        if any(entry.max_timestamp_ms > last.timestamp_ms for entry in tail):
            return False
        right = self._has_timestamp(last) is not None if last.timestamp_ms >= 0 else self.first_timestamp_ms() < 0
        if right:
            self._largest = last
        return right

    def _has_timestamp(self, entry: TimeEntry) -> Entry | None:
        """Return the batch that a time index entry refers to; None if it does not have that timestamp."""
        try:
            found = self.find(entry.offset, self.size)
        except CorruptFile:
            return None
        return found if found is not None and found.max_timestamp_ms == entry.timestamp_ms else None

    def largest_timestamp_ms(self) -> int:
        """Return the time that retention uses: the largest timestamp, or else the time of the last write."""
        largest_ms = self.largest.timestamp_ms
        return largest_ms if largest_ms >= 0 else self.modified_ms()

    def modified_ms(self) -> int:
        """Return the time when the file was last written."""
        try:
            return self._storage.status(self.path).modified_ns // 1_000_000
        except FileNotFoundError:  # renamed for deletion, but still in somebody's view
            file = self.file  # held, because another thread may close it to make room
            return os.fstat(file.descriptor).st_mtime_ns // 1_000_000

    def first_timestamp_ms(self) -> int:
        """Return the largest timestamp of the first batch. The segment's age is counted from it."""
        if self._first_timestamp_ms is None:
            first = next(walk(self.file, 0, self.size), None)
            if first is None:
                return NO_TIMESTAMP
            self._first_timestamp_ms = first.max_timestamp_ms
        return self._first_timestamp_ms

    def takes(self, offset: int) -> bool:
        """Return whether `offset` fits into 31 bits relative to the base offset."""
        return 0 <= offset - self.base_offset <= MAX_INT32

    def end_offset(self) -> tuple[int, int]:
        """Return the offset after the last complete batch, and the position where that batch ends."""
        last = self.offset_index.last
        start = last.position if last is not None and 0 < last.position < self.size else 0
        found = self._last_entry(start)
        if found is None and start:
            found = self._last_entry(0)
        return (self.base_offset, 0) if found is None else (found.last_offset + 1, found.end)

    def _last_entry(self, start: int) -> Entry | None:
        entry = None
        try:
            for entry in walk(self.file, start, self.size):  # noqa: B007 - the last is wanted
                pass
        except CorruptFile:
            if start == 0:
                raise
            return None  # an index that lies
        return entry

    def has_batch_at(self, entry: OffsetEntry, end: int | None = None) -> bool:
        """Return whether an index entry points to a batch. `end`: where the batches end, by default at `size`."""
        end = self.size if end is None else end
        try:
            return batches_from(self.file, entry, end) is not None
        except CorruptFile:
            return False

    def sound_end_offset(self) -> int | None:
        """Return the offset after the last batch; None if the file does not end with a complete batch."""
        try:
            end_offset, end = self.end_offset()
        except CorruptFile:
            return None
        return end_offset if end == self.size else None

    def verified_end_offset(self) -> int | None:
        """Return the offset after the last batch, if its checksum is right and it follows the batch before it.

        Returns None if the file does not end with such a batch, or has damage before it. The checksum does not cover a
        batch's base offset, so that has to follow the last offset of the batch before. Reads every header of the file.
        """
        before = last = None
        try:
            for entry in walk(self.file, 0, self.size):
                before, last = last, entry
            if last is None:
                return self.base_offset if self.size == 0 else None
            if last.end != self.size:
                return None
            batch = next(read_batches(self.file.read_at(last.size, last.position)))
        except FormatError:
            return None
        expected = self.base_offset if before is None else before.last_offset + 1
        # An old compressed message has only its last offset in the header.
        follows = last.base_offset == expected or (batch.magic < 2 and last.base_offset > expected)
        return last.last_offset + 1 if follows else None

    def check_format(self, end_limit: int | None = None) -> None:
        """Raise `Unsupported` for batches of a newer format, and for offsets too far apart for one segment.

        `end_limit`: all offsets of the segment are below it, if it is known. Headers that say something else are
        damaged.
        """
        head = self.file.read_at(MAGIC_AT + 1, 0)
        if len(head) > MAGIC_AT and 2 < head[MAGIC_AT] <= _FUTURE_MAGIC:
            _, size, _ = entry_extent(head, 0, self.size)
            could_be = 0 < size <= self.size and self.takes(read_i64(head, 0))
            if could_be and not self._is_of_magic_2(size):
                raise Unsupported(0, f"{self.path}: batches of magic {head[MAGIC_AT]} are not known here")
        end_offset = self.sound_end_offset()
        if end_offset is None or (end_limit is not None and end_offset > end_limit):
            return
        if end_offset > self.base_offset and not self.takes(end_offset - 1):
            raise Unsupported(
                0,
                f"{self.path}: offsets go up to {end_offset - 1}, too far from the first for an index; segments of "
                "old releases like this are split by Apache Kafka when it starts",
            )

    def _is_of_magic_2(self, size: int) -> bool:
        """Return whether the checksum of the first batch is right for magic 2. It does not cover the magic itself."""
        data = bytearray(self.file.read_at(size, 0))
        data[MAGIC_AT] = 2
        try:
            return next(read_batches(data), None) is not None
        except FormatError:
            return False

    def last_indexed(self, end: int | None = None) -> int:
        """Return the position of the last batch in the offset index; 0 if it has none, or the entry is wrong."""
        last = self.offset_index.last
        return last.position if last is not None and self.has_batch_at(last, end) else 0

    def refresh(self, size: int) -> None:
        """Forget cached values, because another process writes the files. The file of batches now has `size` bytes."""
        self.size = size
        self.offset_index.refresh(size)
        self.time_index.refresh(size)
        self.txn_index.refresh(size)
        self._largest = None

    def find(self, offset: int, end: int) -> Entry | None:
        """Return the first batch whose last offset is `offset` or larger, if it ends at or before position `end`.

        Batches are skipped according to their headers. If that leaves a gap before `offset`, their checksums are
        verified, so that no wrong header makes records disappear. The batch that is found is not verified.

        Raises `CorruptFile` for damage on the way.
        """
        return find(self.file, self.offset_index, self.base_offset, offset, end)

    def find_last(self, first: Entry, end: int, data_end: int) -> Entry:
        """Return the last batch from `first` on that ends at or before position `end`. See `find.find_last`."""
        return find_last(self.file, self.offset_index, first, end, data_end)

    def find_past_damage(self, offset: int, end: int) -> tuple[Entry | None, DamageBefore | None]:
        """Find a batch like `find`, but skip damage, and accept only batches whose checksums are right.

        Also returns the damage right before the batch, or right before `end` if no batch is found.
        """
        return find_past_damage(self.file, self.offset_index, self.base_offset, offset, end)

    def find_timestamp(self, timestamp_ms: int, start_offset: int) -> tuple[int, int, int] | None:
        """Return the first record from `start_offset` on with this timestamp or a larger one.

        The result is its offset, its timestamp and its leader epoch.
        """
        hint = self.time_index.lookup(timestamp_ms)
        entry = None if hint is None else self._has_timestamp(hint)
        start = 0 if entry is None else entry.position
        if start_offset > self.base_offset:  # earlier records need not be decoded
            found = self.find(start_offset, self.size)
            if found is None:
                return None
            start = max(start, found.position)
        return find_timestamp(self.file, start, self.size, timestamp_ms, start_offset)

    def find_largest_timestamp(self) -> tuple[int, int, int] | None:
        """Return the first record with the segment's largest timestamp: its offset, timestamp and leader epoch."""
        largest = self.largest
        if largest.timestamp_ms < 0:
            return None
        entry = self._has_timestamp(largest)
        start = 0 if entry is None else entry.position
        return find_timestamp(self.file, start, self.size, largest.timestamp_ms, self.base_offset)

    def _find_largest(self) -> TimeEntry:
        """Find the largest timestamp. The time index covers all batches but the last few."""
        largest = self.time_index.last
        known = self._has_timestamp(largest)
        if known is None:
            largest = TimeEntry(NO_TIMESTAMP, self.base_offset)
        for entry in walk(self.file, 0 if known is None else known.position, self.size):
            if entry.max_timestamp_ms > largest.timestamp_ms and self.takes(entry.last_offset):
                largest = TimeEntry(entry.max_timestamp_ms, entry.last_offset)
        return largest
