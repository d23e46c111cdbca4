"""Convert the columns of `to_arrow` to Spark's schema.

Topic, partition and file, which are the same for a whole slice, are added. Types are made exactly those of the schema.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from octavo.log.names import LOG, file_name
from octavo.spark.joined import Window
from octavo.spark.slices import Slice

# Measured with 4,096 to 131,072 rows: Spark reads about this size fastest. For narrow rows it makes no difference.
BATCH_ROWS: Final = 16_384

_OF_A_SLICE: Final = ("topic", "partition", "file")


class SparkColumns:
    """Converts the batches of `to_arrow` to Spark's schema."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema: Final = schema
        self.names: Final = list(schema.names)
        stored = [name for name in schema.names if name not in _OF_A_SLICE]
        self.stored: Final = stored or ["offset"]  # at least one column is needed, to count the rows
        self.stored_joined: Final = list(dict.fromkeys([*self.stored, "position"]))  # columns for `joined_batch`
        self._values: dict[str, Any] = {}
        self._constants: dict[str, tuple[Any, pa.Array]] = {}

    def begin(self, piece: Slice) -> None:
        """Set the slice whose batches the following calls of `spark_batch` convert."""
        values = _values_of(piece)
        self._values = {name: values[name] for name in _OF_A_SLICE if name in self._schema.names}

    def spark_batch(self, batch: pa.RecordBatch, shift: int) -> pa.RecordBatch:
        """Convert a batch to Spark's schema. Positions in it are relative to `shift`, a position in the file."""
        arrays = []
        for field in self._schema:
            if field.name in self._values:
                arrays.append(self._constant(field, self._values[field.name], batch.num_rows))
                continue
            array = batch.column(field.name)
            if field.name == "position":
                array = pc.add(array, pa.scalar(shift, pa.int64()))
            arrays.append(_exact(array, field))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def joined_batch(self, batch: pa.RecordBatch, window: Window) -> pa.RecordBatch:
        """Convert a batch with records of several slices to Spark's schema. Its positions are relative to `window`."""
        positions = batch.column("position").to_numpy()
        parts = window.part_of(positions)
        first, last = int(parts[0]), int(parts[-1])  # positions are in ascending order
        values = [_values_of(piece) for piece in window.slices[first : last + 1]]
        arrays = []
        for field in self._schema:
            if field.name in _OF_A_SLICE:
                of_parts = [value[field.name] for value in values]
                if of_parts.count(of_parts[0]) == len(of_parts):
                    arrays.append(self._constant(field, of_parts[0], batch.num_rows))
                else:
                    arrays.append(pa.array(of_parts, field.type).take(pa.array(parts - first)))
            elif field.name == "position":
                shifts = np.array([piece.position for piece in window.slices], np.int64) - window.starts
                arrays.append(pa.array(positions + shifts[parts]))
            else:
                arrays.append(_exact(batch.column(field.name), field))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _constant(self, field: pa.Field, value: Any, rows: int) -> pa.Array:
        """Return a column that has the same value in all rows. It is cached, as the next batch often needs the same."""
        known, array = self._constants.get(field.name, (None, None))
        if array is None or known != value or len(array) < rows:
            array = pa.repeat(pa.scalar(value, field.type), rows)
            self._constants[field.name] = (value, array)
        return array.slice(0, rows)


def _values_of(piece: Slice) -> dict[str, Any]:
    """Return the values that all records of a slice have in common."""
    return {
        "topic": piece.partition.topic,
        "partition": piece.partition.partition,
        "file": f"{piece.folder}/{file_name(piece.base_offset, LOG)}",
    }


def _exact(array: pa.Array, field: pa.Field) -> pa.Array:
    return _nullable_headers(array, field.type) if field.name == "headers" else array


def _nullable_headers(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert lists of headers to a type with nullable fields; empty lists become null, as in Kafka's connector."""
    structs = array.values
    children = [structs.field(number) for number in range(structs.type.num_fields)]
    values = pa.Array.from_buffers(kind.value_type, len(structs), [None], children=children)
    ends = array.buffers()[1]
    filled = np.diff(np.frombuffer(ends, np.int32, len(array) + 1)) > 0
    bits = pa.py_buffer(np.packbits(filled, bitorder="little"))
    return pa.Array.from_buffers(kind, len(array), [bits, ends], children=[values])
