"""Columns with the fields of the value instead of its bytes (option `valueFormat`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from octavo.errors import InvalidInput
from octavo.spark.values import Values

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from octavo.values import ValueDecoder

PARSE_ERROR: Final = "parse_error"


class TypedValues(NamedTuple):
    """How values are decoded, and what their columns are called."""

    decoder: ValueDecoder
    prefix: str

    def fields(self) -> StructType:
        """Return the columns of a value, in Spark's types, and `parse_error`."""
        from pyspark.sql.pandas.types import from_arrow_schema
        from pyspark.sql.types import StringType, StructField, StructType

        typed = from_arrow_schema(self.decoder.schema, prefer_timestamp_ntz=True)
        named = [StructField(self.prefix + field.name, field.dataType) for field in typed]
        return StructType([*named, StructField(PARSE_ERROR, StringType())])

    def stored(self, schema: pa.Schema) -> pa.Schema:
        """Return the columns that have to be read for those of `schema`."""
        import pyarrow as pa

        kept = [field for field in schema if field.name not in self._names]
        if len(kept) < len(schema) and "value" not in schema.names:
            kept.append(pa.field("value", pa.binary()))
        return pa.schema(kept)

    def decode(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield rows with the columns of `schema`."""
        import pyarrow as pa

        if not set(self._names) & set(schema.names):
            yield from (batch.select(schema.names) for batch in batches)
            return
        for batch in batches:
            decoded = self.decoder.decode(batch.column("value"))
            typed = dict(zip(self._names, [*decoded.columns.columns, decoded.errors], strict=True))
            arrays = [typed[name] if name in typed else batch.column(name) for name in schema.names]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    @property
    def _names(self) -> list[str]:
        return [*(self.prefix + name for name in self.decoder.schema.names), PARSE_ERROR]


def read_typed_values(values: Values) -> TypedValues | None:
    """Read the options that begin with `value`; None if there is no `valueFormat`. Raises `InvalidInput`."""
    from octavo.values import schema_text, value_decoder, value_formats

    options = values.options
    if "valueformat" not in options:
        for name in ("valueSchema", "valueSchemaFile", "valueSchemaFolder", "valueMessage", "valuePrefix"):
            if name.lower() in options:
                raise InvalidInput(f"{name} means nothing without valueFormat: one of {', '.join(value_formats())}")
        return None
    if "valueschema" in options and "valueschemafile" in options:
        raise InvalidInput("there is a schema in valueSchema, and another in valueSchemaFile: give one of them")
    path = options.get("valueschemafile")
    name = values.one_of("valueFormat", value_formats(), "")
    decoder = value_decoder(
        name,
        schema=options.get("valueschema") if path is None else schema_text(Path(path.removeprefix("file:")), name),
        schema_folder=options.get("valueschemafolder"),
        message=options.get("valuemessage"),
    )
    return TypedValues(decoder, options.get("valueprefix", ""))
