"""Print many records in one call, from Arrow's buffers to lines of JSON.

What is the same for many records (names, flags, the file) is given as fragments of text. A call continues at a row, and
stops when all rows are printed or the output may have no room for the next one.
"""

from __future__ import annotations

from octavo.records.kernels.encode_input import ByteColumn, Rows, place_of
from octavo.records.kernels.machine import Array, copy
from octavo.records.kernels.printing.scalars import (
    LARGEST_NUMBER,
    ROOM_A_BYTE,
    ROOM_AROUND,
    TEXT,
    put_bytes,
    put_number,
)

# Columns of the table of numbers.
PRODUCER_ID = 0
PRODUCER_EPOCH = 1
SEQUENCE = 2
LEADER_EPOCH = 3
POSITION = 4
KEY_FRAGMENT = 5  # the fragment between timestamp and key, and so on
FLAGS_FRAGMENT = 6  # between sequence and leader epoch
LAST_FRAGMENT = 7  # after the position
NUMBER_COLUMNS = 8

# Fragments that all rows have.
BEFORE_OFFSET = 0
BEFORE_TIMESTAMP = 1
BEFORE_VALUE = 2
BEFORE_HEADERS = 3
BEFORE_PRODUCER_ID = 4
BEFORE_PRODUCER_EPOCH = 5
BEFORE_SEQUENCE = 6
BEFORE_POSITION = 7
SHARED_FRAGMENTS = 8

_NUMBERS_A_ROW = 7  # offset, timestamp, and the first five columns


def put_fragment(out: Array, at: int, limits: Array, fragments: Array, number: int) -> int:
    """Print a fragment of text."""
    start = limits[number]
    size: int = limits[number + 1] - start
    copy(out, at, fragments, start, size)
    return at + size


def room_for(column: ByteColumn, row: int) -> int:
    """Return how many bytes a byte string takes at most."""
    _, length = place_of(column, row)
    return ROOM_AROUND if length < 0 else length * ROOM_A_BYTE + ROOM_AROUND


def put_headers(out: Array, at: int, rows: Rows, row: int, form: int) -> int:
    """Print the headers of a row, without the brackets around them."""
    first = rows.header_ends[row]
    for header in range(first, rows.header_ends[row + 1]):
        if header > first:
            out[at] = 44
            at += 1
        out[at] = 91
        start, length = place_of(rows.header_keys, header)
        at = put_bytes(out, at + 1, rows.header_keys.data, start, length, TEXT)
        out[at] = 44
        start, length = place_of(rows.header_values, header)
        at = put_bytes(out, at + 1, rows.header_values.data, start, length, form)
        out[at] = 93
        at += 1
    return at


def print_lines(
    rows: Rows, numbers: Array, limits: Array, fragments: Array, form: int, row: int, out: Array
) -> tuple[int, int, int]:
    """Print rows from `row` on. Returns the next row, the bytes printed, and how many bytes the next row may take.

    `limits`: where each fragment begins in `fragments`, and where the last one ends
    `form`: how keys and values are printed
    """
    room = len(out)
    at = 0
    needed = 0
    while row < len(rows.offsets):
        needed = limits[SHARED_FRAGMENTS] + _NUMBERS_A_ROW * LARGEST_NUMBER
        for column in range(KEY_FRAGMENT, NUMBER_COLUMNS):
            number = numbers[row, column]
            needed += limits[number + 1] - limits[number]
        needed += room_for(rows.keys, row) + room_for(rows.values, row)
        if len(rows.header_ends):
            for header in range(rows.header_ends[row], rows.header_ends[row + 1]):
                needed += room_for(rows.header_keys, header) + room_for(rows.header_values, header)
        if at + needed > room:
            break
        at = put_fragment(out, at, limits, fragments, BEFORE_OFFSET)
        at = put_number(out, at, rows.offsets[row])
        at = put_fragment(out, at, limits, fragments, BEFORE_TIMESTAMP)
        at = put_number(out, at, rows.timestamps[row])
        at = put_fragment(out, at, limits, fragments, numbers[row, KEY_FRAGMENT])
        start, length = place_of(rows.keys, row)
        at = put_bytes(out, at, rows.keys.data, start, length, form)
        at = put_fragment(out, at, limits, fragments, BEFORE_VALUE)
        start, length = place_of(rows.values, row)
        at = put_bytes(out, at, rows.values.data, start, length, form)
        at = put_fragment(out, at, limits, fragments, BEFORE_HEADERS)
        if len(rows.header_ends):
            at = put_headers(out, at, rows, row, form)
        at = put_fragment(out, at, limits, fragments, BEFORE_PRODUCER_ID)
        at = put_number(out, at, numbers[row, PRODUCER_ID])
        at = put_fragment(out, at, limits, fragments, BEFORE_PRODUCER_EPOCH)
        at = put_number(out, at, numbers[row, PRODUCER_EPOCH])
        at = put_fragment(out, at, limits, fragments, BEFORE_SEQUENCE)
        at = put_number(out, at, numbers[row, SEQUENCE])
        at = put_fragment(out, at, limits, fragments, numbers[row, FLAGS_FRAGMENT])
        at = put_number(out, at, numbers[row, LEADER_EPOCH])
        at = put_fragment(out, at, limits, fragments, BEFORE_POSITION)
        at = put_number(out, at, numbers[row, POSITION])
        at = put_fragment(out, at, limits, fragments, numbers[row, LAST_FRAGMENT])
        row += 1
    return row, at, needed
