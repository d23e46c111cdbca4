"""The decoder of JSON values."""

from __future__ import annotations

import json
from functools import cached_property
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa

from octavo.values.columns import chunks
from octavo.values.ddl import read_schema, write_schema
from octavo.values.decoder import Decoded, ValueDecoder, joined
from octavo.values.json.columns import Shredder
from octavo.values.json.inference import infer_schema
from octavo.values.json.rows import RowReader
from octavo.values.value_format import ValueFormat


class JsonDecoder(ValueDecoder):
    """Decodes JSON objects. The result is that of Spark's `from_json` in its mode PERMISSIVE."""

    format: ClassVar[str] = "json"

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema

    @cached_property
    def _rows(self) -> RowReader:
        return RowReader(self.schema)

    @cached_property
    def _shredder(self) -> Shredder:
        return Shredder(self.schema)

    def decode(self, values: pa.Array) -> Decoded:
        """Decode a column of values. Errors are where Spark fills `_corrupt_record`, and at values without content."""
        return joined([self._decode(part) for part in chunks(values)], self.schema)

    def _decode(self, values: pa.Array) -> Decoded:
        columns, certain = self._shredder.shred(values)
        doubts = np.flatnonzero(~certain)
        if not len(doubts):
            return Decoded(pa.RecordBatch.from_arrays(columns, schema=self.schema), pa.nulls(len(values), pa.string()))
        rows = [self._rows.read(value) for value in values.take(pa.array(doubts)).to_pylist()]
        order = np.arange(len(values))
        order[doubts] = np.arange(len(values), len(values) + len(doubts))
        exact = [pa.array([row.fields.get(field.name) for row in rows], field.type) for field in self.schema]
        merged = [
            pa.concat_arrays([column, more]).take(pa.array(order)) for column, more in zip(columns, exact, strict=True)
        ]
        errors = np.full(len(values), None, object)
        errors[doubts] = [row.error for row in rows]
        return Decoded(pa.RecordBatch.from_arrays(merged, schema=self.schema), pa.array(errors, pa.string()))

    def to_text(self) -> str:
        """Return the decoder as text."""
        return json.dumps({"format": self.format, "schema": write_schema(self.schema)})


class JsonFormat(ValueFormat):
    """JSON, with a schema as Spark writes it."""

    needs = ("schema",)

    def decoder(
        self, *, schema: str | None = None, schema_folder: str | None = None, message: str | None = None
    ) -> JsonDecoder:
        """Return the decoder for a schema. Raises `InvalidInput`."""
        assert schema is not None
        return JsonDecoder(read_schema(schema))

    def infer(self, values: pa.Array) -> JsonDecoder:
        """Return a decoder with the fields that the values have."""
        return JsonDecoder(infer_schema(values))


FORMAT: Final = JsonFormat()
