"""The `.txnindex` file: the aborted transactions whose markers are in a segment, in the order of the markers.

    version               int16    0
    producer_id           int64
    first_offset          int64    of the transaction's first batch, which may be in an earlier segment
    last_offset           int64    of the marker
    last_stable_offset    int64    the last stable offset after this marker was written

If nothing was aborted, there is no file. A read of committed data looks here for what it has to leave out.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from octavo.errors import CorruptFile
from octavo.log.segment.open_files import LazyFile
from octavo.log.storage import File, Storage
from octavo.records.layout import BATCH_HEADER, MAX_INT32, NO_OFFSET, Int16, Int64, Layout

_VERSION: Final = 0
_CHUNK: Final = 1024  # entries that are read at once


class _Row(NamedTuple):
    version: Int16
    producer_id: Int64
    first_offset: Int64
    last_offset: Int64
    last_stable_offset: Int64


ROW: Final = Layout(_Row)
assert ROW.size == 34


class AbortedEntry(NamedTuple):
    """An aborted transaction."""

    producer_id: int
    first_offset: int
    last_offset: int  # offset of the marker
    last_stable_offset: int


class TransactionIndex:
    """The index of the aborted transactions of one segment."""

    ENTRY_SIZE: Final = ROW.size

    def __init__(self, storage: Storage, path: Path, base_offset: int, segment_size: int | None = None) -> None:
        """Describe the index at `path`, of the segment with that base offset.

        `segment_size`: the present size of the segment. There are no more entries than it has room for markers.
        """
        self.path: Final = path
        self.name_count = 0  # how often this object has made the file
        self.file: Final = LazyFile(storage, path)
        self._base_offset = base_offset
        self._most = _most_entries(segment_size)
        self._count: int | None = None

    @property
    def count(self) -> int:
        """Number of entries."""
        if self._count is None:
            file = self.file.to_read_if_there()
            count = 0 if file is None else min(file.size() // ROW.size, self._most)
            if self._count is None:  # otherwise a writer has set it, and may have appended since we looked
                self._count = count
        return self._count

    def append(self, entry: AbortedEntry) -> None:
        """Add an entry after the last one. The first entry makes the file. Raises `OSError`; nothing is added then."""
        count = self.count
        file = self._to_write()
        file.write_at([ROW.write(_Row(_VERSION, *entry))], count * ROW.size)
        self._count = count + 1

    def entries(self, first: int = 0) -> Iterator[AbortedEntry]:
        """Yield all entries, or those from number `first` on. Raises `CorruptFile` for one of an unknown version."""
        count = self.count
        file = self.file.to_read_if_there() if count else None
        if file is None:
            return
        for start in range(first, count, _CHUNK):
            data = file.read_at(min(_CHUNK, count - start) * ROW.size, start * ROW.size)
            for at in range(0, len(data) - ROW.size + 1, ROW.size):
                version, *fields = ROW.read(data, at)
                if version != _VERSION:
                    rule = f"version {version} of an entry of the transaction index is unknown"
                    raise CorruptFile(self.path, start * ROW.size + at, rule)
                yield AbortedEntry._make(fields)

    def collect(self, offset: int, upper_bound: int, found: list[AbortedEntry]) -> bool:
        """Add to `found` the aborted transactions that a read from `offset` to before `upper_bound` leaves out.

        Returns whether these are all of them, so that the indexes of later segments need not be read.
        """
        first = bisect_left(range(self.count), offset, key=self._last_offset_of)
        before = NO_OFFSET
        for number, entry in enumerate(self.entries(first), first):
            if entry.last_offset <= before:
                rule = f"the marker at {entry.last_offset} is not behind the one before it, at {before}"
                raise CorruptFile(self.path, number * ROW.size, rule)
            before = entry.last_offset
            if entry.first_offset < upper_bound:
                found.append(entry)
            if entry.last_stable_offset >= upper_bound:
                return True
        return False

    def check(self, end_offset: int) -> None:
        """Raise `CorruptFile` if this cannot be the index of a segment that ends at `end_offset`."""
        file = self.file.to_read_if_there()
        if file is None:
            return
        if file.size() % ROW.size:
            raise CorruptFile(self.path, file.size(), f"an entry takes {ROW.size} bytes, and the last is cut")
        if file.size() // ROW.size > self._most:
            raise CorruptFile(self.path, self._most * ROW.size, "there are more entries than room for markers")
        before = self._base_offset - 1
        for number, entry in enumerate(self.entries()):
            if not before < entry.last_offset < end_offset or not 0 <= entry.first_offset < entry.last_offset:
                rule = f"no transaction of this segment goes from {entry.first_offset} to {entry.last_offset}"
                raise CorruptFile(self.path, number * ROW.size, rule)
            before = entry.last_offset

    def truncate_to(self, offset: int) -> None:
        """Remove the entries whose markers are at `offset` or later."""
        count = self.count
        self._cut(bisect_left(range(count), offset, key=self._last_offset_of), count)

    def clear(self) -> None:
        """Remove all entries. If there is no file, none is made."""
        self._cut(0, self.count)

    def take_back(self, count: int) -> None:
        """Keep only the first `count` entries. What follows them in the file will be overwritten, or cut."""
        self._count = min(count, self.count)

    def _cut(self, count: int, before: int) -> None:
        self._count = count
        if self.file.to_read_if_there() is not None:
            file = self._to_write()
            if count < before or file.size() != count * ROW.size:
                file.truncate(count * ROW.size)

    def _last_offset_of(self, number: int) -> int:
        file = self.file.to_read_if_there()
        data = b"" if file is None else file.read_at(ROW.size, number * ROW.size)
        return ROW.read(data).last_offset if len(data) == ROW.size else self._base_offset

    def sync(self) -> None:
        """Write the entries to the disk, if there is a file."""
        if self.file.to_read_if_there() is not None:
            self.file.sync()

    def refresh(self, segment_size: int | None = None) -> None:
        """Forget cached values, because another process writes the file. The segment now has this size."""
        self._most = _most_entries(segment_size)
        self._count = None
        self.file.forget()

    def _to_write(self) -> File:
        if not self.file.is_open:
            self.name_count += self.file.to_read_if_there() is None
        return self.file.to_write(create=True)


def _most_entries(segment_size: int | None) -> int:
    """Return the largest possible number of entries: one for each marker, which is a batch of its own."""
    return MAX_INT32 if segment_size is None else segment_size // BATCH_HEADER.size
