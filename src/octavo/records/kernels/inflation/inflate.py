"""Decompress the records of many batches in one call: lz4 in Kafka's framing, and snappy.

The kernel decompresses what is well-formed, which is nearly everything. At anything else it stops and names the batch:
a codec library then decides, as strictly as Kafka's, and its error is the one that callers get. So no rule about
damaged streams stands here, and none may be missing: whatever is written is checked against the room, and whatever is
read against the end of the batch.

The room that may be filled ends `SLACK` bytes before the output does (see `copy`).
"""

from __future__ import annotations

from octavo.records.kernels.inflation.copy import FULL, SLACK, UNUSUAL
from octavo.records.kernels.inflation.lz4 import lz4_frame
from octavo.records.kernels.inflation.snappy import snappy_stream
from octavo.records.kernels.machine import Array
from octavo.records.kernels.scan import ATTRIBUTES, END, INFLATED, POSITION, SIZE, START
from octavo.records.layout import HEADER_SIZE, Attributes, Codec

# Outcomes: everything is done, `room` is too small for the next batch, or a library has to decompress it.
DONE = 0
NO_ROOM = 1
OTHER = 2

_CODEC = int(Attributes.CODEC)
_SNAPPY = int(Codec.SNAPPY)
_LZ4 = int(Codec.LZ4)


def inflate(
    data: Array, table: Array, rows: Array, first: int, last: int, out: Array, at: int, enough: int, limit: int
) -> tuple[int, int, int]:
    """Decompress the batches of `rows[first:last]` of a table into `out`, from `at` on.

    Returns how far in `rows` it came, the end of the output, and the outcome. It ends when the output reaches `enough`.
    `limit` is the most bytes of one batch.
    """
    while first < last and at < enough:
        row = rows[first]
        start = table[row, POSITION] + HEADER_SIZE
        end = table[row, POSITION] + table[row, SIZE]
        room = min(len(out) - SLACK, at + limit)
        codec = table[row, ATTRIBUTES] & _CODEC
        if codec == _LZ4:
            to = lz4_frame(data, start, end, out, at, room, limit)
        elif codec == _SNAPPY:
            to = snappy_stream(data, start, end, out, at, room)
        else:
            to = UNUSUAL
        if to < 0:
            return first, at, NO_ROOM if to == FULL and room < at + limit else OTHER
        table[row, INFLATED] = 1
        table[row, START] = at
        table[row, END] = to
        at = to
        first += 1
    return first, at, DONE
