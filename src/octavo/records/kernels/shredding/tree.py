"""The columns that a kernel fills: a table of nodes, which is a tree of types, and where the values of each go.

A node is a row of `nodes`. The root is node 0, a struct. The children of a struct are consecutive nodes; a list has one
child, and a map two: its keys and its values. Each node has its own part of the arrays `valid` and `slots`: from
`BASE` on, one item for each of its values. If it is a string, it also has its own part of `text`.

    valid   0 for null, 1 otherwise; more for numbers with a point (see `json`)
    slots   the value; for strings, lists and maps where it ends, in bytes or in values of the child

The caller has made the parts large enough for everything that can be in the input, see `octavo.values.json.columns`.
"""

from __future__ import annotations

from typing import NamedTuple

from octavo.records.kernels.machine import Array

# Columns of `nodes`.
KIND = 0
FIRST_CHILD = 1
CHILDREN = 2
NAME_AT = 3  # in `names`
NAME_SIZE = 4
LOW = 5  # smallest and largest integer; precision and scale of a decimal
HIGH = 6
BASE = 7
TEXT_BASE = 8
CLOSURE_AT = 9  # in `closures`: all nodes that are null if this one is, itself included
CLOSURE_SIZE = 10
NODE_SIZE = 11

# Columns of `state`.
COUNT = 0  # values so far
BYTES = 1  # bytes of text so far
SEEN = 2  # the last object that had this field
STATE_SIZE = 3

BOOLEAN = 0
INTEGER = 1
DOUBLE = 2
FLOAT = 3
STRING = 4
DECIMAL = 5
DATE = 6
TIMESTAMP = 7
LOCAL_TIMESTAMP = 8
STRUCT = 9
LIST = 10
MAP = 11
OTHER = 12  # nothing but null is certain


class Tree(NamedTuple):
    """The columns to fill."""

    nodes: Array
    names: Array
    closures: Array
    state: Array
    valid: Array
    slots: Array
    text: Array


def put(tree: Tree, node: int, valid: int, value: int) -> None:
    """Append a value to the column of a node."""
    at = tree.nodes[node, BASE] + tree.state[node, COUNT]
    tree.valid[at] = valid
    tree.slots[at] = value
    tree.state[node, COUNT] += 1


def put_null(tree: Tree, node: int) -> None:
    """Append null to the column of a node, and to those of its fields if it is a struct."""
    first = tree.nodes[node, CLOSURE_AT]
    for number in range(first, first + tree.nodes[node, CLOSURE_SIZE]):
        each = tree.closures[number]
        kind = tree.nodes[each, KIND]
        if kind == STRING:
            put(tree, each, 0, tree.state[each, BYTES])
        elif kind == LIST or kind == MAP:
            put(tree, each, 0, tree.state[tree.nodes[each, FIRST_CHILD], COUNT])
        else:
            put(tree, each, 0, 0)


def take_back(tree: Tree, row: int) -> None:
    """Remove everything after the first `row` values of the root."""
    tree.state[0, COUNT] = row
    for node in range(len(tree.nodes)):  # parents come before their children
        count = tree.state[node, COUNT]
        kind = tree.nodes[node, KIND]
        first = tree.nodes[node, FIRST_CHILD]
        if kind == STRUCT:
            for child in range(first, first + tree.nodes[node, CHILDREN]):
                tree.state[child, COUNT] = count
        elif kind == STRING or kind == LIST or kind == MAP:
            end = 0
            if count > 0:
                end = tree.slots[tree.nodes[node, BASE] + count - 1]
            if kind == STRING:
                tree.state[node, BYTES] = end
            else:
                for child in range(first, first + tree.nodes[node, CHILDREN]):
                    tree.state[child, COUNT] = end
