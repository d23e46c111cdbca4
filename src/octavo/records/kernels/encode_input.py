"""What the encoding kernel is given: columns, in Arrow's own buffers or in similar ones, and a table of groups."""

from __future__ import annotations

from typing import NamedTuple

from octavo.records.kernels.machine import Array
from octavo.records.layout import MAX_INT64, NO_TIMESTAMP


class ByteColumn(NamedTuple):
    """A column of nullable byte strings, in Arrow's own buffers or in similar ones.

    A value is null if it ends before it starts, if its bit is not set, or if there are no limits: the column is absent.
    The caller has checked that all others lie inside the data.
    """

    limits: Array  # int32: the position of each value in the data, and where it ends
    ends_at: int  # a value begins at limits[row] and ends at limits[row + ends_at]; this is 1 in Arrow's arrays
    valid: Array  # Arrow's bitmap of the values that are not null; empty if it has none
    first_bit: int  # the bit of the first row
    data: Array


class Rows(NamedTuple):
    """The columns to encode."""

    offsets: Array
    timestamps: Array  # milliseconds, or microseconds; empty if no row has one
    keys: ByteColumn
    values: ByteColumn
    header_ends: Array  # one more than rows: the headers of row i are ends[i] to ends[i + 1]; empty if there are none
    header_keys: ByteColumn
    header_values: ByteColumn


# Columns of the table of groups.
GROUP_FIRST_ROW = 0
GROUP_LAST_ROW = 1  # the row after the last row of the group
GROUP_ATTRIBUTES = 2
GROUP_LEADER_EPOCH = 3
GROUP_PRODUCER_ID = 4
GROUP_PRODUCER_EPOCH = 5
GROUP_BASE_SEQUENCE = 6
GROUP_APPEND_TIME = 7  # the largest timestamp, if the flag in the attributes is set
GROUP_DELETE_HORIZON = 8  # the base of timestamp deltas, if the flag in the attributes is set
GROUP_COLUMNS = 9

NO_ROOM = -(2**62)  # in place of a row: the output is too small


def natural(number: int) -> int:
    """Return a number that is not negative. The compiler then knows this too, and looks for no negative indexes."""
    return number & MAX_INT64


def timestamp_ms(rows: Rows, row: int, micros: int) -> int:
    """Return a row's timestamp in milliseconds, rounded down."""
    if not len(rows.timestamps):
        return NO_TIMESTAMP
    timestamp: int = rows.timestamps[row]
    if not micros:
        return timestamp
    return natural(timestamp) // 1000 if timestamp >= 0 else timestamp // 1000  # the first is faster


def place_of(column: ByteColumn, row: int) -> tuple[int, int]:
    """Return where a value begins, and its length, which is -1 for null."""
    if not len(column.limits):
        return 0, -1
    if len(column.valid):
        bit = natural(column.first_bit + row)
        if not column.valid[bit >> 3] >> (bit & 7) & 1:
            return 0, -1
    start: int = column.limits[row]
    return start, column.limits[natural(row + column.ends_at)] - start


def length_at(column: ByteColumn, row: int) -> int:
    """Return the length of a value, or -1 for null."""
    _, length = place_of(column, row)
    return length
