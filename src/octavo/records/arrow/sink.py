"""Allocate memory for chunks of decoded records, and make Arrow arrays of it without copying."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from octavo.records.arrow.schema import FIELDS, TIMESTAMP
from octavo.records.kernels import decode
from octavo.records.text import read_text

Int64s = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

MADE_LAST: Final = ("offset", "timestampMs")  # columns from which others are computed
_KEPT: Final = 16 << 20  # bytes: more memory than this is not kept for the next reader


class Room(NamedTuple):
    """The capacity of a chunk."""

    rows: int
    key_bytes: int
    value_bytes: int
    headers: int
    header_bytes: int  # for the keys of headers, and as much again for their values


class Memory:
    """Memory for one column of one chunk after another. What no chunk keeps is used for the next one."""

    __slots__ = ("_buffer", "array", "dtype")

    def __init__(self, dtype: type[np.generic]) -> None:
        self.dtype: Final = np.dtype(dtype)
        self.array: npt.NDArray[Any] = _nothing(self.dtype)
        self._buffer: pa.Buffer = None

    def reserve(self, count: int) -> None:
        """Let `array` have `count` items or more, of any value."""
        if len(self.array) < count:
            # Arrow's pool reuses memory that an earlier chunk has left warm.
            self._buffer = pa.allocate_buffer(count * self.dtype.itemsize)
            self.array = np.frombuffer(self._buffer, self.dtype)

    def take(self, count: int) -> pa.Buffer:
        """Return the first `count` items, without copying unless they fill less than half of the memory."""
        size = count * self.dtype.itemsize
        if self._buffer is None or 2 * size < self._buffer.size:
            return pa.py_buffer(self.array[:count].tobytes())
        taken = self._buffer.slice(0, size)
        self.forget()
        return taken

    def forget(self) -> None:
        """Do not use this memory again."""
        self._buffer = None
        self.array = _nothing(self.dtype)


@cache
def _nothing(dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    return np.empty(0, dtype)


class ByteColumn:
    """A column of nullable byte strings."""

    def __init__(self) -> None:
        self.ends: Final = Memory(np.int32)
        self.data: Final = Memory(np.uint8)
        self.bits: Final = Memory(np.uint8)
        self.reserve(0, 0)

    def reserve(self, rows: int, size: int) -> None:
        """Make room for `rows` strings that take `size` bytes."""
        self.ends.reserve(rows + 1)
        self.ends.array[0] = 0
        self.data.reserve(size)
        self.bits.reserve((rows + 7) // 8)
        self.bits.array.fill(0xFF)

    def take(self, kind: pa.DataType, rows: int, size: int, nulls: int) -> pa.Array:
        """Return the first `rows` of the column, which take `size` bytes; `nulls` of them are null."""
        bits = self.bits.take((rows + 7) // 8) if nulls else None
        return pa.Array.from_buffers(kind, rows, [bits, self.ends.take(rows + 1), self.data.take(size)], nulls)


class Chunk:
    """The memory for the output of the decoding kernel, for one chunk after another."""

    def __init__(self, columns: Sequence[str], batches: int) -> None:
        """`batches` is the number of rows of the table that the kernel decodes."""
        self._wants: Final = frozenset(columns)
        self.batch_rows: Final = np.empty(batches, np.int64)
        self.offsets: Final = Memory(np.int64)
        self._timestamps: Final = Memory(np.int64)
        self._micros: Final = Memory(np.int64)
        self._keys: Final = ByteColumn()
        self._values: Final = ByteColumn()
        self._header_ends: Final = Memory(np.int32)
        self._header_keys: Final = ByteColumn()
        self._header_values: Final = ByteColumn()
        # They make the columns that have a value for each record. They take a cursor.
        self.makers: Final[dict[str, Callable[[list[int]], pa.Array]]] = {
            "offset": lambda cursor: _int64s(self.offsets, cursor[decode.ROWS]),
            "timestamp": self._make_timestamps,
            "timestampMs": lambda cursor: _int64s(self._timestamps, cursor[decode.ROWS]),
            "key": self._make_keys,
            "value": self._make_values,
            "headers": self._make_headers,
        }

    def reserve(self, room: Room) -> decode.Sink:
        """Make room for the next chunk. Return it in the form that the kernel takes.

        The kernel sees no more of it than it may fill, even if an earlier chunk has left more.
        """
        rows = room.rows
        self.offsets.reserve(rows)
        self._timestamps.reserve(rows)
        if "timestamp" in self._wants:
            self._micros.reserve(rows)
        if "key" in self._wants:
            self._keys.reserve(rows, room.key_bytes)
        if "value" in self._wants:
            self._values.reserve(rows, room.value_bytes)
        if "headers" in self._wants:
            self._header_ends.reserve(rows + 1)
            self._header_ends.array[0] = 0
            self._header_keys.reserve(room.headers, room.header_bytes)
            self._header_values.reserve(room.headers, room.header_bytes)
        return decode.Sink(
            batch_rows=self.batch_rows,
            offsets=self.offsets.array[:rows],
            timestamps=self._timestamps.array,
            micros=self._micros.array,
            key_ends=self._keys.ends.array,
            keys=self._keys.data.array[: room.key_bytes],
            key_bits=self._keys.bits.array,
            value_ends=self._values.ends.array,
            values=self._values.data.array[: room.value_bytes],
            value_bits=self._values.bits.array,
            header_ends=self._header_ends.array,
            header_key_ends=self._header_keys.ends.array[: room.headers + 1],
            header_keys=self._header_keys.data.array[: room.header_bytes],
            header_value_ends=self._header_values.ends.array[: room.headers + 1],
            header_values=self._header_values.data.array[: room.header_bytes],
            header_value_bits=self._header_values.bits.array,
        )

    def forget_large(self) -> None:
        """Free the memory if an unusually large chunk has left much of it."""
        byte_columns = self._keys, self._values, self._header_keys, self._header_values
        parts = [part for column in byte_columns for part in (column.ends, column.data, column.bits)]
        memories = [self.offsets, self._timestamps, self._micros, self._header_ends, *parts]
        if sum(memory.array.nbytes for memory in memories) > _KEPT:
            for memory in memories:
                memory.forget()

    def _make_timestamps(self, cursor: list[int]) -> pa.Array:
        """Return the timestamps in microseconds; those that do not fit are null."""
        bits, rows, unfit = None, cursor[decode.ROWS], cursor[decode.UNFIT]
        if unfit:
            stored = self._timestamps.array[:rows]
            fits = (stored <= decode.MAX_MS) & (stored >= -decode.MAX_MS)
            self._micros.array[:rows][~fits] = 0
            bits = pa.py_buffer(np.packbits(fits, bitorder="little"))
        return pa.Array.from_buffers(TIMESTAMP, rows, [bits, self._micros.take(rows)], unfit)

    def _make_keys(self, cursor: list[int]) -> pa.Array:
        return self._keys.take(pa.binary(), cursor[decode.ROWS], cursor[decode.KEY_BYTES], cursor[decode.NULL_KEYS])

    def _make_values(self, cursor: list[int]) -> pa.Array:
        nulls = cursor[decode.NULL_VALUES]
        return self._values.take(pa.binary(), cursor[decode.ROWS], cursor[decode.VALUE_BYTES], nulls)

    def _make_headers(self, cursor: list[int]) -> pa.Array:
        rows, count = cursor[decode.ROWS], cursor[decode.HEADERS]
        if not count:
            return _no_headers(1 << max(10, rows.bit_length())).slice(0, rows)
        keys = self._header_keys.take(pa.string(), count, cursor[decode.HEADER_KEY_BYTES], 0)
        sizes = cursor[decode.HEADER_VALUE_BYTES], cursor[decode.NULL_HEADER_VALUES]
        values = self._header_values.take(pa.binary(), count, *sizes)
        return _lists(rows, self._header_ends.take(rows + 1), [_as_java_reads(keys), values])


def _int64s(memory: Memory, rows: int) -> pa.Array:
    return pa.Array.from_buffers(pa.int64(), rows, [None, memory.take(rows)], 0)


def _lists(rows: int, ends: pa.Buffer, children: list[pa.Array]) -> pa.Array:
    kind = FIELDS["headers"].type
    structs = pa.Array.from_buffers(kind.value_type, len(children[0]), [None], children=children)
    return pa.Array.from_buffers(kind, rows, [None, ends], children=[structs])


@lru_cache(maxsize=2)
def _no_headers(rows: int) -> pa.Array:
    """Return empty lists. They are kept, as most chunks have no others."""
    return _lists(rows, pa.py_buffer(bytes(4 * (rows + 1))), [pa.nulls(0, pa.string()), pa.nulls(0, pa.binary())])


def _as_java_reads(keys: pa.Array) -> pa.Array:
    """Replace malformed UTF-8 in header keys as Java replaces it."""
    try:
        keys.validate(full=True)
    except pa.ArrowInvalid:
        raw = keys.view(pa.binary()).to_pylist()
        return pa.array([read_text(key) for key in raw], pa.string())
    return keys
