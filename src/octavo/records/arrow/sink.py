"""Allocate memory for one chunk of decoded records, and make Arrow arrays of it without copying."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from octavo.records.arrow.schema import FIELDS, TIMESTAMP
from octavo.records.kernels import decode
from octavo.records.text import read_text

Int64s = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


class Room(NamedTuple):
    """The capacity of a chunk."""

    rows: int
    key_bytes: int
    value_bytes: int
    headers: int
    header_bytes: int  # for the keys of headers, and as much again for their values


class Memory:
    """One buffer from Arrow's pool. The pool reuses memory that the last chunk has left warm."""

    def __init__(self, size: int, dtype: type[np.generic]) -> None:
        self.buffer = pa.allocate_buffer(size * np.dtype(dtype).itemsize)
        self.array: npt.NDArray[Any] = np.frombuffer(self.buffer, dtype)

    def take(self, count: int) -> pa.Buffer:
        """Return the first `count` items, without copying unless they fill less than half of the memory."""
        size = count * self.array.itemsize
        if 2 * size >= self.buffer.size:
            return self.buffer.slice(0, size)
        return pa.py_buffer(self.array[:count].tobytes())


class ByteColumn:
    """A column of nullable byte strings."""

    def __init__(self, rows: int, size: int) -> None:
        self.ends = Memory(rows + 1, np.int32)
        self.ends.array[0] = 0
        self.data = Memory(size, np.uint8)
        self.bits = np.full((rows + 7) // 8, 0xFF, np.uint8)

    def array(self, kind: pa.DataType, rows: int, size: int) -> pa.Array:
        """Return the first `rows` of the column, which take `size` bytes."""
        bits = pa.py_buffer(self.bits)
        return pa.Array.from_buffers(kind, rows, [bits, self.ends.take(rows + 1), self.data.take(size)])


class Chunk:
    """The memory for the output of one call of the decoding kernel."""

    def __init__(self, columns: frozenset[str], room: Room, batches: int) -> None:
        headers = "headers" in columns
        self.batch_rows = np.zeros(batches, np.int64)
        self.offsets = Memory(room.rows, np.int64)
        self.timestamps = Memory(room.rows, np.int64)
        self.micros = Memory(room.rows if "timestamp" in columns else 0, np.int64)
        self.keys = ByteColumn(room.rows, room.key_bytes) if "key" in columns else ByteColumn(0, 0)
        self.values = ByteColumn(room.rows, room.value_bytes) if "value" in columns else ByteColumn(0, 0)
        self.header_ends = Memory(room.rows + 1 if headers else 1, np.int32)
        self.header_ends.array[0] = 0
        self.header_keys = ByteColumn(room.headers, room.header_bytes) if headers else ByteColumn(0, 0)
        self.header_values = ByteColumn(room.headers, room.header_bytes) if headers else ByteColumn(0, 0)

    @property
    def sink(self) -> decode.Sink:
        """The chunk in the form that the kernel takes."""
        return decode.Sink(
            batch_rows=self.batch_rows,
            offsets=self.offsets.array,
            timestamps=self.timestamps.array,
            micros=self.micros.array,
            key_ends=self.keys.ends.array,
            keys=self.keys.data.array,
            key_bits=self.keys.bits,
            value_ends=self.values.ends.array,
            values=self.values.data.array,
            value_bits=self.values.bits,
            header_ends=self.header_ends.array,
            header_key_ends=self.header_keys.ends.array,
            header_keys=self.header_keys.data.array,
            header_value_ends=self.header_values.ends.array,
            header_values=self.header_values.data.array,
            header_value_bits=self.header_values.bits,
        )

    def record_columns(self, cursor: Int64s) -> dict[str, Any]:
        """Return, by name, functions that make the columns which have a value for each record."""
        rows = int(cursor[decode.ROWS])
        return {
            "offset": lambda: pa.Array.from_buffers(pa.int64(), rows, [None, self.offsets.take(rows)]),
            "timestamp": lambda: self._timestamps(rows, cursor),
            "timestampMs": lambda: pa.Array.from_buffers(pa.int64(), rows, [None, self.timestamps.take(rows)]),
            "key": lambda: self.keys.array(pa.binary(), rows, int(cursor[decode.KEY_BYTES])),
            "value": lambda: self.values.array(pa.binary(), rows, int(cursor[decode.VALUE_BYTES])),
            "headers": lambda: self._headers(rows, cursor),
        }

    def _timestamps(self, rows: int, cursor: Int64s) -> pa.Array:
        """Return the timestamps in microseconds; those that do not fit are null."""
        bits = None
        if cursor[decode.UNFIT]:
            stored = self.timestamps.array[:rows]
            fits = (stored <= decode.MAX_MS) & (stored >= -decode.MAX_MS)
            self.micros.array[:rows][~fits] = 0
            bits = pa.py_buffer(np.packbits(fits, bitorder="little"))
        return pa.Array.from_buffers(TIMESTAMP, rows, [bits, self.micros.take(rows)])

    def _headers(self, rows: int, cursor: Int64s) -> pa.Array:
        count = int(cursor[decode.HEADERS])
        size = int(cursor[decode.HEADER_KEY_BYTES])
        kind = FIELDS["headers"].type
        keys = pa.Array.from_buffers(
            pa.string(), count, [None, self.header_keys.ends.take(count + 1), self.header_keys.data.take(size)]
        )
        values = self.header_values.array(pa.binary(), count, int(cursor[decode.HEADER_VALUE_BYTES]))
        structs = pa.Array.from_buffers(kind.value_type, count, [None], children=[_as_java_reads(keys), values])
        return pa.Array.from_buffers(kind, rows, [None, self.header_ends.take(rows + 1)], children=[structs])


def _as_java_reads(keys: pa.Array) -> pa.Array:
    """Replace malformed UTF-8 in header keys as Java replaces it."""
    try:
        keys.validate(full=True)
    except pa.ArrowInvalid:
        raw = keys.view(pa.binary()).to_pylist()
        return pa.array([read_text(key) for key in raw], pa.string())
    return keys
