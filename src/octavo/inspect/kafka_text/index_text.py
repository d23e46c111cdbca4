"""The text of offset and time indexes, which are compared with the segment beside them.

Kafka maps an index into memory. Bytes at its end that are no whole entry are ignored, and an entry with the base offset
after the first one is taken for the beginning of the zeros that a crash left.
"""

from __future__ import annotations

import os
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from octavo.inspect.kafka_text.file_records import FileBatch, FileRecords
from octavo.inspect.kafka_text.java_names import JavaFile
from octavo.inspect.kafka_text.messages import TextMessage, check_inner, read_messages
from octavo.inspect.kafka_text.records import read_records
from octavo.inspect.kafka_text.run import Run
from octavo.inspect.kafka_text.throwables import CORRUPT_INDEX, ILLEGAL_ARGUMENT, NO_SUCH_ELEMENT, Throwable
from octavo.inspect.kinds import open_regular
from octavo.records.kernels.machine import wrap64
from octavo.records.layout import BATCH_HEADER, LOG_OVERHEAD, MAX_INT32, NO_TIMESTAMP

_LOG: Final = ".log"
_INDEX: Final = ".index"
_OFFSET_ENTRY: Final = struct.Struct(">ii")
_TIME_ENTRY: Final = struct.Struct(">qi")
_WARM_BYTES: Final = 8192


class MappedIndex(ABC):
    """The entries of an index, with absolute offsets."""

    def __init__(self, file: JavaFile, base_offset: int, entry: struct.Struct) -> None:
        if not os.path.lexists(file.path):
            # Kafka creates a missing index, of a size that it was not told.
            raise Throwable(ILLEGAL_ARGUMENT, "Invalid max index size: -1")
        self.file: Final = file
        self.base_offset: Final = base_offset
        opened = open_regular(Path(file.path))
        self.size: Final = opened.size()
        data = opened.read_at(self.size, 0)
        self.entries: Final[list[tuple[int, int]]] = list(
            entry.iter_unpack(data[: len(data) // entry.size * entry.size])
        )
        self._warm = _WARM_BYTES // entry.size

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Yield the entries up to zeros at the end."""
        for number, entry in enumerate(self.entries):
            if self.offset(entry) == self.base_offset and number:
                return
            yield entry

    @abstractmethod
    def offset(self, entry: tuple[int, int]) -> int:
        """Return the offset of an entry; it is stored as a difference from the base offset."""


class OffsetIndex(MappedIndex):
    """An index from offsets to positions."""

    def __init__(self, file: JavaFile, base_offset: int) -> None:
        super().__init__(file, base_offset, _OFFSET_ENTRY)

    def offset(self, entry: tuple[int, int]) -> int:
        return wrap64(self.base_offset + entry[0])

    def check(self) -> None:
        """Do the check of Kafka's start-up. Raises what it throws."""
        if self.entries and (last := self.offset(self.entries[-1])) < self.base_offset:
            raise Throwable(
                CORRUPT_INDEX,
                f"Corrupt index found, index file {self.file.absolute} has non-zero size but the last offset is {last} "
                f"which is less than the base offset {self.base_offset}",
            )
        if self.size % _OFFSET_ENTRY.size:
            raise Throwable(
                CORRUPT_INDEX,
                f"Index file {self.file.absolute} is corrupt, found {self.size} bytes which is neither positive nor a "
                f"multiple of {_OFFSET_ENTRY.size}",
            )

    def position_of(self, offset: int) -> int:
        """Return where to look for an offset: the position of the last entry up to it, found as Kafka finds it."""
        entries = self.entries
        if not entries:
            return 0
        last = len(entries) - 1
        first_hot = max(0, last - self._warm)
        if self.offset(entries[first_hot]) < offset:
            low, high = first_hot, last
        elif self.offset(entries[0]) > offset:
            return 0
        else:
            low, high = 0, first_hot
        while low < high:
            middle = (low + high + 1) >> 1
            found = self.offset(entries[middle])
            if found == offset:
                return entries[middle][1]
            if found > offset:
                high = middle - 1
            else:
                low = middle
        return entries[low][1]


class TimeIndex(MappedIndex):
    """An index from timestamps to offsets."""

    def __init__(self, file: JavaFile, base_offset: int) -> None:
        super().__init__(file, base_offset, _TIME_ENTRY)

    def offset(self, entry: tuple[int, int]) -> int:
        return wrap64(self.base_offset + entry[1])

    def check(self) -> None:
        """Do the check of Kafka's start-up. Raises what it throws."""
        where = f"Corrupt time index found, time index file ({self.file.absolute}) has non-zero size but the last"
        if self.entries:
            (first, _), (last, _) = self.entries[0], self.entries[-1]
            last_offset = self.offset(self.entries[-1])
            if last < first:
                raise Throwable(
                    CORRUPT_INDEX, f"{where} timestamp is {last} which is less than the first timestamp {first}"
                )
            if last_offset < self.base_offset:
                raise Throwable(
                    CORRUPT_INDEX,
                    f"{where} offset is {last_offset} which is less than the first offset {self.base_offset}",
                )
        if self.size % _TIME_ENTRY.size:
            raise Throwable(
                CORRUPT_INDEX,
                f"Time index file {self.file.absolute} is corrupt, found {self.size} bytes which is neither positive "
                f"nor a multiple of {_TIME_ENTRY.size}",
            )


def print_index(run: Run, file: JavaFile) -> None:
    """Print an offset index. Raises what Kafka's tool throws, after what it prints before."""
    base_offset = file.base_offset
    records = FileRecords.open(file.beside(_LOG))
    index = OffsetIndex(file, base_offset)
    if not index.entries:
        run.output.line(f"{file} is empty.")
        return
    if run.options.index_sanity_check:
        index.check()
        run.output.line(f"{file} passed sanity check.")
        return
    for entry in index:
        offset, position = index.offset(entry), entry[1]
        batch = next(records.slice(position, run.options.max_message_size).batches(), None)
        if batch is None:
            raise Throwable(NO_SUCH_ELEMENT)
        found = _last_offset(batch)
        if found != offset:
            run.reports.index_mismatch(file, offset, found)
        if not run.options.verify_index_only:
            run.output.line(f"offset: {offset} position: {position}")


def print_time_index(run: Run, file: JavaFile) -> None:
    """Print a time index. Raises what Kafka's tool throws, after what it prints before."""
    base_offset = file.base_offset
    records = FileRecords.open(file.beside(_LOG))
    index = OffsetIndex(file.beside(_INDEX), base_offset)
    time_index = TimeIndex(file, base_offset)
    if run.options.index_sanity_check:
        time_index.check()
        run.output.line(f"{file} passed sanity check.")
        return
    before = NO_TIMESTAMP
    tails = _Tails(records)
    for entry in time_index:
        timestamp, offset = entry[0], time_index.offset(entry)
        batch = tails.first_reaching(index.position_of(offset), offset)
        if batch is None:
            run.reports.offset_not_found(file, offset, -1)
        elif (found := _last_offset(batch)) != offset:
            run.reports.offset_not_found(file, offset, found)
        else:
            largest = _largest_timestamp(batch)
            if largest != timestamp:
                run.reports.timestamp_mismatch(file, timestamp, largest)
            if before >= timestamp:
                run.reports.out_of_order(file, timestamp, before)
        if not run.options.verify_index_only:
            run.output.line(f"timestamp: {timestamp} offset: {offset}")
        before = timestamp


class _Tails:
    """The batches from a position to the end of the file.

    Kafka's tool finds all of them again for each entry of a time index, and fails for each if one of them is damaged.
    Here they are found once.
    """

    def __init__(self, records: FileRecords) -> None:
        self._records = records
        self._batches: list[FileBatch] = []
        self._numbers: dict[int, int] = {}  # by position

    def first_reaching(self, position: int, offset: int) -> FileBatch | None:
        """Return the first batch from `position` on that ends at `offset` or after it."""
        number = self._numbers.get(position)
        if number is None or not self._batches:
            self._batches = list(self._records.slice(position, MAX_INT32).batches())
            self._numbers = {batch.position: number for number, batch in enumerate(self._batches)}
            number = 0
        return next((batch for batch in self._batches[number:] if _last_offset(batch) >= offset), None)


def _last_offset(batch: FileBatch) -> int:
    if batch.magic < 2:
        return batch.offset
    header = BATCH_HEADER.read(batch.header())
    return wrap64(header.base_offset + header.last_offset_delta)


def _largest_timestamp(batch: FileBatch) -> int:
    data = batch.load()
    if batch.magic >= 2:
        return max((record.timestamp_ms for record in read_records(data)), default=NO_TIMESTAMP)
    outer = TextMessage(data[LOG_OVERHEAD:], batch.offset)
    largest = NO_TIMESTAMP
    for message in read_messages(outer):
        if outer.codec:
            check_inner(message)
        largest = max(largest, message.timestamp_ms)
    return largest
