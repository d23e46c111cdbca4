"""The fast way to decode JSON: a kernel fills columns, and marks the values that it is not certain of."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from octavo.records.kernels import kernels
from octavo.records.kernels.shredding import json as kernel
from octavo.records.kernels.shredding import tree
from octavo.values import columns
from octavo.values.columns import Bytes, ColumnTree, Longs, Node, input_of
from octavo.values.json.numbers import decimal_words, float_values


class Shredded(NamedTuple):
    """The columns of some values."""

    columns: list[pa.Array]
    certain: npt.NDArray[np.bool_]  # for each value, whether its columns are right; where it is null, they are


class Shredder:
    """Decodes values of one schema."""

    def __init__(self, schema: pa.Schema) -> None:
        self._tree: Final = _JsonTree(schema)

    def shred(self, values: pa.Array) -> Shredded:
        """Decode a column of values, of no more than about `CHUNK` bytes unless there is only one value."""
        given = input_of(values)
        wanted = (given.is_valid & (np.diff(given.ends) <= columns.TOO_LARGE)).astype(np.uint8)
        certain = (~given.is_valid).astype(np.uint8)
        filled = self._tree.room_for(len(values), given.size if wanted.any() else 0)
        stack = np.empty((self._tree.depth, kernel.FRAME_SIZE), np.int64)
        kernels(given.size).shred(given.data, given.ends, wanted, filled, stack, certain)
        return Shredded(self._tree.columns(filled, given.data), certain > 0)


class _JsonTree(ColumnTree):
    binary = tree.OTHER
    bytes_per_element = 2  # at least one byte and a comma

    def numbers(self, node: Node, valid: Bytes, slots: Longs, data: Bytes) -> Any:
        if node.kind == tree.DECIMAL:
            return decimal_words(valid, slots)
        return float_values(valid, slots, data, node.type)
