"""Why the source takes no filters: Spark, from 4.1 on, where it passes them to Python, keeps them for other queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, GreaterThanOrEqual, InputPartition

pytestmark = pytest.mark.timeout(600)


class Numbers(DataSource):
    """Ten numbers, by a reader that takes filters."""

    @classmethod
    def name(cls) -> str:
        return "numbers"

    def schema(self) -> str:
        return "n long"

    def reader(self, schema: object) -> DataSourceReader:
        return NumbersReader()


class NumbersReader(DataSourceReader):
    """Applies `n >= x` by itself."""

    def __init__(self) -> None:
        self.least = 0

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        for each in filters:
            if isinstance(each, GreaterThanOrEqual):
                self.least = each.value
            else:
                yield each

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        return iter([(number,) for number in range(self.least, 10)])


def test_spark_still_keeps_filters_that_were_pushed_down(spark: SparkSession) -> None:
    """Why there is no `pushFilters` here. When this fails, Spark is mended, and options need not do all pruning."""
    spark.dataSource.register(Numbers)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = spark.read.format("numbers").load()
        assert frame.where("n >= 4").count() == 6
        assert frame.count() == 6, "and not 10"
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
