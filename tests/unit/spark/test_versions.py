"""What an older Spark lacks is refused in one sentence, and the rest of Octavo does without it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pyspark
import pytest
from pyspark.sql import datasource
from pyspark.sql.types import StringType, StructField, StructType

import octavo.spark
from octavo.errors import SparkTooOld
from octavo.spark import OctavoSource
from octavo.spark.versions import arrow_schema
from tests.unit.spark.topics import write_topic

VALUES = StructType([StructField("value", StringType())])
LIMITS = {"maxOffsetsPerTrigger": "9", "maxBytesPerTrigger": "9", "minOffsetsPerTrigger": "9", "maxTriggerDelay": "1s"}


@contextmanager
def on_spark(version: str) -> Iterator[type[OctavoSource]]:
    """The source, imported anew on a PySpark that lacks what later versions have brought."""
    usual = {name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith("octavo.spark")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(octavo, "spark", None)
        patch.setattr(pyspark, "__version__", version)
        if version < "4.2":
            patch.setitem(sys.modules, "pyspark.sql.streaming.datasource", None)
        if version < "4.1":
            patch.delattr(datasource, "DataSourceStreamArrowWriter", raising=False)
        if version < "4.0":
            patch.setitem(sys.modules, "pyspark.sql.datasource", None)
        try:
            imported: ModuleType = import_module("octavo.spark")
            yield imported.OctavoSource
        finally:
            for name in [name for name in sys.modules if name.startswith("octavo.spark")]:
                del sys.modules[name]
            sys.modules.update(usual)


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("version", ["4.0.5", "4.1.1"])
def test_a_stream_with_limits_needs_spark_4_2(tmp_path: Path, version: str, name: str) -> None:
    write_topic(tmp_path, batches=1)
    with on_spark(version) as source:
        limited = source({"path": str(tmp_path), name: LIMITS[name]})
        with pytest.raises(SparkTooOld) as refused:
            limited.streamReader(limited.schema())
    assert str(refused.value) == f"a stream with {name} needs Spark 4.2 or later, and this is Spark {version}"


def test_several_limits_are_named_together(tmp_path: Path) -> None:
    write_topic(tmp_path, batches=1)
    given = {"path": str(tmp_path), "maxOffsetsPerTrigger": "9", "maxBytesPerTrigger": "9"}
    with on_spark("4.1.1") as source, pytest.raises(SparkTooOld, match="with maxOffsetsPerTrigger and maxBytesPer"):
        source(given).streamReader(source(given).schema())


def test_a_stream_that_writes_needs_spark_4_1(tmp_path: Path) -> None:
    given = {"path": str(tmp_path / "log"), "topic": "t"}
    with on_spark("4.0.5") as source, pytest.raises(SparkTooOld) as refused:
        source(given).streamWriter(VALUES, overwrite=False)
    assert str(refused.value) == (
        'writeStream.format("octavo") needs Spark 4.1 or later, and this is Spark 4.0.5; until then, write in '
        "foreachBatch, with the options txnAppId and txnVersion"
    )


def test_the_format_needs_spark_4() -> None:
    with pytest.raises(SparkTooOld) as refused, on_spark("3.5.6"):
        pass
    assert str(refused.value) == 'format("octavo") needs Spark 4.0 or later, and this is Spark 3.5.6'
    assert (refused.value.needed, refused.value.running) == ("4.0", "3.5.6")


def test_the_rest_works_without_what_came_later(tmp_path: Path) -> None:
    """A batch query also ignores limits of a stream, as it does on a newer Spark."""
    write_topic(tmp_path / "data", batches=2)
    given = {"path": str(tmp_path / "data")}
    with on_spark("4.0.5") as source:
        read = source(given | LIMITS)
        (task,) = read.reader(read.schema()).partitions()
        assert sum(len(rows) for rows in read.reader(read.schema()).read(task)) == 10
        stream = source(given | {"startingOffsets": "earliest"}).streamReader(read.schema())
        assert stream.initialOffset() == {"events": {"0": 0}}
        assert cast(Any, stream).latestOffset() == {"events": {"0": 10}}  # without arguments, as before 4.2
        write = {"path": str(tmp_path / "log"), "topic": "t"}
        assert source(write).writer(VALUES, overwrite=False) is not None


@pytest.mark.since_spark("4.1")
def test_a_stream_that_writes_does_not_need_more(tmp_path: Path) -> None:
    given = {"path": str(tmp_path / "log"), "topic": "t"}
    with on_spark(min("4.1.1", pyspark.__version__)) as source:
        assert source(given).streamWriter(VALUES, overwrite=False) is not None


def test_times_are_utc_whatever_spark() -> None:
    (field,) = arrow_schema(StructType().add("timestamp", "timestamp"))
    assert str(field.type) == "timestamp[us, tz=UTC]"
