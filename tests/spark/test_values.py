"""Typed values are those of Spark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls them
from pyspark.sql.pandas.types import from_arrow_schema

from octavo.values import infer_decoder, value_decoder
from tests.soak.plugin import Soak
from tests.unit.spark.test_typed_columns import SCHEMA as EVENTS
from tests.unit.spark.test_typed_columns import write
from tests.unit.values.json.documents import SCHEMA, documents, plain_documents


def plain(kind: pa.DataType) -> pa.DataType:
    """A type with numbers for times, which may be beyond what Python has."""
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_date(kind):
        return pa.int32()
    return kind


def rows(table: pa.Table) -> list[str]:
    """One text a row, in which NaN equals NaN."""
    columns = [column.cast(plain(column.type)).to_pylist() for column in table.columns]
    return [repr(row) for row in zip(*columns, strict=True)]


def from_json(spark: SparkSession, values: Sequence[bytes | None], schema: str) -> pa.Table:
    """What Spark makes of values, and in its last column those that it calls corrupt."""
    frame = spark.createDataFrame(pa.table({"value": pa.array(values, pa.binary())}))
    parsed = F.from_json(F.col("value").cast("string"), f"{schema}, _corrupt_record STRING")
    table: pa.Table = frame.select(parsed.alias("row")).select("row.*").toArrow()
    return table


def differences(values: Sequence[bytes | None], ours: pa.Table, theirs: pa.Table) -> list[tuple[Any, ...]]:
    pairs = zip(values, rows(ours), rows(theirs), strict=True)
    return [pair for pair in pairs if pair[1] != pair[2]]


def agree(spark: SparkSession, values: Sequence[bytes | None], schema: str) -> None:
    decoded = value_decoder("json", schema=schema).decode(pa.array(values, pa.binary()))
    theirs = from_json(spark, values, schema)
    ours = pa.Table.from_batches([decoded.columns])
    assert ours.schema.equals(theirs.schema.remove(len(theirs.schema) - 1))
    assert not differences(values, ours, theirs.drop_columns(["_corrupt_record"]))
    corrupt = theirs["_corrupt_record"].is_valid().to_pylist()
    for value, error, expected in zip(values, decoded.errors.to_pylist(), corrupt, strict=True):
        has_content = value is not None and value.strip(b" \t\r\n")  # Spark finds nothing wrong with an empty value
        assert (error is not None) == (expected if has_content else value is not None), (value, error)


def test_json_becomes_what_from_json_makes_of_it(spark: SparkSession) -> None:
    agree(spark, [*documents(1, 3000), *plain_documents(1, 2000)], SCHEMA)


@pytest.mark.soak
def test_much_json_becomes_what_from_json_makes_of_it(spark: SparkSession, soak: Soak) -> None:
    for seed in soak.seeds():
        agree(spark, [*documents(seed, 3000), *plain_documents(seed, 2000)], SCHEMA)


def test_an_inferred_schema_is_the_one_that_spark_infers(spark: SparkSession) -> None:
    sound = [value for value in plain_documents(3, 200) if value.strip()]
    odd = [
        b'{"a":12345678901234567890,"b":{},"c":[],"d":[{}],"e":"","f":[1,2.5],"g":[1,"x"],"":1}',
        b'{"a":1.5,"h":123456789012345678901234567890123456789,"i":18446744073709551616,"j":{"k":null}}',
        b'{"i":1,"l":true,"m":[{"x":1},{"y":[null]}],"n":5}',
    ]
    for values in (sound, odd, [*sound, *odd]):
        frame = spark.createDataFrame([(value.decode(),) for value in values], "value STRING")
        theirs = spark.read.json(frame.rdd.map(lambda row: row.value)).schema
        inferred = infer_decoder("json", pa.array([*values, None, b"", b"[1]", b'{"q":'], pa.binary())).schema
        assert from_arrow_schema(inferred) == theirs


def test_the_source_gives_what_from_json_makes_of_its_values(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path)
    source = spark.read.format("octavo").option("subscribe", "events")
    typed = source.option("valueFormat", "json").option("valueSchema", EVENTS).load(str(tmp_path))
    parsed = F.from_json(F.col("value").cast("string"), EVENTS)
    raw = spark.read.format("octavo").load(str(tmp_path)).select("partition", "offset", parsed.alias("v"))
    expected = raw.select("partition", "offset", "v.*").orderBy("partition", "offset").collect()
    names = ["partition", "offset", "n", "name", "tags"]
    assert typed.select(*names).orderBy("partition", "offset").collect() == expected
    assert typed.where("parse_error is not null").count() == sum(row.name == "y" for row in expected) > 0


def test_a_filter_of_keys_is_sparks_own(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "data", batches=10)
    every = spark.read.format("octavo").load(str(tmp_path / "data"))
    for option, value, condition in (
        ("keyEquals", "a-2", F.col("key") == F.lit(bytearray(b"a-2"))),
        ("keyPrefix", "hex:62", F.col("key").startswith(F.lit(bytearray(b"b")))),
    ):
        expected = in_order(every.where(condition).collect())
        assert 0 < len(expected) < 100
        filtered = spark.read.format("octavo").option(option, value).load(str(tmp_path / "data")).collect()
        assert in_order(filtered) == expected
    stream = spark.readStream.format("octavo").option(option, value).option("startingOffsets", "earliest")
    query = (
        stream.load(str(tmp_path / "data"))
        .writeStream.format("memory")
        .queryName("filtered")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert in_order(spark.table("filtered").collect()) == expected


def in_order(found: Sequence[Row]) -> list[Row]:
    return sorted(found, key=lambda row: (row.partition, row.offset))
