"""Columns that a kernel fills: from a schema to a tree of nodes, and from what the kernel wrote to Arrow.

The kernel has room for the worst that its input can contain, so it never has to stop. Most of that memory is never
touched, and so never taken from the system.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from octavo.records.kernels.shredding import tree

CHUNK: Final = 4 << 20  # bytes that are decoded together
TOO_LARGE: Final = 16 << 20  # bytes of a single value that is too large for a kernel

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]

_INTEGERS: Final = {pa.int8(): 7, pa.int16(): 15, pa.int32(): 31, pa.int64(): 63}
_KINDS: Final = {
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


class Node(NamedTuple):
    """A type, where it is in the tree."""

    kind: int
    type: pa.DataType
    name: bytes
    children: list[int]
    is_repeated: bool  # in a list or map: it may have more values than there are rows


class Input(NamedTuple):
    """A column of values, as kernels read it."""

    data: Bytes
    ends: npt.NDArray[np.int32]  # where values begin and end, one more than there are values
    is_valid: npt.NDArray[np.bool_]

    @property
    def size(self) -> int:
        """The number of bytes."""
        return int(self.ends[-1] - self.ends[0])


class ColumnTree(ABC):
    """The columns of one schema."""

    binary: int  # the kind of columns of bytes
    bytes_per_element: int  # how many bytes an element of a list takes at least

    def __init__(self, schema: pa.Schema) -> None:
        self.nodes: Final[list[Node]] = []
        self._add_all(pa.struct(list(schema)))
        self._table, self.names, self._closures = self._tables()
        self.depth: Final = 2 + max(self._depths())

    def room_for(self, rows: int, size: int) -> tree.Tree:
        """Make room for everything that values of this size can contain."""
        table = self._table.copy()
        slots = text = 0
        for number, node in enumerate(self.nodes):
            table[number, tree.BASE] = slots
            values = size // self.bytes_per_element + 2 + rows if node.is_repeated else rows
            slots += values
            if node.kind == tree.STRING:
                table[number, tree.TEXT_BASE] = text
                text += self.text_size(number, values, size)
        state = np.zeros((len(self.nodes), tree.STATE_SIZE), np.int64)
        valid, numbers = np.empty(slots, np.uint8), np.empty(slots, np.int64)
        return tree.Tree(table, self.names, self._closures, state, valid, numbers, np.empty(text, np.uint8))

    def text_size(self, node: int, values: int, size: int) -> int:
        """Return how many bytes of text the column of a node can have."""
        return size + 4

    def columns(self, filled: tree.Tree, data: Bytes) -> list[pa.Array]:
        """Return the columns that a kernel has filled from `data`."""
        return [self._array(child, filled, data) for child in self.nodes[0].children]

    @abstractmethod
    def numbers(self, node: Node, valid: Bytes, slots: Longs, data: Bytes) -> Any:
        """Return the floating-point numbers or decimals of a column, as Arrow stores them."""

    def _add_all(self, root: pa.DataType) -> None:
        """Number all types, breadth first, so that the children of a type are consecutive."""
        waiting = [self._node(root, "", False)]
        while waiting:
            node, *waiting = waiting
            children = self._children(node)
            first = len(self.nodes) + 1 + len(waiting)
            node.children.extend(range(first, first + len(children)))
            waiting += children
            self.nodes.append(node)

    def _node(self, kind: pa.DataType, name: str, is_repeated: bool) -> Node:
        if pa.types.is_timestamp(kind):
            number = tree.TIMESTAMP if kind.tz else tree.LOCAL_TIMESTAMP
        else:
            number = next((number for test, number in _KINDS.items() if test(kind)), self.binary)
        return Node(number, kind, name.encode(), [], is_repeated)

    def _children(self, node: Node) -> list[Node]:
        kind = node.type
        if node.kind == tree.STRUCT:
            fields = [kind.field(number) for number in range(kind.num_fields)]
            return [self._node(field.type, field.name, node.is_repeated) for field in fields]
        if node.kind == tree.LIST:
            return [self._node(kind.value_type, "", True)]
        if node.kind == tree.MAP:
            return [self._node(kind.key_type, "", True), self._node(kind.item_type, "", True)]
        return []

    def _depths(self) -> list[int]:
        depths = [0] * len(self.nodes)
        for number, node in enumerate(self.nodes):
            for child in node.children:
                depths[child] = depths[number] + 1
        return depths

    def _tables(self) -> tuple[Longs, Bytes, Longs]:
        table = np.zeros((len(self.nodes), tree.NODE_SIZE), np.int64)
        names = b"".join(node.name for node in self.nodes)
        closures: list[int] = []
        at = 0
        for number, node in enumerate(self.nodes):
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
        node = self.nodes[number]
        fields = node.children if node.kind == tree.STRUCT else []
        return [number, *(each for child in fields for each in self._closure(child))]

    def _array(self, number: int, filled: tree.Tree, data: Bytes) -> pa.Array:
        """Return the column of a node."""
        node = self.nodes[number]
        base, count = int(filled.nodes[number, tree.BASE]), int(filled.state[number, tree.COUNT])
        valid, slots = filled.valid[base : base + count], filled.slots[base : base + count]
        bits = None if valid.all() else pa.py_buffer(np.packbits(valid > 0, bitorder="little"))
        if node.kind == tree.OTHER:
            return pa.nulls(count, node.type)
        if node.kind == tree.STRUCT:
            children = [self._array(child, filled, data) for child in node.children]
            return pa.Array.from_buffers(node.type, count, [bits], children=children)
        if node.kind not in (tree.STRING, tree.LIST, tree.MAP):
            return pa.Array.from_buffers(node.type, count, [bits, self._fixed(node, valid, slots, data)])
        ends = np.empty(count + 1, np.int32)
        ends[0] = 0
        ends[1:] = slots
        if node.kind == tree.STRING and pa.types.is_decimal(node.type):
            start = int(filled.nodes[number, tree.TEXT_BASE])
            words = np.zeros((count, 16), np.uint8)
            words[valid > 0] = filled.text[start : start + int(ends[-1])].reshape(-1, 16)
            return pa.Array.from_buffers(node.type, count, [bits, pa.py_buffer(words)])
        if node.kind == tree.STRING:
            start = int(filled.nodes[number, tree.TEXT_BASE])
            text = filled.text[start : start + int(ends[-1])].copy()
            return pa.Array.from_buffers(node.type, count, [bits, pa.py_buffer(ends), pa.py_buffer(text)])
        children = [self._array(child, filled, data) for child in node.children]
        if node.kind == tree.MAP:
            entries = pa.struct([node.type.key_field, node.type.item_field])
            children = [pa.Array.from_buffers(entries, len(children[0]), [None], children=children)]
        return pa.Array.from_buffers(node.type, count, [bits, pa.py_buffer(ends)], children=children)

    def _fixed(self, node: Node, valid: Bytes, slots: Longs, data: Bytes) -> pa.Buffer:
        """Return the values of a column of fixed width, as Arrow stores them."""
        if node.kind == tree.BOOLEAN:
            return pa.py_buffer(np.packbits(slots > 0, bitorder="little"))
        if node.kind in (tree.DECIMAL, tree.DOUBLE, tree.FLOAT):
            return pa.py_buffer(self.numbers(node, valid, slots, data))
        return pa.py_buffer(slots.astype(f"i{node.type.bit_width // 8}"))


def _limits(kind: pa.DataType) -> tuple[int, int]:
    if pa.types.is_decimal(kind):
        return kind.precision, kind.scale
    bits = _INTEGERS.get(kind, 0)
    return -(1 << bits), (1 << bits) - 1


def input_of(values: pa.Array) -> Input:
    """Return a column of values as kernels read it."""
    buffer = values.buffers()[2]
    data = np.frombuffer(buffer, np.uint8) if buffer is not None and buffer.size else np.zeros(1, np.uint8)
    ends = np.frombuffer(values.buffers()[1], np.int32, len(values) + 1, values.offset * 4)
    return Input(data, ends, np.asarray(values.is_valid()))


def chunks(values: pa.Array) -> Iterator[pa.Array]:
    """Divide a column so that no part has much more than `CHUNK` bytes."""
    if not len(values):
        return
    ends = input_of(values).ends
    start = 0
    while start < len(values):
        end = max(start + 1, int(np.searchsorted(ends, int(ends[start]) + CHUNK, "right")) - 1)
        yield values.slice(start, end - start)
        start = end
