"""The columns of a RecordBatch as flat arrays that the encoding kernel takes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from octavo.errors import InvalidInput
from octavo.records.kernels import encode
from octavo.records.layout import NO_TIMESTAMP

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


class ByteRows(NamedTuple):
    """A column of nullable byte strings: where each begins, how long it is (-1 for null), and the bytes."""

    starts: Int32s
    lengths: Int32s
    data: npt.NDArray[np.uint8]


def encode_rows(batch: pa.RecordBatch, base_offset: int) -> encode.Rows:
    """What records are made of; columns that `batch` lacks are null, empty, or counted from `base_offset`."""
    header_ends, header_keys, header_values = _headers(batch)
    arrays: tuple[npt.NDArray[Any], ...] = (
        _offsets(batch, base_offset),
        _timestamps(batch),
        *byte_rows(batch, "key"),
        *byte_rows(batch, "value"),
        header_ends,
        *header_keys,
        *header_values,
    )
    return encode.Rows(*map(_read_only, arrays))


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A view of the one type that the kernel is compiled for."""
    view = array.view()
    view.flags.writeable = False
    return view


def column(batch: pa.RecordBatch, name: str) -> pa.Array | None:
    """The column of that name, if there is one."""
    index = batch.schema.get_field_index(name)
    return None if index < 0 else batch.column(index)


def integers(batch: pa.RecordBatch, name: str) -> Int64s | None:
    """A column of whole numbers or truth values without nulls, if there is one."""
    array = column(batch, name)
    if array is None:
        return None
    if array.null_count:
        raise InvalidInput(f"column {name!r} holds nulls")
    if not pa.types.is_integer(array.type) and not pa.types.is_boolean(array.type):
        raise InvalidInput(f"column {name!r} is {array.type}, not a whole number")
    result: Int64s = array.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return result


def byte_rows(batch: pa.RecordBatch, name: str) -> ByteRows:
    """A column of bytes or text; all null where there is none."""
    array = column(batch, name)
    if array is None or pa.types.is_null(array.type):
        return ByteRows(np.zeros(batch.num_rows, np.int32), np.full(batch.num_rows, -1, np.int32), _NOTHING)
    return _byte_rows(array, name)


_PER_MS = {"us": pa.scalar(1000), "ns": pa.scalar(1_000_000)}
_NOTHING: npt.NDArray[np.uint8] = np.empty(0, np.uint8)


def _byte_rows(array: pa.Array, name: str) -> ByteRows:
    if not (pa.types.is_binary(array.type) or pa.types.is_string(array.type)):
        try:
            array = array.cast(pa.binary())
        except pa.ArrowException as error:
            raise InvalidInput(f"column {name!r} is {array.type}, which cannot be bytes: {error}") from None
    _, ends, data = array.buffers()
    if not len(array):
        return ByteRows(np.empty(0, np.int32), np.empty(0, np.int32), _NOTHING)
    limits = np.frombuffer(ends, np.int32)[array.offset : array.offset + len(array) + 1]
    starts = limits[:-1]
    lengths = np.diff(limits)
    if array.null_count:
        lengths[pc.is_null(array).to_numpy(zero_copy_only=False)] = -1
    return ByteRows(starts, lengths, _NOTHING if data is None else np.frombuffer(data, np.uint8))


def _offsets(batch: pa.RecordBatch, base_offset: int) -> Int64s:
    offsets = integers(batch, "offset")
    if offsets is None:
        return np.arange(base_offset, base_offset + batch.num_rows, dtype=np.int64)
    if len(offsets) and offsets[0] < 0:
        raise InvalidInput(f"the offset {offsets[0]} is negative")
    if len(offsets) > 1 and not (np.diff(offsets) > 0).all():
        raise InvalidInput("offsets must grow from row to row")
    return offsets


def _timestamps(batch: pa.RecordBatch) -> Int64s:
    """Milliseconds; a null is Kafka's -1. `timestampMs` counts where both columns are there."""
    exact = integers(batch, "timestampMs")
    array = column(batch, "timestamp")
    if exact is None and array is not None:
        if not pa.types.is_timestamp(array.type):
            raise InvalidInput(f"column 'timestamp' is {array.type}, not a timestamp")
        exact = _milliseconds(array)
    if exact is None:
        return np.full(batch.num_rows, NO_TIMESTAMP, np.int64)
    if len(exact) and exact.min() < NO_TIMESTAMP:
        raise InvalidInput(f"the timestamp {exact.min()} ms is negative, which Kafka refuses (-1 means none)")
    return exact


def _milliseconds(array: pa.Array) -> Int64s:
    """Timestamps of any unit, rounded down; a null is Kafka's -1."""
    units = array.view(pa.int64())
    if array.null_count:
        units = units.fill_null(0)
    numbers: Int64s = units.to_numpy()
    if array.type.unit == "s":
        numbers = numbers * 1000
    elif array.type.unit != "ms":
        per_ms = _PER_MS[array.type.unit]
        # Arrow divides several times as fast as NumPy, but rounds towards zero.
        negative = len(numbers) and numbers.min() < 0
        numbers = numbers // per_ms.as_py() if negative else pc.divide(units, per_ms).to_numpy()
    if array.null_count:
        numbers = np.where(pc.is_null(array).to_numpy(zero_copy_only=False), NO_TIMESTAMP, numbers)
    return numbers


def _headers(batch: pa.RecordBatch) -> tuple[Int32s, ByteRows, ByteRows]:
    array = column(batch, "headers")
    none = ByteRows(np.empty(0, np.int32), np.empty(0, np.int32), _NOTHING)
    if array is None or pa.types.is_null(array.type) or not len(array):
        return np.zeros(batch.num_rows + 1, np.int32), none, none
    if not pa.types.is_list(array.type) or not pa.types.is_struct(array.type.value_type):
        raise InvalidInput(f"column 'headers' is {array.type}, not a list of (key, value)")
    if array.null_count:  # a null list is an empty one, and its items, if it has any, do not count
        array = pc.if_else(pc.is_null(array), pa.scalar([], array.type), array)
    ends = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1]
    items = array.values
    if items.null_count:
        raise InvalidInput("column 'headers' holds a header that is null")
    try:
        keys, values = items.field("key"), items.field("value")
    except KeyError:
        raise InvalidInput(f"column 'headers' is {array.type}, not a list of (key, value)") from None
    if keys.slice(int(ends[0]), int(ends[-1] - ends[0])).null_count:
        raise InvalidInput("column 'headers' holds a key that is null")
    return ends, _byte_rows(keys, "headers.key"), _byte_rows(values, "headers.value")
