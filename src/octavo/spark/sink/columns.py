"""The columns that the sink takes, by the rules and with the errors of Spark's Kafka connector; `timestamp` is ours."""

from __future__ import annotations

from typing import Final, NamedTuple

import pyarrow as pa
from pyspark.sql.types import StructType

from octavo.errors import InvalidInput

_TEXT: Final = ("string", "binary")
_TYPES: Final = {
    "topic": ("string",),
    "key": _TEXT,
    "value": _TEXT,
    "headers": ("array<struct<key:string,value:binary>>",),
    "partition": ("int",),
    "timestamp": ("timestamp",),
}
# What the source gives with includeBatchInfo, for batches as they were.
_RESTORED: Final = {
    **_TYPES,
    "offset": ("bigint",),
    "timestampType": ("int",),
    "leaderEpoch": ("int",),
    "producerId": ("bigint",),
    "producerEpoch": ("smallint",),
    "sequence": ("int",),
    "isTransactional": ("boolean",),
    "isControl": ("boolean",),
    "compression": ("string",),
    "file": ("string",),
    "position": ("bigint",),
}


class SinkColumns(NamedTuple):
    """Where the columns are in a row of the DataFrame. Columns of other names are ignored."""

    places: dict[str, int]

    @classmethod
    def of(cls, schema: StructType, *, topic: str | None, restore: bool) -> SinkColumns:
        """Find the columns. Raises `InvalidInput` if one is missing or has another type."""
        types = _RESTORED if restore else _TYPES
        places: dict[str, int] = {}
        for place, field in enumerate(schema.fields):
            if field.name in types and not (field.name == "topic" and topic is not None):
                places.setdefault(field.name, place)
        for name, place in places.items():
            given = schema.fields[place].dataType.simpleString()
            if given not in types[name]:
                raise InvalidInput(
                    f"{name} attribute unsupported type {given}. {name} must be a(n) {' or '.join(types[name])}"
                )
        if topic is None and "topic" not in places:
            raise InvalidInput(
                "topic option required when no 'topic' attribute is present. Use the topic option for setting a topic."
            )
        needed = ("value", "partition", "offset") if restore else ("value",)
        for name in needed:
            if name not in places:
                raise InvalidInput(f"Required attribute '{name}' not found")
        return cls(places)

    def select(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns of the sink, under their own names."""
        return pa.RecordBatch.from_arrays(
            [batch.column(place) for place in self.places.values()], names=list(self.places)
        )
