"""The fast way to decode JSON: a kernel fills columns, and marks the values that it is not certain of.

The kernel has room for the worst that a chunk can contain, so it never has to stop. Most of that memory is never
touched, and so never taken from the system.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from octavo.records.kernels import kernels
from octavo.records.kernels.shredding import json as kernel
from octavo.records.kernels.shredding import tree
from octavo.values.json.numbers import decimal_buffer, float_values

CHUNK: Final = 4 << 20  # bytes that are decoded together
TOO_LARGE: Final = 16 << 20  # bytes of a single value that is left to the exact way

_INTEGERS: Final = {pa.int8(): 7, pa.int16(): 15, pa.int32(): 31, pa.int64(): 63}


class _Node(NamedTuple):
    """A type, where it is in the tree."""

    kind: int
    type: pa.DataType
    name: bytes
    children: list[int]
    is_repeated: bool  # in a list or map: it may have more values than there are rows


class Shredded(NamedTuple):
    """The columns of some values."""

    columns: list[pa.Array]
    certain: np.ndarray  # for each value, whether its columns are right; where it is null, they are


class Shredder:
    """Decodes values of one schema."""

    def __init__(self, schema: pa.Schema) -> None:
        self._nodes: Final[list[_Node]] = []
        self._add_all(pa.struct(list(schema)))
        self._table, self._names, self._closures = self._tables()
        self._depth: Final = 2 + max(self._depths())

    def shred(self, values: pa.Array) -> Shredded:
        """Decode a column of values, of no more than about `CHUNK` bytes unless there is only one value."""
        rows = len(values)
        ends = np.frombuffer(values.buffers()[1], np.int32, rows + 1, values.offset * 4)
        data = _bytes_of(values.buffers()[2])
        size = int(ends[-1] - ends[0])
        wanted = np.asarray(values.is_valid()).astype(np.uint8)
        is_null = wanted == 0
        wanted[np.diff(ends) > TOO_LARGE] = 0
        certain = is_null.astype(np.uint8)
        made = self._tree(rows, min(size, TOO_LARGE * max(1, rows)))
        stack = np.empty((self._depth, kernel.FRAME_SIZE), np.int64)
        kernels(size).shred(data, ends, wanted, made, stack, certain)
        return Shredded([self._array(child, made, data) for child in self._nodes[0].children], certain > 0)

    # -------------------------------------------------------------------------------------------------------- the tree

    def _add_all(self, root: pa.DataType) -> None:
        """Number all types, breadth first, so that the children of a type are consecutive."""
        waiting = [_node(root, "", False)]
        while waiting:
            node, *waiting = waiting
            children = _children(node)
            first = len(self._nodes) + 1 + len(waiting)
            node.children.extend(range(first, first + len(children)))
            waiting += children
            self._nodes.append(node)

    def _depths(self) -> list[int]:
        depths = [0] * len(self._nodes)
        for number, node in enumerate(self._nodes):
            for child in node.children:
                depths[child] = depths[number] + 1
        return depths

    def _tables(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        table = np.zeros((len(self._nodes), tree.NODE_SIZE), np.int64)
        names = b"".join(node.name for node in self._nodes)
        closures: list[int] = []
        at = 0
        for number, node in enumerate(self._nodes):
            row = table[number]
            row[tree.KIND] = node.kind
            row[tree.FIRST_CHILD] = node.children[0] if node.children else 0
            row[tree.CHILDREN] = len(node.children)
            is_plain = not any(byte < 32 or byte in b'"\\' for byte in node.name)
            # A name that JSON has to escape is never met as it is.
            row[tree.NAME_AT], row[tree.NAME_SIZE] = at, len(node.name) if is_plain else 1 << 60
            at += len(node.name)
            row[tree.LOW], row[tree.HIGH] = _limits(node.type)
            closure = self._closure(number)
            row[tree.CLOSURE_AT], row[tree.CLOSURE_SIZE] = len(closures), len(closure)
            closures += closure
        return table, np.frombuffer(names or b"\0", np.uint8).copy(), np.array(closures, np.int64)

    def _closure(self, number: int) -> list[int]:
        """Return the nodes that are null if this one is: itself, and the fields of a struct."""
        node = self._nodes[number]
        fields = node.children if node.kind == tree.STRUCT else []
        return [number, *(each for child in fields for each in self._closure(child))]

    def _tree(self, rows: int, size: int) -> tree.Tree:
        """Make room for everything that values of this size can contain."""
        table = self._table.copy()
        elements = size // 2 + 2  # each element of a list takes at least one byte and a comma
        slots = text = 0
        for number, node in enumerate(self._nodes):
            table[number, tree.BASE] = slots
            slots += elements + rows if node.is_repeated else rows
            if node.kind == tree.STRING:
                table[number, tree.TEXT_BASE] = text
                text += size + 4
        state = np.zeros((len(self._nodes), tree.STATE_SIZE), np.int64)
        valid, values = np.empty(slots, np.uint8), np.empty(slots, np.int64)
        return tree.Tree(table, self._names, self._closures, state, valid, values, np.empty(text, np.uint8))

    # ----------------------------------------------------------------------------------------------------- the columns

    def _array(self, number: int, made: tree.Tree, data: np.ndarray) -> pa.Array:
        """Return the column of a node."""
        node = self._nodes[number]
        base, count = int(made.nodes[number, tree.BASE]), int(made.state[number, tree.COUNT])
        valid, slots = made.valid[base : base + count], made.slots[base : base + count]
        bits = None if valid.all() else pa.py_buffer(np.packbits(valid > 0, bitorder="little"))
        if node.kind == tree.OTHER:
            return pa.nulls(count, node.type)
        if node.kind == tree.STRUCT:
            children = [self._array(child, made, data) for child in node.children]
            return pa.Array.from_buffers(node.type, count, [bits], children=children)
        if node.kind in (tree.STRING, tree.LIST, tree.MAP):
            ends = np.empty(count + 1, np.int32)
            ends[0] = 0
            ends[1:] = slots
            if node.kind == tree.STRING:
                start = int(made.nodes[number, tree.TEXT_BASE])
                text = made.text[start : start + int(ends[-1])].copy()
                return pa.Array.from_buffers(node.type, count, [bits, pa.py_buffer(ends), pa.py_buffer(text)])
            return self._nested(node, count, [bits, pa.py_buffer(ends)], made, data)
        return pa.Array.from_buffers(node.type, count, [bits, _values(node, valid, slots, data)])

    def _nested(
        self, node: _Node, count: int, buffers: list[pa.Buffer | None], made: tree.Tree, data: np.ndarray
    ) -> pa.Array:
        children = [self._array(child, made, data) for child in node.children]
        if node.kind == tree.MAP:
            entries = pa.struct([node.type.key_field, node.type.item_field])
            children = [pa.Array.from_buffers(entries, len(children[0]), [None], children=children)]
        return pa.Array.from_buffers(node.type, count, buffers, children=children)


def _values(node: _Node, valid: np.ndarray, slots: np.ndarray, data: np.ndarray) -> pa.Buffer:
    """Return the values of a column of fixed width, as Arrow stores them."""
    if node.kind == tree.BOOLEAN:
        return pa.py_buffer(np.packbits(slots > 0, bitorder="little"))
    if node.kind == tree.DECIMAL:
        return decimal_buffer(valid, slots)
    if node.kind in (tree.DOUBLE, tree.FLOAT):
        return pa.py_buffer(float_values(valid, slots, data, node.type))
    return pa.py_buffer(slots.astype(f"i{node.type.bit_width // 8}"))


def _node(kind: pa.DataType, name: str, is_repeated: bool) -> _Node:
    return _Node(_kind(kind), kind, name.encode(), [], is_repeated)


def _children(node: _Node) -> list[_Node]:
    kind = node.type
    if node.kind == tree.STRUCT:
        fields = [kind.field(number) for number in range(kind.num_fields)]
        return [_node(field.type, field.name, node.is_repeated) for field in fields]
    if node.kind == tree.LIST:
        return [_node(kind.value_type, "", True)]
    if node.kind == tree.MAP:
        return [_node(kind.key_type, "", True), _node(kind.item_type, "", True)]
    return []


def _kind(kind: pa.DataType) -> int:
    tests = {
        pa.types.is_boolean: tree.BOOLEAN,
        pa.types.is_integer: tree.INTEGER,
        pa.types.is_float64: tree.DOUBLE,
        pa.types.is_float32: tree.FLOAT,
        pa.types.is_string: tree.STRING,
        pa.types.is_decimal: tree.DECIMAL,
        pa.types.is_date: tree.DATE,
        pa.types.is_struct: tree.STRUCT,
        pa.types.is_map: tree.MAP,
        pa.types.is_list: tree.LIST,
    }
    if pa.types.is_timestamp(kind):
        return tree.TIMESTAMP if kind.tz else tree.LOCAL_TIMESTAMP
    return next((number for test, number in tests.items() if test(kind)), tree.OTHER)


def _limits(kind: pa.DataType) -> tuple[int, int]:
    if pa.types.is_decimal(kind):
        return kind.precision, kind.scale
    bits = _INTEGERS.get(kind, 0)
    return -(1 << bits), (1 << bits) - 1


def _bytes_of(buffer: pa.Buffer | None) -> np.ndarray:
    return np.frombuffer(buffer, np.uint8) if buffer is not None and buffer.size else np.zeros(1, np.uint8)
