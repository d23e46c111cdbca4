"""The types of the arguments and results of each kernel.

Nothing checks the types of arguments when a kernel is called, except in the checked build, and only there are arrays
read-only that kernels may not write to: Numba would compile what takes such an array once more for other arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numba
from numba import types

from octavo.records.kernels import checksum, decode, encode, encode_input, index, partition, scan, validate
from octavo.records.kernels.compaction.fill import fill
from octavo.records.kernels.compaction.filter import filter_batches
from octavo.records.kernels.compilation.options import CHECKED
from octavo.records.kernels.inflation.inflate import inflate
from octavo.records.kernels.printing.lines import print_lines
from octavo.records.kernels.printing.text import print_records
from octavo.records.kernels.shredding.avro import shred_avro
from octavo.records.kernels.shredding.json import shred
from octavo.records.kernels.shredding.tree import Tree
from octavo.records.kernels.verification.examine import examine, examine_inflated

_INT = types.int64
_BYTES_IN = types.Array(types.uint8, 1, "C", readonly=CHECKED)
_INT32_IN = types.Array(types.int32, 1, "C", readonly=CHECKED)
_INT64_IN = types.Array(types.int64, 1, "C", readonly=CHECKED)
_BYTES = types.uint8[::1]
_INT32 = types.int32[::1]
_INT64 = types.int64[::1]
_TABLE = types.int64[:, ::1]

_TABLES = types.NamedUniTuple(_INT64, len(checksum.Tables._fields), checksum.Tables)
_WANTED = types.NamedUniTuple(_INT, len(decode.Wanted._fields), decode.Wanted)
_BYTE_COLUMN = (_INT32, _BYTES, _BYTES)
_SINK = types.NamedTuple(
    (_INT64, _INT64, _INT64, _INT64, *_BYTE_COLUMN, *_BYTE_COLUMN, _INT32, _INT32, _BYTES, *_BYTE_COLUMN), decode.Sink
)
_BYTE_ROWS = types.NamedTuple((_INT32_IN, _INT, _BYTES_IN, _INT, _BYTES_IN), encode_input.ByteColumn)
_ROWS = types.NamedTuple(
    (_INT64_IN, _INT64_IN, _BYTE_ROWS, _BYTE_ROWS, _INT32_IN, _BYTE_ROWS, _BYTE_ROWS), encode_input.Rows
)

_TREE = types.NamedTuple((_TABLE, _BYTES, _INT64, _TABLE, _BYTES, _INT64, _BYTES), Tree)

SIGNATURES: Final[dict[Callable[..., Any], Any]] = {
    scan.scan: types.UniTuple(_INT, 4)(_BYTES_IN, _INT, _INT, _TABLE, _INT, _INT, _INT, _INT, _INT),
    decode.decode: types.boolean(_TABLES, _BYTES_IN, _BYTES_IN, _TABLE, _INT, _INT64, _WANTED, _SINK),
    encode.encode: _INT(_TABLES, _ROWS, _INT, _TABLE, _INT, _INT, _INT, _INT, _BYTES, _TABLE),
    inflate: types.UniTuple(_INT, 3)(_BYTES_IN, _TABLE, _INT64_IN, _INT, _INT, _BYTES, _INT, _INT, _INT),
    checksum.verify: _INT(_TABLES, _BYTES_IN, _TABLE),
    partition.partition: types.void(_BYTES_IN, _INT32_IN, _INT32_IN, _INT, _INT32),
    index.index_batches: _INT(_TABLE, _INT, _INT, _INT, _INT, _INT64, _TABLE, _TABLE, _TABLE),
    validate.validate: types.UniTuple(_INT, 10)(
        _INT64_IN, _BYTES_IN, _INT, _BYTES_IN, _INT, _INT64_IN, _INT, _INT, _INT, _INT, _BYTES, _TABLE
    ),
    examine: types.UniTuple(_INT, 5)(_TABLES, _BYTES_IN, _INT, _INT, _INT, _INT64, _TABLE, _TABLE),
    examine_inflated: types.UniTuple(_INT, 2)(_TABLES, _BYTES_IN, _INT, _TABLE, _INT, _INT, _TABLE),
    shred_avro: _INT(_BYTES_IN, _INT32_IN, _BYTES_IN, _INT, _TABLE, _TREE, _TABLE, _BYTES),
    shred: _INT(_BYTES_IN, _INT32_IN, _BYTES_IN, _TREE, _TABLE, _BYTES),
    print_lines: types.UniTuple(_INT, 3)(_ROWS, _TABLE, _INT64_IN, _BYTES_IN, _INT, _INT, _BYTES),
    print_records: types.UniTuple(_INT, 3)(_BYTES_IN, _INT64, _INT64_IN, _BYTES_IN, _BYTES, _TABLE),
    fill: types.UniTuple(_INT, 3)(
        _BYTES_IN, _BYTES_IN, _TABLE, _INT64_IN, _INT, _INT, _INT64_IN, _INT64, _INT64, _TABLE
    ),
    filter_batches: types.UniTuple(_INT, 3)(
        _TABLES,
        _BYTES_IN,
        _BYTES_IN,
        _TABLE,
        _INT64_IN,
        _INT,
        _INT,
        _INT64_IN,
        _INT64_IN,
        _INT64,
        _BYTES,
        _TABLE,
        _TABLE,
    ),
}


def type_mismatch(kernel: Callable[..., Any], arguments: tuple[Any, ...]) -> str | None:
    """Say which of the arguments for `kernel` does not have the declared type, or None."""
    declared = SIGNATURES[kernel].args
    if len(arguments) != len(declared):
        return f"{kernel.__qualname__} takes {len(declared)} arguments, not {len(arguments)}"
    for number, (kind, argument) in enumerate(zip(declared, arguments, strict=True)):
        found = numba.typeof(argument)
        if not _fits(found, kind):
            return f"argument {number} of {kernel.__qualname__} is {found}, not {kind}"
    return None


def _fits(found: Any, kind: Any) -> bool:
    if isinstance(kind, types.BaseTuple):
        return len(found) == len(kind) and all(map(_fits, found, kind))
    if isinstance(kind, types.Array):
        return bool(found == kind or (not kind.mutable and found == kind.copy(readonly=False)))
    return isinstance(found, types.Integer | types.Boolean)
