"""Turn many Avro records into columns in one call.

`wire` says how values were written, and where they go: a row for each type in the writer's schema. Each value has to be
exactly as long as its schema says. One that is not leaves nulls in all columns, and its `outcome` says why.

Symbols of enums, and the limits of decimals, are in `names` of the tree. Numbers are left as they are in the bytes.
Their `valid` says what they are: `BITS` of a double, or of a float in a column of floats; an `INTEGER_VALUE`; or the
`FLOAT_BITS` of a float in a column of doubles.
"""

from __future__ import annotations

from octavo.records.kernels.machine import Array, read_le32, read_le64
from octavo.records.kernels.shredding.scalars import utf8_size
from octavo.records.kernels.shredding.tree import (
    BYTES,
    COUNT,
    DATE,
    DOUBLE,
    FIRST_CHILD,
    FLOAT,
    HIGH,
    INTEGER,
    KIND,
    LOW,
    TEXT_BASE,
    Tree,
    put,
    put_null,
    take_back,
)
from octavo.records.kernels.varint import read_varlong

# Columns of `wire`.
TYPE = 0
FIRST = 1  # the first of the children, which are consecutive
SIZE = 2  # number of children; length of a fixed; position of the null in a union; length of a symbol
TARGET = 3  # the node that the value goes to, -1 if nobody asked for it; position of a symbol in the names
FACTOR = (
    4  # what an integer is multiplied by, such as 1000 for milliseconds; position of a decimal's limits in the names
)
WIRE_SIZE = 5

NULL = 0
BOOLEAN = 1
INT = 2  # also long
FLOAT_TYPE = 3
DOUBLE_TYPE = 4
BINARY = 5
TEXT = 6
RECORD = 7
ARRAY = 8
MAP = 9
UNION = 10  # of null and another type
ENUM = 11
FIXED = 12
DECIMAL = 13  # of bytes
FIXED_DECIMAL = 14
ABSENT = 15  # a field that the writer did not have: nothing is read, and null written
SYMBOL = 16  # of an enum

# Outcomes.
FITS = 1
CUT = 2
LEFT = 3
BAD_CHOICE = 4
BAD_TEXT = 5
BAD_NUMBER = 6
BAD_COUNT = 7

# Values of `valid` for numbers.
BITS = 1
INTEGER_VALUE = 2
FLOAT_BITS = 3

# Columns of `stack`.
FRAME_TYPE = 0
NEXT = 1
ITEMS = 2
FRAME_SIZE = 3

_MAX = (1 << 63) - 1


def put_integer(tree: Tree, node: int, number: int, factor: int) -> bool:
    """Append an integer, unless it is beyond its column."""
    if factor > 1:
        if number > _MAX // factor or number < -(_MAX // factor):
            return False
        number *= factor
    kind = tree.nodes[node, KIND]
    if kind == DOUBLE or kind == FLOAT:
        put(tree, node, INTEGER_VALUE, number)
        return True
    if kind == DATE and (number < -(1 << 31) or number >= 1 << 31):
        return False
    if kind == INTEGER and (number < tree.nodes[node, LOW] or number > tree.nodes[node, HIGH]):
        return False
    put(tree, node, BITS, number)
    return True


def put_text(tree: Tree, node: int, data: Array, at: int, size: int) -> None:
    """Append bytes to a column of text."""
    target = tree.nodes[node, TEXT_BASE] + tree.state[node, BYTES]
    for number in range(size):
        tree.text[target + number] = data[at + number]
    tree.state[node, BYTES] += size
    put(tree, node, 1, tree.state[node, BYTES])


def is_text(data: Array, at: int, end: int) -> bool:
    """Return whether bytes are UTF-8."""
    while at < end:
        if data[at] & 0xFF < 0x80:
            at += 1
        else:
            size = utf8_size(data, at, end)
            if size == 0:
                return False
            at += size
    return True


def put_decimal(tree: Tree, node: int, limits: int, data: Array, at: int, size: int) -> bool:
    """Append a big-endian number of up to 128 bits: sixteen bytes of text, little-endian. Leading bytes may be void."""
    if size == 0:
        return False
    filler = 0xFF if data[at] & 0x80 else 0
    for position in range(at, at + size - 16):
        if data[position] & 0xFF != filler:
            return False
    last = at + size - 1
    if size > 16 and (data[last - 15] & 0x80) != (filler & 0x80):
        return False
    target = tree.nodes[node, TEXT_BASE] + tree.state[node, BYTES]
    if filler:
        limits += 16
    order = 0  # of the number and its limit
    for number in range(16):
        byte = data[last - 15 + number] & 0xFF if 15 - number < size else filler
        if order == 0:
            order = byte - (tree.names[limits + number] & 0xFF)
    if (order <= 0) if filler else (order >= 0):
        return False
    for number in range(16):
        tree.text[target + number] = data[last - number] & 0xFF if number < size else filler
    tree.state[node, BYTES] += 16
    put(tree, node, 1, tree.state[node, BYTES])
    return True


def put_value(tree: Tree, wire: Array, kind: int, each: int, data: Array, at: int, end: int) -> tuple[int, int]:
    """Read a value without children. Returns the position after it, and `FITS` or what is wrong."""
    target = wire[each, TARGET]
    if kind == NULL or kind == ABSENT:
        if target >= 0:
            put_null(tree, target)
        return at, FITS
    if kind == BOOLEAN:
        if at >= end:
            return at, CUT
        if data[at] & 0xFF > 1:
            return at, BAD_NUMBER
        if target >= 0:
            put(tree, target, 1, data[at] & 0xFF)
        return at + 1, FITS
    if kind == FLOAT_TYPE or kind == DOUBLE_TYPE:
        size = 4 if kind == FLOAT_TYPE else 8
        if end - at < size:
            return at, CUT
        if target >= 0:
            if kind == DOUBLE_TYPE:
                put(tree, target, BITS, read_le64(data, at))
            else:
                put(tree, target, BITS if tree.nodes[target, KIND] == FLOAT else FLOAT_BITS, read_le32(data, at))
        return at + size, FITS
    size = wire[each, SIZE]
    if kind != FIXED and kind != FIXED_DECIMAL:
        number, at = read_varlong(data, at, end)
        if at < 0:
            return at, CUT
        if kind == INT:
            return at, FITS if target < 0 or put_integer(tree, target, number, wire[each, FACTOR]) else BAD_NUMBER
        if kind == ENUM:
            if number < 0 or number >= size:
                return at, BAD_CHOICE
            if target >= 0:
                symbol = wire[each, FIRST] + number
                put_text(tree, target, tree.names, wire[symbol, TARGET], wire[symbol, SIZE])
            return at, FITS
        size = number
    if size < 0 or end - at < size:
        return at, CUT
    if kind == TEXT and not is_text(data, at, at + size):
        return at, BAD_TEXT
    if target >= 0:
        if kind == DECIMAL or kind == FIXED_DECIMAL:
            if not put_decimal(tree, target, wire[each, FACTOR], data, at, size):
                return at, BAD_NUMBER
        else:
            put_text(tree, target, data, at, size)
    return at + size, FITS


def open_frame(stack: Array, depth: int, each: int) -> None:
    """Begin a record, array or map."""
    stack[depth, FRAME_TYPE] = each
    stack[depth, NEXT] = 0
    stack[depth, ITEMS] = 0


def read_block(data: Array, at: int, end: int) -> tuple[int, int]:
    """Read how many items the next block of an array or map has. Returns the position after it, and the number."""
    items, at = read_varlong(data, at, end)
    if at >= 0 and items < 0:
        items = -items
        _, at = read_varlong(data, at, end)
    return at, items


def read_record(tree: Tree, wire: Array, stack: Array, data: Array, at: int, end: int) -> int:
    """Read one record into all columns. Returns `FITS`, or what is wrong."""
    depth = 0
    open_frame(stack, 0, 0)
    while True:
        parent = stack[depth, FRAME_TYPE]
        kind = wire[parent, TYPE]
        target = wire[parent, TARGET]
        each = wire[parent, FIRST]
        if kind == RECORD:
            if stack[depth, NEXT] == wire[parent, SIZE]:
                if target >= 0:
                    put(tree, target, 1, 0)
                if depth == 0:
                    return FITS if at == end else LEFT
                depth -= 1
                continue
            each += stack[depth, NEXT]
            stack[depth, NEXT] += 1
        elif stack[depth, ITEMS] == 0:
            at, items = read_block(data, at, end)
            if at < 0:
                return CUT
            if items < 0 or items > end - at:  # an item has at least one byte
                return BAD_COUNT
            stack[depth, ITEMS] = items
            if items == 0:
                if target >= 0:
                    put(tree, target, 1, tree.state[tree.nodes[target, FIRST_CHILD], COUNT])
                depth -= 1
            continue
        elif kind == MAP and stack[depth, NEXT] == 0:
            stack[depth, NEXT] = 1
        else:
            stack[depth, NEXT] = 0
            stack[depth, ITEMS] -= 1
            each += 1 if kind == MAP else 0
        kind = wire[each, TYPE]
        if kind == UNION:
            choice, at = read_varlong(data, at, end)
            if at < 0:
                return CUT
            if choice < 0 or choice > 1:
                return BAD_CHOICE
            if choice == wire[each, SIZE]:
                if wire[each, TARGET] >= 0:
                    put_null(tree, wire[each, TARGET])
                continue
            each = wire[each, FIRST]
            kind = wire[each, TYPE]
        if kind == RECORD or kind == ARRAY or kind == MAP:
            depth += 1
            open_frame(stack, depth, each)
            continue
        at, outcome = put_value(tree, wire, kind, each, data, at, end)
        if outcome != FITS:
            return outcome


def shred_avro(
    data: Array, ends: Array, wanted: Array, skipped: int, wire: Array, tree: Tree, stack: Array, outcomes: Array
) -> int:
    """Read all values into columns. Returns how many do not fit.

    ends: where values begin and end, one more than there are values
    wanted: for each value, 0 if it is null, or written with another schema
    skipped: bytes at the beginning of each value that are not part of it
    outcomes: set for each value that is wanted
    """
    unfit = 0
    for row in range(len(wanted)):
        if wanted[row] == 0:
            put_null(tree, 0)
            continue
        outcomes[row] = read_record(tree, wire, stack, data, ends[row] + skipped, ends[row + 1])
        if outcomes[row] != FITS:
            take_back(tree, row)
            put_null(tree, 0)
            unfit += 1
    return unfit
