"""The columns of the sink, with the errors of Spark's connector."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from octavo.errors import InvalidInput
from octavo.spark.sink.columns import SinkColumns

HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
TYPES: dict[str, DataType] = {
    "int": IntegerType(),
    "bigint": LongType(),
    "string": StringType(),
    "binary": BinaryType(),
    "date": DateType(),
    "map": MapType(StringType(), BinaryType()),
    "headers": ArrayType(HEADER, containsNull=False),
}


def schema(text: str) -> StructType:
    columns = [column.split() for column in text.split(", ")]
    return StructType([StructField(name, TYPES[kind]) for name, kind in columns])


def test_other_columns_are_ignored() -> None:
    columns = SinkColumns.of(
        schema("a int, value string, b date, key binary, headers headers"), topic="t", restore=False
    )
    batch = pa.RecordBatch.from_pydict({"a": [1], "value": ["v"], "b": [None], "key": [b"k"], "headers": [None]})
    assert columns.select(batch).to_pydict() == {"value": ["v"], "key": [b"k"], "headers": [None]}


def test_the_option_topic_comes_before_the_column() -> None:
    assert SinkColumns.of(schema("topic int, value string"), topic="t", restore=False).places == {"value": 1}


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        (
            "value string",
            "topic option required when no 'topic' attribute is present. Use the topic option for setting a topic.",
        ),
        ("topic string", "Required attribute 'value' not found"),
        ("topic int, value string", "topic attribute unsupported type int. topic must be a(n) string"),
        ("topic string, value int", "value attribute unsupported type int. value must be a(n) string or binary"),
        (
            "topic string, value string, key bigint",
            "key attribute unsupported type bigint. key must be a(n) string or binary",
        ),
        (
            "topic string, value string, partition bigint",
            "partition attribute unsupported type bigint. partition must be a(n) int",
        ),
        (
            "topic string, value string, headers map",
            "headers attribute unsupported type map<string,binary>. headers must be a(n) "
            "array<struct<key:string,value:binary>>",
        ),
        (
            "topic string, value string, timestamp bigint",
            "timestamp attribute unsupported type bigint. timestamp must be a(n) timestamp",
        ),
    ],
)
def test_what_is_wrong_is_told_as_by_the_connector(columns: str, sentence: str) -> None:
    with pytest.raises(InvalidInput) as told:
        SinkColumns.of(schema(columns), topic=None, restore=False)
    assert str(told.value) == sentence


def test_restoring_needs_offsets_and_partitions() -> None:
    with pytest.raises(InvalidInput, match="Required attribute 'offset' not found"):
        SinkColumns.of(schema("topic string, value string, partition int"), topic=None, restore=True)
