"""Not on one machine's Spark alone: a cluster whose executors are other processes, and Spark Connect."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

from octavo.log import DataDirectory
from octavo.records import from_arrow
from tests.soak.plugin import Soak
from tests.spark import sessions
from tests.spark.programs.writes import Work, of_batch, values
from tests.unit.spark.topics import write_topic

pytestmark = [pytest.mark.timeout(1000), pytest.mark.usefixtures("java")]


LARGE: Final = 20_000  # records of the large topic
KILLS: Final = 4  # executors that a cluster loses in the soak


def run(program: str, *arguments: object, longest_s: int = 900) -> dict[str, Any]:
    """What a program prints."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", f"tests.spark.programs.{program}", *map(str, arguments)],
            env=sessions.environment(),
            cwd=sessions.ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=longest_s,
        )
    except subprocess.TimeoutExpired as hanging:
        pytest.fail(f"{program} has not ended after {longest_s} s: {(hanging.stderr or b'')[-4000:].decode()}")
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.exhaustive
def test_a_cluster_reads_writes_exports_and_imports_also_when_tasks_are_killed(tmp_path: Path) -> None:
    log, work = tmp_path / "log", tmp_path / "work"
    log.mkdir()
    work.mkdir()
    write_large_topic(log)
    found = run("cluster", log, work)
    assert found["was killed"]
    assert found["survived"] == found["read"] == found["streamed"] == list(range(LARGE))
    assert found["workers"] >= 2
    assert found["tasks"] > 5
    assert found["triggers"] == 4
    assert found["speculated"] == {"slow": True, "None": True}
    assert found["executors killed"] == 2
    written = Work(work)
    assert values(written) == Counter(written.rows()) + of_batch("slow") + of_batch("write 0")
    assert found["an exporter was killed"]
    assert found["rows"] == [LARGE, 0, LARGE]
    assert found["files"] > 5
    assert found["exported"] == list(range(LARGE))
    assert found["told all"]
    assert found["is restored"]
    assert found["in bucket"] == sorted([*range(50), *range(50)])


@pytest.mark.soak(120)
def test_executors_are_killed_one_after_the_other(tmp_path: Path, soak: Soak) -> None:
    for seed in soak.seeds():
        folder = tmp_path / str(seed)
        folder.mkdir()
        found = run("cluster_writes", folder, seed, KILLS, longest_s=7200)
        assert found["killed"] == KILLS
        work = Work(folder)
        batches = sum((of_batch(f"write {number}") for number in range(0, KILLS, 2)), Counter[str]())
        assert values(work) == Counter(work.rows()) + batches


def write_large_topic(folder: Path) -> None:
    """Records in one segment, of more than the four socket buffers behind a reader hold (72 MiB)."""
    values = [b"%6000d" % number for number in range(LARGE // 200)]
    piece = from_arrow(pa.RecordBatch.from_pydict({"value": values}), max_size=1 << 20)
    with DataDirectory.open(folder) as data:
        data.create_topic("events", 1, {"retention.ms": "-1"})
        for _ in range(200):
            data.log("events", 0).append(piece)


@pytest.mark.exhaustive
def test_spark_connect_reads_writes_streams_exports_and_imports(tmp_path: Path) -> None:
    log, work = tmp_path / "log", tmp_path / "work"
    log.mkdir()
    work.mkdir()
    write_topic(log)
    found = run("connect", log, work)
    assert found["kind"].startswith("pyspark.sql.connect")
    assert found["columns"] == ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    assert found["read"] == found["streamed"] == list(range(500))
    assert "there is no topic 'nothing' in " in found["refused"]
    assert found["numbers"] == list(range(100))
    assert found["copy"] == list(range(500))
    assert "Required attribute 'value' not found" in found["write refused"]
    assert found["rows"] == [500, 0, 500]
    assert found["files"] > 5
    assert found["exported"] == list(range(500))
    assert found["told all"]
    assert found["is restored"]
