"""The decoder of JSON values."""

from __future__ import annotations

import json
from functools import cached_property
from typing import ClassVar

import pyarrow as pa

from octavo.values.ddl import read_schema, write_schema
from octavo.values.decoder import Decoded, ValueDecoder
from octavo.values.json.rows import Row, RowReader


class JsonDecoder(ValueDecoder):
    """Decodes JSON objects. The result is that of Spark's `from_json` in its mode PERMISSIVE."""

    format: ClassVar[str] = "json"

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema

    @cached_property
    def _rows(self) -> RowReader:
        return RowReader(self.schema)

    def decode(self, values: pa.Array) -> Decoded:
        """Decode a column of values. Errors are where Spark fills `_corrupt_record`, and at values without content."""
        rows = [Row({}, None) if value is None else self._rows.read(value) for value in values.to_pylist()]
        return _columns(rows, self.schema)

    def to_text(self) -> str:
        """Return the decoder as text."""
        return json.dumps({"format": self.format, "schema": write_schema(self.schema)})


def json_decoder(schema: str) -> JsonDecoder:
    """Return the decoder for a schema as Spark writes it. Raises `InvalidInput`."""
    return JsonDecoder(read_schema(schema))


def _columns(rows: list[Row], schema: pa.Schema) -> Decoded:
    columns = [pa.array([row.fields.get(field.name) for row in rows], field.type) for field in schema]
    errors = pa.array([row.error for row in rows], pa.string())
    return Decoded(pa.RecordBatch.from_arrays(columns, schema=schema), errors)
