"""Schemas in Spark's words become the Arrow types that Spark has for them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from octavo.errors import InvalidInput
from octavo.values.ddl import read_schema, write_schema

INNER = StructType().add("i", IntegerType()).add("list", ArrayType(MapType(StringType(), DoubleType())))
SPARK = (
    StructType()
    .add("a", BooleanType())
    .add("b", ByteType())
    .add("c", ShortType())
    .add("d", IntegerType())
    .add("e", LongType())
    .add("f", FloatType())
    .add("g", DoubleType())
    .add("h", StringType())
    .add("i", BinaryType())
    .add("j", DateType())
    .add("k", TimestampType())
    .add("l", TimestampNTZType())
    .add("m", DecimalType(38, 10))
    .add("n", DecimalType(10, 0))
    .add("a strange `name`", INNER)
)
DDL = """a boolean, b TINYINT, c SmallInt NOT NULL, d INT COMMENT 'it''s', e BIGINT NOT NULL COMMENT "e", f REAL,
 g DOUBLE, h STRING, i BINARY, j DATE, k TIMESTAMP, l TIMESTAMP_NTZ, m DECIMAL(38, 10), n NUMERIC,
 `a strange ``name``` STRUCT<i: INTEGER, list ARRAY<MAP<STRING, DOUBLE>>>"""


def test_ddl_and_json_mean_what_they_mean_to_spark() -> None:
    expected = to_arrow_schema(SPARK, timezone="UTC")
    assert read_schema(SPARK.json()).equals(expected)
    assert read_schema(DDL.replace("it''s", "it is")).equals(expected)


def test_what_is_written_is_read_again() -> None:
    schema = read_schema(SPARK.json())
    assert read_schema(write_schema(schema)).equals(schema)
    assert StructType.fromJson(__import__("json").loads(write_schema(schema))) == SPARK


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "a",
        "a INT,",
        "a INT b INT",
        "a INT, a STRING",
        "a ARRAY",
        "a ARRAY<INT",
        "a MAP<INT, INT>",
        "a MAP<STRING>",
        "a STRUCT<>",
        "a INTERVAL",
        "a VARIANT",
        "a DECIMAL(39, 0)",
        "a DECIMAL(5, 6)",
        "a DECIMAL(1, 2, 3)",
        "a INT; DROP TABLE",
        "a INT NOT",
        "a " + "ARRAY<" * 100 + "INT" + ">" * 100,
        "{",
        "{}",
        '{"type": "struct", "fields": []}',
        '{"type": "array", "elementType": "long"}',
        '{"type": "struct", "fields": [{"name": "a", "type": "udt"}]}',
        '{"type": "struct", "fields": [{"name": "a"}]}',
        '{"type": "struct", "fields": [{"name": 1, "type": "long"}]}',
        '{"type": "struct", "fields": 5}',
        '{"type": "struct", "fields": [{"name": "a", "type": ' + '{"type": "array", "elementType": ' * 5000,
    ],
)
def test_what_is_no_schema_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_schema(text)
    assert "\n" not in str(caught.value)


def test_a_schema_has_at_least_one_field() -> None:
    assert read_schema("a INT").equals(pa.schema([("a", pa.int32())]))
