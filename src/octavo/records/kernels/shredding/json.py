"""Turn many JSON objects into columns in one call, if there is no doubt about what Spark's `from_json` makes of them.

An object in doubt (wrong types, a field that occurs twice, odd numbers, damage) leaves nulls in all columns, and 0 in
`certain`; the caller reads it in another way. So everything here may be strict, and is tested to agree with that way.

Numbers with a point are not computed here, because kernels have integers only. Their `valid` says how:

    POWER + n   the slot times ten to the power of n, from -22 to 22 for doubles, from 0 to 18 for decimals
    TEXT        the number as text: the slot is its position in the input times 1,024, plus its length
"""

from __future__ import annotations

from octavo.records.kernels.machine import Array
from octavo.records.kernels.shredding.scalars import (
    DOUBT,
    MAX_DIGITS,
    is_false,
    is_null,
    is_true,
    read_day,
    read_number,
    read_string,
    read_time,
    skip_space,
    utf8_size,
)
from octavo.records.kernels.shredding.skip import skip_value
from octavo.records.kernels.shredding.tree import (
    BOOLEAN,
    BYTES,
    CHILDREN,
    COUNT,
    DATE,
    DECIMAL,
    DOUBLE,
    FIRST_CHILD,
    FLOAT,
    HIGH,
    INTEGER,
    KIND,
    LIST,
    LOCAL_TIMESTAMP,
    LOW,
    MAP,
    NAME_AT,
    NAME_SIZE,
    SEEN,
    STRING,
    STRUCT,
    TEXT_BASE,
    TIMESTAMP,
    Tree,
    put,
    put_null,
    take_back,
)

POWER = 100
TEXT = 255

# Columns of `stack`, which has a row for each level of types.
NODE = 0
NEXT = 1  # the field that is expected next; -1 if none is
FOUND = 2  # fields so far
INSTANCE = 3  # the number of the object, among all
FRAME_SIZE = 4

_MAX_TEXT = 40  # characters of a number that is left as text
_EXACT = 1 << 53
_MAX_SECONDS = 1 << 40


def put_double(tree: Tree, node: int, data: Array, at: int, end: int) -> int:
    """Read a number into a column of doubles or floats."""
    after, number, digits, decimals, exponent = read_number(data, at, end)
    if after < 0 or after - at > _MAX_TEXT:
        return DOUBT
    is_integer = decimals < 0 and exponent == 1000
    power = (0 if exponent == 1000 else exponent) - (0 if decimals < 0 else decimals)
    if number == 0 and digits == 0:
        if is_integer and tree.nodes[node, KIND] == DOUBLE:
            put(tree, node, POWER, 0)
            return after
        if is_integer or data[at] & 0xFF == 45:
            return DOUBT
        put(tree, node, POWER, 0)
        return after
    if tree.nodes[node, KIND] == DOUBLE:
        if digits <= MAX_DIGITS and -_EXACT <= number <= _EXACT and -22 <= power <= 22:
            put(tree, node, POWER + power, number)
            return after
        if digits + power > 300 or digits + power < -290:
            return DOUBT
    elif digits + power > 37 or digits + power < -36:
        return DOUBT
    put(tree, node, TEXT, at * 1024 + after - at)
    return after


def put_decimal(tree: Tree, node: int, data: Array, at: int, end: int) -> int:
    """Read a number into a column of decimals, if it has to be neither rounded nor refused."""
    after, number, digits, decimals, exponent = read_number(data, at, end)
    if after < 0 or exponent != 1000 or digits > MAX_DIGITS:
        return DOUBT
    power = tree.nodes[node, HIGH] - (0 if decimals < 0 else decimals)
    if power < 0 or power > MAX_DIGITS or digits + power > tree.nodes[node, LOW]:
        return DOUBT
    put(tree, node, POWER + power, number)
    return after


def put_integer(tree: Tree, node: int, data: Array, at: int, end: int) -> int:
    """Read an integer into a column of integers or of timestamps."""
    after, number, digits, decimals, exponent = read_number(data, at, end)
    if after < 0 or digits > MAX_DIGITS or decimals >= 0 or exponent != 1000:
        return DOUBT
    if tree.nodes[node, KIND] == TIMESTAMP:
        if number < -_MAX_SECONDS or number > _MAX_SECONDS:
            return DOUBT
        number *= 1_000_000
    elif number < tree.nodes[node, LOW] or number > tree.nodes[node, HIGH]:
        return DOUBT
    put(tree, node, 1, number)
    return after


def put_plain_text(tree: Tree, node: int, data: Array, at: int, end: int) -> int:
    """Read a number or a boolean into a column of strings, if it is written as Spark would write it."""
    after = DOUBT
    if is_true(data, at, end):
        after = at + 4
    elif is_false(data, at, end):
        after = at + 5
    else:
        after, _, digits, decimals, exponent = read_number(data, at, end)
        if digits == 0 or digits > MAX_DIGITS or decimals >= 0 or exponent != 1000:
            return DOUBT
    if after < 0:
        return DOUBT
    target = tree.nodes[node, TEXT_BASE] + tree.state[node, BYTES]
    for number in range(after - at):
        tree.text[target + number] = data[at + number]
    tree.state[node, BYTES] += after - at
    return after


def put_scalar(tree: Tree, node: int, data: Array, at: int, end: int) -> int:
    """Read a value into a column that has no children. Returns the position after it, or `DOUBT`."""
    kind = tree.nodes[node, KIND]
    is_string = data[at] & 0xFF == 34
    if kind == STRING:
        after = read_string(tree, node, data, at + 1, end) if is_string else put_plain_text(tree, node, data, at, end)
        if after >= 0:
            put(tree, node, 1, tree.state[node, BYTES])
        return after
    if kind == BOOLEAN:
        if is_true(data, at, end):
            put(tree, node, 1, 1)
            return at + 4
        if is_false(data, at, end):
            put(tree, node, 1, 0)
            return at + 5
        return DOUBT
    if is_string:
        value = 0
        after = DOUBT
        if kind == DATE:
            after, value = read_day(data, at + 1, end)
            if after >= 0:
                after = after + 1 if after < end and data[after] & 0xFF == 34 else DOUBT
        elif kind == TIMESTAMP or kind == LOCAL_TIMESTAMP:
            after, value = read_time(data, at + 1, end, kind == LOCAL_TIMESTAMP)
        if after >= 0:
            put(tree, node, 1, value)
        return after
    if kind == INTEGER or kind == TIMESTAMP:
        return put_integer(tree, node, data, at, end)
    if kind == DOUBLE or kind == FLOAT:
        return put_double(tree, node, data, at, end)
    if kind == DECIMAL:
        return put_decimal(tree, node, data, at, end)
    return DOUBT


def is_named(tree: Tree, child: int, data: Array, start: int, end: int) -> bool:
    """Return whether the name of a field is at a position, with a quote after it."""
    size = tree.nodes[child, NAME_SIZE]
    if end - start <= size or data[start + size] & 0xFF != 34:
        return False
    name = tree.nodes[child, NAME_AT]
    for at in range(size):
        if tree.names[name + at] != data[start + at]:
            return False
    return True


def find_field(tree: Tree, node: int, data: Array, start: int, end: int) -> int:
    """Return the field of a struct whose name is at a position, or -1."""
    first: int = tree.nodes[node, FIRST_CHILD]
    for child in range(first, first + tree.nodes[node, CHILDREN]):
        if is_named(tree, child, data, start, end):
            return child
    return -1


def name_end(data: Array, at: int, end: int) -> int:
    """Return the position of the quote after a name without anything special, or `DOUBT`."""
    start = at
    while at < end:
        byte = data[at] & 0xFF
        if byte == 34:
            return at if at - start < 10_000 else DOUBT  # there is a limit to names
        if byte < 32 or byte == 92:
            return DOUBT
        size = 1
        if byte >= 0x80:
            size = utf8_size(data, at, end)
            if size == 0:
                return DOUBT
        at += size
    return DOUBT


def close_struct(tree: Tree, node: int, found: int, instance: int) -> None:
    """Append the struct, and nulls for the fields that it did not have."""
    put(tree, node, 1, 0)
    if found < tree.nodes[node, CHILDREN]:
        first = tree.nodes[node, FIRST_CHILD]
        for child in range(first, first + tree.nodes[node, CHILDREN]):
            if tree.state[child, SEEN] != instance:
                put_null(tree, child)


def opens(kind: int, byte: int) -> bool:
    """Return whether a byte opens a struct, list or map."""
    return byte == 91 if kind == LIST else byte == 123 and (kind == STRUCT or kind == MAP)


def shred_object(tree: Tree, stack: Array, data: Array, at: int, end: int, instance: int) -> int:
    """Read one value, an object, into all columns. Returns the number of the last object in it, or `DOUBT`."""
    at = skip_space(data, at, end)
    if at >= end or data[at] & 0xFF != 123:
        return DOUBT
    depth = 0
    stack[0, NODE] = 0
    stack[0, NEXT] = tree.nodes[0, FIRST_CHILD]
    stack[0, FOUND] = 0
    stack[0, INSTANCE] = instance
    last = instance
    at += 1
    begins = True  # the innermost object or array has just been opened
    while True:
        node = stack[depth, NODE]
        kind = tree.nodes[node, KIND]
        at = skip_space(data, at, end)
        if at >= end:
            return DOUBT
        byte = data[at] & 0xFF
        if byte == (93 if kind == LIST else 125):
            if kind == STRUCT:
                close_struct(tree, node, stack[depth, FOUND], stack[depth, INSTANCE])
            else:
                put(tree, node, 1, tree.state[tree.nodes[node, FIRST_CHILD], COUNT])
            if depth == 0:
                return last
            depth -= 1
            at += 1
            begins = False
            continue
        if not begins:
            if byte != 44:
                return DOUBT
            at = skip_space(data, at + 1, end)
            if at >= end:
                return DOUBT
            byte = data[at] & 0xFF
        begins = False
        child = tree.nodes[node, FIRST_CHILD]
        if kind != LIST:
            if byte != 34:
                return DOUBT
            at += 1
            if kind == MAP:
                at = read_string(tree, child, data, at, end)
                if at < 0:
                    return DOUBT
                put(tree, child, 1, tree.state[child, BYTES])
                child += 1
            else:
                child = stack[depth, NEXT]  # fields mostly come in the order of the schema
                if child >= 0 and is_named(tree, child, data, at, end):
                    at += tree.nodes[child, NAME_SIZE] + 1
                else:
                    quote = name_end(data, at, end)
                    if quote < 0:
                        return DOUBT
                    child = find_field(tree, node, data, at, quote + 1)
                    at = quote + 1
            at = skip_space(data, at, end)
            if at >= end or data[at] & 0xFF != 58:
                return DOUBT
            at = skip_space(data, at + 1, end)
            if at >= end:
                return DOUBT
            byte = data[at] & 0xFF
            if child < 0:
                at = skip_value(data, at, end)
                if at < 0:
                    return DOUBT
                continue
            if kind == STRUCT:
                if tree.state[child, SEEN] == stack[depth, INSTANCE]:
                    return DOUBT
                tree.state[child, SEEN] = stack[depth, INSTANCE]
                stack[depth, FOUND] += 1
                following = child + 1
                stack[depth, NEXT] = (
                    following if following < tree.nodes[node, FIRST_CHILD] + tree.nodes[node, CHILDREN] else -1
                )
        if byte == 110:
            if not is_null(data, at, end):
                return DOUBT
            put_null(tree, child)
            at += 4
            continue
        child_kind = tree.nodes[child, KIND]
        if child_kind == STRUCT or child_kind == LIST or child_kind == MAP:
            if not opens(child_kind, byte):
                return DOUBT
            depth += 1
            last += 1
            stack[depth, NODE] = child
            stack[depth, NEXT] = tree.nodes[child, FIRST_CHILD]
            stack[depth, FOUND] = 0
            stack[depth, INSTANCE] = last
            at += 1
            begins = True
            continue
        at = put_scalar(tree, child, data, at, end)
        if at < 0:
            return DOUBT


def shred(data: Array, ends: Array, wanted: Array, tree: Tree, stack: Array, certain: Array) -> int:
    """Read all values into columns. Returns how many are in doubt.

    ends: where values begin and end, one more than there are values
    wanted: for each value, 0 if it is null, or is left to another reader
    stack: memory, a row for each level of the tree
    certain: for each value, set to 1 if its columns are right; a value that is not wanted is left as it is
    """
    doubts = 0
    instance = 0
    for row in range(len(wanted)):
        if wanted[row] == 0:
            put_null(tree, 0)
            continue
        last = shred_object(tree, stack, data, ends[row], ends[row + 1], instance + 1)
        if last < 0:
            take_back(tree, row)
            put_null(tree, 0)
            instance += 1_000_000_000  # more than the objects of a value
            doubts += 1
        else:
            instance = last
            certain[row] = 1
    return doubts
