"""Make the Arrow columns that have one value for all records of a batch, or are computed from such values."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from octavo.records.arrow.numbers import from_numpy
from octavo.records.arrow.schema import FIELDS
from octavo.records.arrow.sink import Int64s
from octavo.records.kernels import scan
from octavo.records.layout import MAX_SEQUENCE, NO_SEQUENCE, Attributes, Codec, TimestampType

_V2_ONLY = np.array([0, 0, 0xFF], np.int64)  # mask by magic: those flags exist in magic 2 only

_TABLE_COLUMNS: Final = {
    "leaderEpoch": scan.LEADER_EPOCH,
    "producerId": scan.PRODUCER_ID,
    "producerEpoch": scan.PRODUCER_EPOCH,
    "magic": scan.MAGIC,
    "position": scan.POSITION,
}


# Columns that only depend on the magic and the attributes of a batch.
_OF_FLAGS: Final = frozenset({"timestampType", "isTransactional", "isControl", "compression", "magic"})
_FLAGS: Final = slice(scan.MAGIC, scan.ATTRIBUTES + 1)
assert scan.ATTRIBUTES == scan.MAGIC + 1


_KEPT_ROWS: Final = 1 << 18
_kept: Final[dict[str, tuple[list[int], pa.Array]]] = {}  # the last such column with only one value, and its flags


def batch_column(name: str, table: Int64s, counts: Int64s, offsets: Int64s) -> pa.Array:
    """Return one of these columns.

    table: the batches of which records were taken
    counts: how many records were taken from each of them
    offsets: the offsets of these records
    """
    if name not in _OF_FLAGS:
        return _column(name, table, counts, offsets)
    flags = table[:, _FLAGS]
    if len(table) > 1 and (flags != flags[0]).any():
        return _column(name, table, counts, offsets)
    return _constant(name, table[:1], len(offsets))


def _constant(name: str, batch: Int64s, rows: int) -> pa.Array:
    """Return a column with the same value for all records, like those of `batch`. It is kept for the next chunk."""
    flags = batch[0, _FLAGS].tolist()
    known = _kept.get(name)
    if known is not None and known[0] == flags and rows <= len(known[1]):
        return known[1].slice(0, rows)
    size = 1 << max(10, rows.bit_length())
    column = _column(name, batch, np.array([size]), np.zeros(size, np.int64))
    if size <= _KEPT_ROWS:
        _kept[name] = flags, column
    return column.slice(0, rows)


def _column(name: str, table: Int64s, counts: Int64s, offsets: Int64s) -> pa.Array:
    rows = len(offsets)

    def spread(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if len(values) and (values == values[0]).all():
            return np.full(rows, values[0])
        return np.repeat(values, counts)

    attributes = table[:, scan.ATTRIBUTES]
    flags = attributes & _V2_ONLY[table[:, scan.MAGIC]]
    match name:
        case "timestampType":
            kinds = np.where(table[:, scan.MAGIC] == 0, int(TimestampType.NONE), attributes >> 3 & 1)
            return from_numpy(spread(kinds.astype(np.int32)), pa.int32())
        case "sequence":
            base = spread(table[:, scan.BASE_SEQUENCE])
            delta = offsets - spread(table[:, scan.BASE_OFFSET])
            # 0 follows the largest sequence. No writer writes a negative delta; Java's 32 bits give this result.
            after = np.where(delta < 0, base + delta + 2**31, (base + delta) & MAX_SEQUENCE)
            return from_numpy(np.where(base < 0, NO_SEQUENCE, after).astype(np.int32), pa.int32())
        case "isTransactional":
            return _truths(spread((flags & Attributes.TRANSACTIONAL) != 0))
        case "isControl":
            return _truths(spread((flags & Attributes.CONTROL) != 0))
        case "compression":
            codes = from_numpy(spread((attributes & Attributes.CODEC).astype(np.int8)), pa.int8())
            return pa.DictionaryArray.from_arrays(codes, _codec_names()).dictionary_decode()
        case _:
            kind = FIELDS[name].type
            return from_numpy(spread(table[:, _TABLE_COLUMNS[name]].astype(f"i{kind.bit_width // 8}")), kind)


def _truths(values: npt.NDArray[np.bool_]) -> pa.Array:
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(np.packbits(values, bitorder="little"))])


@cache
def _codec_names() -> pa.Array:
    names = [codec.name.lower().encode() for codec in Codec]
    ends = np.cumsum([0, *map(len, names)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(names), pa.py_buffer(ends), pa.py_buffer(b"".join(names)))
