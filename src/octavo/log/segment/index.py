"""The two indexes of a segment: from an offset to a position, and from a timestamp to an offset.

An index is a file of entries of one size, sorted by their keys. A search reads one block of the file; only the first
key of each block is kept in memory. The file is not mapped into memory: if another process truncates it meanwhile, a
lookup finds nothing, but the process does not crash.

`append` keeps the last few entries in memory and writes them together, because a system call for each of them would be
much of the cost of appending a small batch. Lookups find them there. A process that dies loses them; opening the log
then rebuilds the index, as after any unclean stop. Another process that reads the log does not see them yet, and begins
its search a few entries earlier.

Kafka gives the file of the active segment its full size in advance, filled with zeros; Octavo lets it grow. Both can be
read: zeros after the last entry are not entries. A lookup says only where to begin a search in the data, never what is
there. The search notices an index that lies.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

from octavo.log.segment.open_files import LazyFile
from octavo.log.storage import Storage
from octavo.records.layout import MAX_INT32, MIN_SIZE, NO_TIMESTAMP

_BLOCK: Final = 1024  # bytes of entries that a search reads; one number for each block is kept in memory
_MOST_COLLECTED: Final = 16  # entries that are kept in memory until they are written

# The number of entries in the file, and the entries after these. The list only grows; for any other change both are
# replaced together, so that a reader that takes them once finds every entry in one of the two places.
_Entries = tuple[int, list[tuple[int, int]]]


class OffsetEntry(NamedTuple):
    """The last offset of a batch, and the position where the batch begins."""

    offset: int
    position: int


class TimeEntry(NamedTuple):
    """The largest timestamp so far, and the last offset of the batch that has it."""

    timestamp_ms: int
    offset: int


class Index:
    """A file of entries of two numbers. The first of these, the key, increases from entry to entry."""

    _codes: str  # format characters of `struct` for an entry's fields
    _entry: struct.Struct

    def __init__(self, storage: Storage, path: Path, base_offset: int, segment_size: int | None = None) -> None:
        """Describe the index at `path`, of the segment with that base offset.

        `segment_size`: the present size of the segment. An index has no more entries than the segment has room for
        batches; further bytes of the file are ignored.
        """
        self.file: Final = LazyFile(storage, path)
        self._base_offset = base_offset
        self._most = _most_entries(segment_size)
        self._entries: _Entries | None = None  # None until they are counted
        self._last: tuple[_Entries, tuple[int, int]] | None = None  # the last entry in the file of which entries
        self._block = _BLOCK // self._entry.size
        self._samples: list[list[int]] = [[], []]  # of each field: its value in the first entry of every block

    @property
    def count(self) -> int:
        """Number of entries."""
        written, collected = self._entries or self._found()
        return written + len(collected)

    def is_too_long(self) -> bool:
        """Return whether there are more entries than the segment has room for batches."""
        return self._is_entry(self._in_file(self._most))

    def size(self) -> int:
        """Return the number of bytes that the entries take."""
        return self.count * self._entry.size

    def sync(self) -> None:
        """Write the entries to the disk, without those that are only collected."""
        self.file.sync()

    def clear(self) -> None:
        """Remove all entries, and make the file if there is none."""
        self._entries = (0, [])
        self._samples = [[], []]
        self.file.to_write(create=True).truncate(0)

    def complete(self) -> None:
        """Write the collected entries, and remove what follows the last entry in the file."""
        if (self._entries or self._found())[1]:
            self.append_packed(b"")
        self._trim()

    def _trim(self) -> None:
        """Remove what follows the entries in the file. This needs no space on the disk."""
        file = self.file.to_write()
        size = (self._entries or self._found())[0] * self._entry.size
        if file.size() != size:
            file.truncate(size)

    def refresh(self, segment_size: int | None = None) -> None:
        """Forget cached values, because another process writes the file. The segment now has this size."""
        self._most = _most_entries(segment_size)
        self._entries = None
        self._samples = [[], []]

    def take_back(self, count: int) -> None:
        """Remove the last `count` entries. If they are in the file, they will be overwritten."""
        self._cut(self.count - count)

    def append(self, entry: tuple[int, int]) -> None:
        """Add an entry after the last one, in memory; if there are many by now, write them. Raises `OSError`.

        If writing fails, the entry is not added. Offsets are relative to the base.
        """
        written, collected = self._entries or self._found()
        if len(collected) < _MOST_COLLECTED - 1:
            collected.append(entry)
        else:
            self._write(written, [*collected, entry])

    def append_packed(self, data: bytes) -> None:
        """Write entries after the last one. `data`: the entries, packed as in the file. Raises `OSError`."""
        self._write(*(self._entries or self._found()), data)

    def _write(self, written: int, entries: Sequence[tuple[int, int]], packed: bytes = b"") -> None:
        """Write entries after the first `written` ones: these, and then packed ones."""
        size = self._entry.size
        data = struct.pack(">" + self._codes * len(entries), *chain.from_iterable(entries)) + packed
        self.file.to_write().write_at((data,), written * size)
        self._entries = (written + len(data) // size, [])

    def _truncate_to(self, offset: int, field: int) -> None:
        """Remove the entries whose offset is `offset` or larger. `field`: which of the two fields is the offset."""
        found = self._floor(offset - self._base_offset - 1, field)
        self._cut(0 if found is None else found[0] + 1)
        self._trim()

    def _cut(self, count: int) -> None:
        written, collected = self._entries or self._found()
        self._entries = (min(count, written), collected[: max(0, count - written)])
        blocks = -(-count // self._block)
        self._samples = [samples[:blocks] for samples in self._samples]

    def _floor(self, target: int, field: int = 0) -> tuple[int, tuple[int, int]] | None:
        """Return the number and fields of the last entry whose `field` is at most `target`; None if there is none."""
        count = self.count
        samples = self._samples_of(field, count)
        block = bisect_right(samples, target) - 1
        entry = self._entry
        first = block * self._block
        if block < 0 or first >= count:
            return None
        data = self._read(first, min(self._block, count - first))
        size = entry.size
        unpack = entry.unpack_from
        at = bisect_right(range(len(data) // size), target, key=lambda at: unpack(data, at * size)[field]) - 1
        found = unpack(data, at * size) if at >= 0 else None
        # If the index lies, or is truncated meanwhile, the result may be anything.
        return (first + at, found) if found is not None and found[field] <= target else None

    def _samples_of(self, field: int, count: int) -> list[int]:
        """Return a field of the first entry of every block. With these in memory, a search reads only one block."""
        known = self._samples
        samples = known[field]
        blocks = -(-count // self._block)
        if len(samples) < blocks:
            entries = (self._at(number * self._block) for number in range(len(samples), blocks))
            samples = [*samples, *(entry[field] for entry in entries if entry is not None)]
            known[field] = samples  # in `known`: `_samples` was replaced if entries were cut meanwhile
        return samples

    def _at(self, number: int) -> tuple[int, int] | None:
        """Return the entry with this number; None if there is none, or the file no longer has it."""
        return self._unpacked(self._read(number, 1))

    def _in_file(self, number: int) -> tuple[int, int] | None:
        """Return what the file has at the place of this entry, whether it is one or not."""
        return self._unpacked(self._read_file(number, 1))

    def _unpacked(self, data: bytes) -> tuple[int, int] | None:
        if len(data) < self._entry.size:
            return None
        first, second = self._entry.unpack(data)
        return first, second

    def _last_entry(self) -> tuple[int, int] | None:
        entries = self._entries or self._found()
        written, collected = entries
        if collected:
            return collected[-1]
        known = self._last
        if known is not None and known[0] is entries:
            return known[1]
        last = self._unpacked(self._read_file(written - 1, 1)) if written else None
        if last is not None:
            self._last = (entries, last)
        return last

    def _found(self) -> _Entries:
        """Count the entries in the file, unless that is done."""
        count = self._find_count()
        if self._entries is None:  # otherwise another thread was faster, and may have added some
            self._entries = (count, [])
        return self._entries

    def _find_count(self) -> int:
        """Count the entries before the zeros with which Kafka fills the file."""
        file = self.file.to_read_if_there()
        room = 0 if file is None else file.size() // self._entry.size
        low, high = 0, min(room, self._most)
        if room == 1 or (high and self._is_entry(self._in_file(high - 1))):
            return high  # a single entry of zeros counts: nobody allocates a file for one entry in advance
        while low < high:
            middle = (low + high) // 2
            if self._is_entry(self._in_file(middle)):
                low = middle + 1
            else:
                high = middle
        return low

    @staticmethod
    def _is_entry(entry: tuple[int, int] | None) -> bool:
        return entry is not None and any(entry)

    def _read(self, number: int, count: int) -> bytes:
        """Return entries from `number` on, packed: up to `count`, but fewer at the end or if the file was cut."""
        written, collected = self._entries or self._found()
        from_file = max(0, min(count, written - number))
        data = self._read_file(number, from_file) if from_file else b""
        if from_file == count or len(data) < from_file * self._entry.size:
            return data
        start = max(0, number - written)
        return data + b"".join(self._entry.pack(*entry) for entry in collected[start : number + count - written])

    def _read_file(self, number: int, count: int) -> bytes:
        file = self.file.to_read_if_there()
        if file is None:
            return b""
        data = file.read_at(count * self._entry.size, number * self._entry.size)
        return data[: len(data) - len(data) % self._entry.size]


def _most_entries(segment_size: int | None) -> int:
    """Return the most entries possible: one for each batch, and one that sealing adds to the time index."""
    return MAX_INT32 if segment_size is None else segment_size // MIN_SIZE + 1


class OffsetIndex(Index):
    """The `.index` file: offsets relative to the base offset, and positions. The first batch has no entry."""

    _codes = "ii"
    _entry = struct.Struct(">" + _codes)
    ENTRY_SIZE: Final = _entry.size

    @property
    def last(self) -> OffsetEntry | None:
        """The last entry; None if there is none."""
        last = self._last_entry()
        return None if last is None else OffsetEntry(last[0] + self._base_offset, last[1])

    def lookup(self, offset: int) -> OffsetEntry | None:
        """Return the last entry at or before `offset`; None if there is none."""
        found = self._floor(offset - self._base_offset)
        return None if found is None else OffsetEntry(found[1][0] + self._base_offset, found[1][1])

    def behind(self, position: int) -> OffsetEntry | None:
        """Return the first entry of a batch that begins at `position` or later; None if there is none."""
        found = self._floor(position - 1, field=1)
        entry = self._at(0 if found is None else found[0] + 1) if self.count else None
        return None if entry is None else OffsetEntry(entry[0] + self._base_offset, entry[1])

    def well_before(self, position: int) -> OffsetEntry | None:
        """Return the third last entry of a batch that begins before `position`; None if there is none.

        The batch of the last entry may end after `position`. Then two whole ones are still left, of which the first
        shows whether the second is in its place.
        """
        found = self._floor(position - 1, field=1)
        entry = self._at(found[0] - 2) if found is not None and found[0] >= 2 else None
        return None if entry is None else OffsetEntry(entry[0] + self._base_offset, entry[1])

    def truncate_to(self, offset: int) -> None:
        """Remove the entries at and after `offset`."""
        self._truncate_to(offset, field=0)


class TimeIndex(Index):
    """The `.timeindex` file: timestamps, and offsets relative to the segment's base offset."""

    _codes = "qi"
    _entry = struct.Struct(">" + _codes)
    ENTRY_SIZE: Final = _entry.size

    @property
    def last(self) -> TimeEntry:
        """The last entry. If there is none, `NO_TIMESTAMP` and the base offset."""
        last = self._last_entry()
        if last is None:
            return TimeEntry(NO_TIMESTAMP, self._base_offset)
        return TimeEntry(last[0], last[1] + self._base_offset)

    @property
    def largest_ms(self) -> int:
        """The timestamp of the last entry."""
        last = self._last_entry()
        return NO_TIMESTAMP if last is None else last[0]

    def add(self, entry: TimeEntry) -> None:
        """Add an entry after the last one, if its timestamp is larger."""
        if entry.timestamp_ms > self.largest_ms:
            self.append_packed(self._entry.pack(entry.timestamp_ms, entry.offset - self._base_offset))

    def lookup(self, timestamp_ms: int) -> TimeEntry | None:
        """Return the last entry at or before `timestamp_ms`; None if there is none."""
        found = self._floor(timestamp_ms)
        return None if found is None else TimeEntry(found[1][0], found[1][1] + self._base_offset)

    def truncate_to(self, offset: int) -> None:
        """Remove the entries at and after `offset`."""
        self._truncate_to(offset, field=1)
