"""Some values are enough to infer a schema, and they are not large, whatever the values are."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from octavo.log import DataDirectory
from octavo.records import BatchBuilder, Codec
from octavo.spark.ranges import Logs
from octavo.spark.tables import sampling
from octavo.spark.tables.export import source_options
from octavo.spark.tables.sampling import sample_values
from tests.unit.spark.topics import write_topic


def sample(logs: Path) -> list[bytes]:
    options = source_options({"path": str(logs), "end": "logEnd"})
    with closing(Logs(options, decides=True)) as opened:
        values: list[bytes] = sample_values(options, opened).to_pylist()
    return values


def test_all_values_of_a_small_log_are_taken(tmp_path: Path) -> None:
    write_topic(tmp_path, "events", partitions=2, batches=20)
    assert len(sample(tmp_path)) == 2 * (100 - 10)  # all but those that are null


def test_few_are_taken_of_large_values_but_some_of_each_partition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "_SIZE", 1 << 20)
    with DataDirectory.open(tmp_path) as data:
        data.create_topic("events", 3, {"retention.ms": "-1"})
        for partition in range(3):
            for _ in range(4):
                builder = BatchBuilder(codec=Codec.ZSTD)
                for _ in range(100):
                    builder.append(None, b"%d" % partition * 10_000, timestamp_ms=1_700_000_000_000)
                data.log("events", partition).append(builder.build())
    values = sample(tmp_path)
    assert 500_000 < sum(map(len, values)) < 1_100_000
    assert {value[:1] for value in values} == {b"0", b"1", b"2"}
