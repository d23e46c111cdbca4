"""Converts the records of an inbox to columns for the kernels, all at once instead of record by record."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from octavo.log.producer.future import Delivery
from octavo.log.producer.inbox import FUTURE, ITEMS, KEY, TIME, VALUE, Inbox, Special
from octavo.records.kernels import Kernel
from octavo.records.kernels.encode_input import ByteColumn, Rows

Bytes = npt.NDArray[np.uint8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

NO_PARTITION: Final = -1
_NO_BYTES: Final = np.frombuffer(b"", np.uint8)
_NO_NUMBERS: Final = np.frombuffer(b"", np.int32)
_WORTH_ARROW: Final = 1000  # number of records from which Arrow is faster
_VARINT_STEPS: Final = (1 << 6, 1 << 13, 1 << 20, 1 << 27)  # from each of these on, a varint takes one byte more


class Part(NamedTuple):
    """A column of byte strings, stored one after the other. A length of -1 means null."""

    starts: Int32s
    lengths: Int32s
    data: Bytes

    def taken(self, order: Int64s | None) -> ByteColumn:
        """Return the column for the kernel `encode`, in this order; None keeps it as it is."""
        starts, lengths = (self.starts, self.lengths) if order is None else (self.starts[order], self.lengths[order])
        limits = np.concatenate((starts, starts + lengths))
        return ByteColumn(_read_only(limits), len(starts), _NO_BYTES, 0, self.data)


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """The records of one topic, in the order in which they were sent."""

    count: int
    timestamps_ms: Int64s
    keys: Part
    values: Part
    partitions: Int32s  # partitions assigned already, or `NO_PARTITION`
    header_ends: Int32s  # index after each record's last header, with a 0 in front
    header_keys: Part
    header_values: Part

    @property
    def size(self) -> int:
        """Total bytes of all keys, values and headers."""
        parts = (self.keys, self.values, self.header_keys, self.header_values)
        return sum(len(part.data) for part in parts)

    def sizes(self) -> Int64s:
        """Upper bounds for the size of each record in a batch, at most two bytes too large."""
        body = _nullable_sizes(self.values.lengths)
        body += 6
        body += _nullable_sizes(self.keys.lengths) if len(self.keys.data) else 1
        ends = self.header_ends
        if ends[-1]:
            each = _nullable_sizes(self.header_keys.lengths) + _nullable_sizes(self.header_values.lengths)
            sums = np.concatenate(([0], np.cumsum(each)))
            body += sums[ends[1:]] - sums[ends[:-1]]
        return body + _varint_sizes(body)

    def rows(self, order: Int64s | None) -> Rows:
        """Return rows for the kernel `encode`, in `order`, with offsets from 0. With headers, `order` must be None."""
        assert order is None or not self.header_ends[-1]
        timestamps = self.timestamps_ms if order is None else self.timestamps_ms[order]
        return Rows(
            _numbers(self.count),
            _read_only(timestamps[:]),
            self.keys.taken(order),
            self.values.taken(order),
            self.header_ends if self.header_ends[-1] else _NO_NUMBERS,
            self.header_keys.taken(None),
            self.header_values.taken(None),
        )


def columns_of(inbox: Inbox, items: list[Any], clock_unit: int) -> RecordColumns:
    """Make columns of the records in `items`. `clock_unit` is the number of clock ticks in a millisecond."""
    make = _part if len(items) < _WORTH_ARROW * ITEMS else _part_by_arrow
    times = items[TIME::ITEMS]
    count = len(times)
    special = _take_special(times) if inbox.has_special else []
    timestamps_ms = np.fromiter(times, np.int64, count)
    timestamps_ms //= clock_unit
    partitions = np.full(count, NO_PARTITION, np.int32)
    partitions[: len(inbox.assigned)] = inbox.assigned
    for row, record in special:
        if record.timestamp_ms is not None:
            timestamps_ms[row] = record.timestamp_ms
        if record.partition is not None:
            partitions[row] = record.partition
    keys = make(items[KEY::ITEMS]) if inbox.has_keys else _nulls(count)
    return RecordColumns(count, timestamps_ms, keys, make(items[VALUE::ITEMS]), partitions, *_headers(special, count))


def _take_special(times: list[Any]) -> list[tuple[int, Special]]:
    """Replace each `Special` in `times` by its time. Return the rows and the `Special`s."""
    special = [(row, time) for row, time in enumerate(times) if type(time) is Special]
    for row, record in special:
        times[row] = record.time
    return special


def add_partitions_of_keys(columns: RecordColumns, kernel: Kernel, partition_count: int, partitions: Int32s) -> None:
    """Assign the partition of their key to the records that have a key and no partition yet."""
    kernel(columns.keys.data, columns.keys.starts, columns.keys.lengths, partition_count, partitions)


def failed_delivery(inbox: Inbox, items: list[Any], error: BaseException) -> None:
    """Fail the futures of all these records."""
    count = len(items) // ITEMS
    none = np.full(count, NO_PARTITION, np.int32)
    delivery = Delivery(inbox.finisher, inbox.topic, none.astype(np.int64), none, none.astype(np.int64))
    delivery.fail(slice(0, count), error)
    for index, future in enumerate(items[FUTURE::ITEMS]):
        future._index = index
        future._holder = delivery


def reordered(items: list[Any], order: Int64s) -> list[Any]:
    """Return the items of records in another order."""
    return list(chain.from_iterable([items[at : at + ITEMS] for at in (order * ITEMS).tolist()]))


def _part(contents: list[Any]) -> Part:
    try:
        sizes = list(map(len, contents))
    except TypeError:  # some are null; looking for them first would take longer
        lengths = np.array([-1 if content is None else len(content) for content in contents], np.int32)
        contents = [content for content in contents if content is not None]
        held = np.maximum(lengths, 0)
    else:
        held = lengths = np.fromiter(sizes, np.int32, len(sizes))
    starts = (np.cumsum(held) - held).astype(np.int32)
    return Part(_read_only(starts), _read_only(lengths), np.frombuffer(b"".join(contents), np.uint8))


def _part_by_arrow(contents: list[Any]) -> Part:
    """Do the same as `_part` with Arrow, in half the time."""
    import pyarrow as pa

    made = pa.array(contents, pa.binary())
    _, offsets, data = made.buffers()
    ends = np.frombuffer(offsets, np.int32, len(contents) + 1)
    lengths = np.diff(ends)
    if made.null_count:
        lengths[np.asarray(made.is_null())] = -1
    joined = _NO_BYTES if data is None else np.frombuffer(data, np.uint8, int(ends[-1]))
    return Part(_read_only(ends[:-1]), _read_only(lengths), _read_only(joined))


def _nulls(count: int) -> Part:
    lengths = np.full(count, -1, np.int32)
    return Part(_read_only(lengths), _read_only(lengths), _NO_BYTES)


def _headers(special: list[tuple[int, Special]], count: int) -> tuple[Int32s, Part, Part]:
    counts = np.zeros(count + 1, np.int32)
    pairs: list[tuple[bytes, bytes | None]] = []
    for row, record in special:
        counts[row + 1] = len(record.headers)
        pairs += record.headers
    if not pairs:
        none = Part(_NO_NUMBERS, _NO_NUMBERS, _NO_BYTES)
        return _read_only(counts), none, none
    ends = _read_only(np.cumsum(counts, dtype=np.int32))
    return ends, _part([key for key, _ in pairs]), _part([value for _, value in pairs])


def _numbers(count: int) -> Any:
    return _read_only(np.arange(count, dtype=np.int64))


def _read_only(numbers: Any) -> Any:
    """Make an array read-only, as arrays over `bytes` are: a compiled kernel needs all of them to be of one kind."""
    numbers.flags.writeable = False
    return numbers


def _varint_sizes(numbers: Any) -> Int64s:
    """The size in bytes of each number as a varint. Numbers must not be negative."""
    sizes = np.ones(len(numbers), np.int64)
    largest = int(numbers.max())
    for step in _VARINT_STEPS:
        if largest < step:
            break
        sizes += numbers >= step
    return sizes


def _nullable_sizes(lengths: Int32s) -> Int64s:
    held = np.maximum(lengths, 0)
    sizes = _varint_sizes(held)
    sizes += held
    return sizes
