"""The columns that Spark sees: those of its Kafka connector, in the same order, and fields of the record's batch.

    key, value, topic, partition, offset, timestamp, timestampType        always
    headers                                                               with includeHeaders
    leaderEpoch, producerId, producerEpoch, sequence, isTransactional,
    isControl, compression, magic, file, position                         with includeBatchInfo
    the fields of the value, parse_error                                  with valueFormat, instead of value

All columns are nullable, as in the connector, though only key, value and timestamp are ever null.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from octavo.errors import InvalidInput
from octavo.log.config.nearest_name import nearest_name
from octavo.spark.options import Options

_HEADER: Final = StructType([StructField("key", StringType()), StructField("value", BinaryType())])

_RECORD: Final[dict[str, DataType]] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
}
_HEADERS: Final[dict[str, DataType]] = {"headers": ArrayType(_HEADER)}
_BATCH: Final[dict[str, DataType]] = {
    "leaderEpoch": IntegerType(),
    "producerId": LongType(),
    "producerEpoch": ShortType(),
    "sequence": IntegerType(),
    "isTransactional": BooleanType(),
    "isControl": BooleanType(),
    "compression": StringType(),
    "magic": ByteType(),
    "file": StringType(),
    "position": LongType(),
}
_ALL: Final = {**_RECORD, **_HEADERS, **_BATCH}


def schema_of(options: Options) -> StructType:
    """Return the schema that the options ask for. Raises `InvalidInput` if they name an unknown column."""
    typed = _typed(options)
    there = {**_ALL, **typed}
    return StructType([StructField(name, there[name]) for name in _names(options, typed)])


def _typed(options: Options) -> dict[str, DataType]:
    """Return the columns of the value. Raises `InvalidInput` if one of them has the name of another column."""
    if options.typed_values is None:
        return {}
    ours = {name.lower() for name in _ALL}
    typed = {}
    for column in options.typed_values.fields():
        if column.name.lower() in ours:
            raise InvalidInput(
                f"the value has a field {column.name!r}, and there is a column of this name: give a valuePrefix"
            )
        ours.add(column.name.lower())
        typed[column.name] = column.dataType
    return typed


def _names(options: Options, typed: dict[str, DataType]) -> list[str]:
    there = {**_ALL, **typed}
    if options.columns is None:
        headers = _HEADERS if options.include_headers else {}
        names = [*_RECORD, *headers, *(_BATCH if options.include_batch_info else {}), *typed]
        return [name for name in names if not typed or name != "value"]
    by_lower = {name.lower(): name for name in there}
    names = []
    for given in options.columns:
        name = by_lower.get(given.lower())
        if name is None:
            near = nearest_name(given, there)
            hint = f"; there are {', '.join(there)}" if near is None else f"; is {near} meant?"
            raise InvalidInput(f"columns: there is no column {given!r}{hint}")
        if name in names:
            raise InvalidInput(f"columns: {name} is named twice")
        names.append(name)
    if not names:
        raise InvalidInput("columns: none is named")
    return names


def check_schema(given: StructType, options: Options) -> None:
    """Check a schema that the user gave. Raises `InvalidInput` if it differs from `schema_of(options)`."""
    ours = schema_of(options)
    if given != ours:
        raise InvalidInput(
            f"Kafka's log has a fixed schema, {ours.simpleString()}: leave out schema(...), and narrow it by the "
            "option columns"
        )
