"""The columns of `to_arrow` as those of Spark's schema: what a whole slice has is added, and types are made exact."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from octavo.log.names import LOG, file_name
from octavo.spark.slices import Slice

# Measured: of 4,096 to 131,072, about what Spark reads fastest; narrow rows do not care.
BATCH_ROWS: Final = 16_384

_OF_A_SLICE: Final = ("topic", "partition", "file")


class Columns:
    """Makes the batches of Spark's schema of what `to_arrow` gives."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema: Final = schema
        stored = [name for name in schema.names if name not in _OF_A_SLICE]
        self.stored: Final = stored or ["offset"]  # by something the rows have to be counted
        self._constants: dict[str, pa.Array] = {}

    def begin(self, piece: Slice) -> None:
        """From now on batches are of this slice."""
        values = {
            "topic": piece.partition.topic,
            "partition": piece.partition.partition,
            "file": f"{piece.folder}/{file_name(piece.base_offset, LOG)}",
        }
        self._constants = {
            name: pa.repeat(pa.scalar(value, self._schema.field(name).type), BATCH_ROWS)
            for name, value in values.items()
            if name in self._schema.names
        }

    def spark_batch(self, batch: pa.RecordBatch, shift: int) -> pa.RecordBatch:
        """A batch for Spark; positions of its records count from `shift`."""
        rows = batch.num_rows
        arrays = []
        for field in self._schema:
            constant = self._constants.get(field.name)
            if constant is not None:
                arrays.append(constant.slice(0, rows))
                continue
            array = batch.column(field.name)
            if field.name == "position":
                array = pc.add(array, pa.scalar(shift, pa.int64()))
            elif field.name == "headers":
                array = _nullable_headers(array, field.type)
            arrays.append(array)
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _nullable_headers(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The same lists, of a type that says that what is in them may be null; null where they are empty, as in Kafka's
    connector."""
    structs = array.values
    children = [structs.field(number) for number in range(structs.type.num_fields)]
    values = pa.Array.from_buffers(kind.value_type, len(structs), [None], children=children)
    ends = array.buffers()[1]
    filled = np.diff(np.frombuffer(ends, np.int32, len(array) + 1)) > 0
    bits = pa.py_buffer(np.packbits(filled, bitorder="little"))
    return pa.Array.from_buffers(kind, len(array), [bits, ends], children=[values])
