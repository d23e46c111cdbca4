"""What a user of Spark meets: the format is found by itself, and what is wrong is told in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.spark.test_connector import last_line
from tests.unit.spark.test_faults import FIRST, damage
from tests.unit.spark.topics import write_topic

pytestmark = pytest.mark.timeout(600)


def test_a_log_is_a_table_of_spark_sql(spark: SparkSession, tmp_path: Path) -> None:
    write_topic(tmp_path, "orders", 2, batches=20)
    spark.read.format("octavo").load(str(tmp_path)).createOrReplaceTempView("log")
    (row,) = spark.sql("SELECT count(*) AS n, count(DISTINCT partition) AS p, max(offset) AS last FROM log").collect()
    assert (row.n, row.p, row.last) == (200, 2, 99)
    several = spark.read.format("octavo").load([str(tmp_path / "orders-0"), str(tmp_path / "orders-1")])
    assert several.count() == 200
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW log USING octavo OPTIONS (path '{tmp_path}', subscribe 'orders')")
    assert spark.sql("SELECT * FROM log").count() == 200


def test_a_table_of_a_catalog_is_refused_and_a_view_named_instead(spark: SparkSession, tmp_path: Path) -> None:
    write_topic(tmp_path, "orders", batches=1)
    view = "CREATE TEMPORARY VIEW name USING octavo OPTIONS (path '...', subscribe '...')"
    for statement in (
        f"CREATE TABLE made USING octavo OPTIONS (path '{tmp_path}')",
        f"CREATE TABLE made USING octavo OPTIONS (subscribe 'orders') LOCATION '{tmp_path}'",
    ):
        with pytest.raises(PySparkException) as refused:
            spark.sql(statement)
        assert "CREATE TABLE ... USING octavo makes nothing that can be read" in last_line(refused.value)
        assert last_line(refused.value).endswith(view)
    spark.sql(f"CREATE TABLE made (value BINARY) USING octavo OPTIONS (path '{tmp_path}', columns 'value')")
    try:
        with pytest.raises(PySparkException) as refused:
            spark.sql("SELECT * FROM made").collect()
        assert last_line(refused.value).endswith(view)  # should Spark tell the options some day, this fails
    finally:
        spark.sql("DROP TABLE made")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"startingOffset": "latest"}, "there is no option 'startingoffset'; is startingOffsets meant?"),
        ({"subscribe": "nothing"}, "there is no topic 'nothing' in {folder}; there is 'orders'"),
    ],
)
def test_what_is_wrong_is_told_at_load(
    spark: SparkSession, tmp_path: Path, options: dict[str, str], sentence: str
) -> None:
    write_topic(tmp_path, "orders", batches=1)
    reader = spark.read.format("octavo").options(**options)
    with pytest.raises(PySparkException) as refused:
        reader.load(str(tmp_path))
    assert last_line(refused.value).endswith(f": {sentence.format(folder=tmp_path)}")


def test_a_path_without_a_log_is_told_at_load(spark: SparkSession, tmp_path: Path) -> None:
    for reader in (spark.read.format("octavo"), spark.readStream.format("octavo")):
        with pytest.raises(PySparkException) as refused:
            reader.load(str(tmp_path / "nowhere"))
        expected = f"octavo.errors.BadDirectory: {tmp_path}/nowhere: there is no such file or folder"
        assert last_line(refused.value) == expected
        with pytest.raises(PySparkException) as refused:
            reader.load(str(tmp_path))
        assert "there is no partition here" in last_line(refused.value)


def test_damage_is_told_by_file_and_byte(spark: SparkSession, tmp_path: Path) -> None:
    write_topic(tmp_path, "orders", batches=20)
    position, _ = damage(tmp_path / "orders-0" / FIRST, 3)
    with pytest.raises(PySparkException) as failed:
        spark.read.format("octavo").load(str(tmp_path)).count()
    assert f"{tmp_path}/orders-0/{FIRST}: at byte {position}: checksum is " in str(failed.value)
    frame = spark.read.format("octavo").option("onCorruption", "quarantine")
    frame = frame.option("quarantinePath", str(tmp_path / "aside"))
    assert frame.load(str(tmp_path)).count() == 95
    (row,) = spark.read.json(f"{tmp_path}/aside/*.json").collect()
    assert (row.topic, row.position) == ("orders", position)
