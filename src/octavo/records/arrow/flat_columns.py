"""Turn the columns of a RecordBatch into flat arrays for the encoding kernel."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from octavo.errors import InvalidInput
from octavo.records.arrow.numbers import to_numpy
from octavo.records.arrow.schema import FIELDS
from octavo.records.kernels import encode_input
from octavo.records.layout import NO_TIMESTAMP

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


class FlatColumns(NamedTuple):
    """The columns of a RecordBatch, in the form that the encoding kernel takes."""

    rows: encode_input.Rows
    micros: bool  # whether the timestamps are microseconds
    header_count: int
    size: int  # an upper bound for the bytes of all keys, values and headers

    def timestamps_ms(self) -> Int64s:
        """Return the timestamps in milliseconds, rounded down."""
        stored: Int64s = self.rows.timestamps
        if not len(stored):
            return np.full(len(self.rows.offsets), NO_TIMESTAMP, np.int64)
        return stored // 1000 if self.micros else stored


def columns_of(batch: pa.RecordBatch, base_offset: int) -> FlatColumns:
    """Return the columns of `batch`. Missing columns are empty; missing offsets count from `base_offset`."""
    timestamps, micros = _timestamps(batch)
    header_ends, *header_columns = _headers(batch)
    rows = encode_input.Rows(
        _read_only(_offsets(batch, base_offset)),
        _read_only(timestamps),
        _byte_column(column(batch, "key"), "key"),
        _byte_column(column(batch, "value"), "value"),
        _read_only(header_ends),
        *header_columns,
    )
    header_count = max(0, len(rows.header_keys.limits) - 1)
    size = sum(map(_extent, (rows.keys, rows.values, rows.header_keys, rows.header_values)))
    return FlatColumns(rows, micros, header_count, size)


def _extent(part: encode_input.ByteColumn) -> int:
    """Return an upper bound for the bytes of a column, without reading every row."""
    return int(part.limits[-1]) - int(part.limits[0]) if len(part.limits) else 0


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a read-only view of `array`: the bounds-checked kernel is compiled for read-only arrays only."""
    view = array.view()
    view.flags.writeable = False
    return view


def column(batch: pa.RecordBatch, name: str) -> pa.Array | None:
    """Return the column `name`, or None if there is no such column."""
    index = batch.schema.get_field_index(name)
    return batch.column(index) if index >= 0 else None


def check_names(batch: pa.RecordBatch) -> None:
    """Raises `InvalidInput` for a duplicate name. Arrow would treat the column as missing."""
    names = batch.schema.names
    for name in names if len(set(names)) < len(names) else ():
        if name in FIELDS and names.count(name) > 1:
            raise InvalidInput(f"there are several columns {name!r}")


def integers(batch: pa.RecordBatch, name: str) -> Int64s | None:
    """Return a column of integers or booleans without nulls, or None if there is no such column."""
    array = column(batch, name)
    if array is None:
        return None
    if array.null_count:
        raise InvalidInput(f"column {name!r} holds nulls")
    if not pa.types.is_integer(array.type) and not pa.types.is_boolean(array.type):
        raise InvalidInput(f"column {name!r} is {array.type}, not a whole number")
    if array.type != _INT64:
        try:
            array = array.cast(_INT64)
        except pa.ArrowException as error:
            raise InvalidInput(f"column {name!r} holds a number that is too large: {error}") from None
    return _aligned(to_numpy(array))


def _aligned(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return `array` at an aligned address, which kernels need; Arrow may begin an array at any address."""
    return array if array.flags.aligned else array.copy()


_INT64 = pa.int64()
_MAX_SECONDS = (2**63 - 1) // 1000
_PER_MS = {"ms": 1, "us": 1000, "ns": 1_000_000}


def _bytes_of(buffer: pa.Buffer | None) -> npt.NDArray[np.uint8]:
    return _read_only(np.frombuffer(b"" if buffer is None else buffer, np.uint8))


_NO_TIMES = np.empty(0, np.int64)
_NO_NUMBERS = _read_only(np.empty(0, np.int32))
_ABSENT = encode_input.ByteColumn(_NO_NUMBERS, 0, _bytes_of(None), 0, _bytes_of(None))


def _byte_column(array: pa.Array | None, name: str) -> encode_input.ByteColumn:
    """Return a column of bytes or text for the kernel, which reads Arrow's own buffers."""
    if array is None or pa.types.is_null(array.type) or not len(array):
        return _ABSENT
    if not (pa.types.is_binary(array.type) or pa.types.is_string(array.type)):
        try:
            array = array.cast(pa.binary())
        except pa.ArrowException as error:
            raise InvalidInput(f"column {name!r} is {array.type}, which cannot be bytes: {error}") from None
    valid, ends, data = array.buffers()
    content = _bytes_of(data)
    limits = _read_only(_limits(ends, array, len(content), name))
    bits = _bytes_of(valid if array.null_count else None)
    return encode_input.ByteColumn(limits, 1, bits, array.offset, content)


def _limits(ends: pa.Buffer, array: pa.Array, size: int, name: str) -> Int32s:
    """Return where each value of an array begins, and where the last one ends; Arrow does not check the bounds."""
    limits = _aligned(np.frombuffer(ends, np.int32)[array.offset : array.offset + len(array) + 1])
    if limits[0] < 0 or limits[-1] > size:
        raise InvalidInput(f"column {name!r} is no valid Arrow array: its values lie outside its data")
    if (limits[1:] < limits[:-1]).any():
        raise InvalidInput(f"column {name!r} is no valid Arrow array: its values begin after they end")
    return limits


def _offsets(batch: pa.RecordBatch, base_offset: int) -> Int64s:
    offsets = integers(batch, "offset")
    if offsets is None:
        return np.arange(base_offset, base_offset + batch.num_rows, dtype=np.int64)
    return offsets


def _timestamps(batch: pa.RecordBatch) -> tuple[Int64s, bool]:
    """Return milliseconds and False, or microseconds and True; a null is Kafka's -1.

    The column `timestampMs` has priority over `timestamp`.
    """
    exact = integers(batch, "timestampMs")
    if exact is not None:
        return exact, False
    array = column(batch, "timestamp")
    if array is None:
        return _NO_TIMES, False
    if not pa.types.is_timestamp(array.type):
        raise InvalidInput(f"column 'timestamp' is {array.type}, not a timestamp")
    if array.type.unit == "us" and not array.null_count:  # as `to_arrow` returns them; the kernel converts them
        return _aligned(to_numpy(array.view(_INT64))), True
    return _milliseconds(array), False


def _milliseconds(array: pa.Array) -> Int64s:
    """Convert timestamps of any unit to milliseconds, rounded down; a null is Kafka's -1."""
    numbers: Int64s = to_numpy(array.view(_INT64).fill_null(0))
    if array.type.unit == "s":
        if len(numbers) and (numbers.max() > _MAX_SECONDS or numbers.min() < -_MAX_SECONDS):
            raise InvalidInput("column 'timestamp' holds a time too far away for milliseconds")
        numbers = numbers * 1000
    else:
        numbers = numbers // _PER_MS[array.type.unit]
    if array.null_count:
        numbers = np.where(to_numpy(pc.is_null(array)) != 0, NO_TIMESTAMP, numbers)
    return numbers


def _headers(batch: pa.RecordBatch) -> tuple[Int32s, encode_input.ByteColumn, encode_input.ByteColumn]:
    array = column(batch, "headers")
    if array is None or pa.types.is_null(array.type) or not len(array):
        return _NO_NUMBERS, _ABSENT, _ABSENT
    if not pa.types.is_list(array.type) or not pa.types.is_struct(array.type.value_type):
        raise InvalidInput(f"column 'headers' is {array.type}, not a list of (key, value)")
    if array.null_count:  # a null list counts as empty, even if it has items
        array = pc.if_else(pc.is_null(array), pa.scalar([], array.type), array)
    ends = _limits(array.buffers()[1], array, len(array.values), "headers")
    items = array.values.slice(int(ends[0]), int(ends[-1] - ends[0]))
    if items.null_count:
        raise InvalidInput("column 'headers' holds a header that is null")
    try:
        keys, values = items.field("key"), items.field("value")
    except KeyError:
        raise InvalidInput(f"column 'headers' is {array.type}, not a list of (key, value)") from None
    if keys.null_count:
        raise InvalidInput("column 'headers' holds a key that is null")
    if not len(items):
        return _NO_NUMBERS, _ABSENT, _ABSENT
    return ends - ends[0], _byte_column(keys, "headers.key"), _byte_column(values, "headers.value")
