"""A look at some values of the logs, by which a schema can be inferred."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pyarrow as pa

from octavo.spark.options import Options
from octavo.spark.plan import slices_of
from octavo.spark.ranges import Logs, OffsetRange, Sources
from octavo.spark.slices import Slice, Task

_ROWS: Final = 20_000  # of all partitions together
_SIZE: Final = 64 << 20  # bytes of all values together
_MOST_PARTITIONS: Final = 64
_SCHEMA: Final = pa.schema([pa.field("value", pa.binary())])


def sample_values(options: Options, logs: Logs) -> pa.Array:
    """Return values from the start and from the end of the partitions."""
    from octavo.spark.task_reader import TaskReader

    reader = TaskReader(replace(options, columns=("value",)), _SCHEMA)
    found = [pa.array([], pa.binary())]
    pieces = logs.plan(_pieces)
    left = _SIZE
    for number, piece in enumerate(pieces):
        share = left // (len(pieces) - number)  # what one does not need is for those after it
        for batch in reader.read(Task([piece])):
            values = _up_to(share, batch.column("value"))
            found.append(values)
            left -= values.nbytes
            share -= values.nbytes
            if len(values) < batch.num_rows or share <= 0:
                break
    return pa.concat_arrays(found).drop_null()


def _up_to(size: int, values: pa.Array) -> pa.Array:
    """Return the first values, at least one, of about so many bytes. They are copied, so that the others can go."""
    if values.nbytes <= size:
        return values
    return values.take(pa.array(range(max(1, size * len(values) // values.nbytes))))


def _pieces(sources: Sources) -> list[Slice]:
    some = [source for source in sources.values() if source.start < source.end][:_MOST_PARTITIONS]
    pieces = []
    for source in some:
        count = max(1, _ROWS // len(some) // 2)
        ends = {source.start: min(source.end, source.start + count), max(source.start, source.end - count): source.end}
        for first, end in ends.items():
            pieces += slices_of(OffsetRange(source, first, end))
    return pieces
