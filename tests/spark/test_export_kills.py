"""Drivers and workers of an export are killed, and the next export leaves each row in the table once."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from octavo.log import DataDirectory
from octavo.records import BatchBuilder
from octavo.spark.tables.export import export_logs
from octavo.spark.tables.place import UNFINISHED
from tests.crash.exporting import Row, rows_in
from tests.soak.plugin import Soak
from tests.spark import sessions
from tests.spark.processes import has_open, workers

DAY_MS: Final = 86_400_000
TASK_SIZE: Final = "100000"  # so that there are many tasks
_PARTITIONS: Final = 2


class Growing:
    """Logs that get more records for each export."""

    def __init__(self, folder: Path) -> None:
        self.folder: Final = folder
        self.rows: set[Row] = set()
        self._day = 0
        with DataDirectory.open(folder) as data:
            data.create_topic("events", _PARTITIONS, {"retention.ms": "-1", "index.interval.bytes": "4096"})

    def grow(self, batches: int = 30) -> None:
        """Append some 100 records a batch to each partition."""
        self._day += 1
        with DataDirectory.open(self.folder) as data:
            for partition in range(_PARTITIONS):
                for _ in range(batches):
                    builder = BatchBuilder()
                    for number in range(100):
                        value = b"%d" % number * 80
                        builder.append(b"key", value, timestamp_ms=1_700_000_000_000 + self._day * DAY_MS)
                    done = data.log("events", partition).append(builder.build())
                    self.rows |= {("events", partition, each) for each in range(done.base_offset, done.last_offset + 1)}


def check(table: Path, logs: Growing, *, is_done: bool) -> None:
    """No row is there twice, and after an export that was done none is missing."""
    found = rows_in(table)
    assert len(found) == len(set(found))
    assert set(found) <= logs.rows
    assert not is_done or set(found) == logs.rows


def parts_written(table: Path) -> int:
    """How many files wait for a commit."""
    return sum(1 for _ in table.glob("_octavo/staging/*/*.staged"))


class Killer(threading.Thread):
    """Kills a worker that is writing, once so many files of the round are written."""

    def __init__(self, driver: int, table: Path, after: int) -> None:
        super().__init__(daemon=True)
        self.killed: list[int] = []
        self.over: Final = threading.Event()
        self._driver, self._table, self._after = driver, table, after

    def run(self) -> None:
        while not self.over.wait(0.002) and not self.killed:
            if parts_written(self._table) >= self._after:
                for worker in workers(self._driver):
                    if has_open(worker, UNFINISHED):
                        os.kill(worker, signal.SIGKILL)
                        self.killed.append(worker)
                        break


def kill_a_worker(spark: SparkSession, logs: Growing, table: Path, after: int) -> int:
    """Export while a worker is killed; how many were."""
    source = {"path": str(logs.folder), "maxBytesPerPartition": TASK_SIZE}
    killer = Killer(os.getpid(), table, after)
    killer.start()
    failed = None
    try:
        export_logs(spark, source, str(table))
    except (PySparkException, Py4JError) as error:
        failed = error
    finally:
        killer.over.set()
        killer.join()
    if failed is not None and not killer.killed:
        raise failed
    check(table, logs, is_done=failed is None)
    return len(killer.killed)


@pytest.mark.timeout(900)  # every new worker imports everything anew, which takes long on a busy machine
def test_workers_are_killed(spark: SparkSession, tmp_path: Path) -> None:
    logs = Growing(tmp_path / "logs")
    killed = rounds = 0
    while killed < 5:  # on a fast machine a worker may have written its file before it is found
        assert rounds < 50, f"only {killed} workers were found writing in {rounds} exports"
        logs.grow(80)
        killed += kill_a_worker(spark, logs, tmp_path / "table", after=rounds % 8)
        rounds += 1
    export_logs(spark, str(logs.folder), str(tmp_path / "table"))
    check(tmp_path / "table", logs, is_done=True)


# ------------------------------------------------------------------------------------------------------------- drivers


def start_driver(logs: Growing, table: Path) -> subprocess.Popen[bytes]:
    """Run `octavo export` in a process group of its own."""
    command = [sys.executable, "-m", "octavo.cli", "export", str(logs.folder), str(table), "--master", "local[2]"]
    options = ["--source-option", f"maxBytesPerPartition={TASK_SIZE}", "--conf", "spark.driver.memory=512m"]
    return subprocess.Popen(
        [*command, *options],
        env=sessions.environment(),
        cwd=sessions.ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def kill_when(driver: subprocess.Popen[bytes], ready: Callable[[], bool]) -> bool:
    """Kill a driver with its JVM as soon as that is so; whether it was still running."""
    while not ready():
        with contextlib.suppress(subprocess.TimeoutExpired):
            driver.wait(0.03)
            return False
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    return True


@pytest.fixture
def moments(tmp_path: Path) -> Callable[[Random], Callable[[], bool]]:
    """Moments of an export at which a driver is killed."""
    table = tmp_path / "table"

    def choose(random: Random) -> Callable[[], bool]:
        number = random.randrange(8)
        before = set(table.rglob("*.parquet"))
        return random.choice(
            [
                lambda: (table / "_octavo" / "round.json").exists(),
                lambda: parts_written(table) > number,
                lambda: set(table.rglob("*.parquet")) > before,  # in the middle of the renames
                lambda: "decided" in _round(table),
            ]
        )

    return choose


def _round(table: Path) -> str:
    try:
        return (table / "_octavo" / "round.json").read_text().replace('"is_decided": true', "decided")
    except OSError:
        return ""


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
def test_a_driver_is_killed(spark: SparkSession, tmp_path: Path) -> None:
    logs, table = Growing(tmp_path / "logs"), tmp_path / "table"
    for _ in range(10):  # an export may be over before anybody has seen that it writes
        logs.grow()
        if kill_when(start_driver(logs, table), lambda: parts_written(table) > 1):
            break
    else:
        raise AssertionError("no driver was found writing")
    check(table, logs, is_done=False)
    export_logs(spark, str(logs.folder), str(table))
    check(table, logs, is_done=True)


@pytest.mark.soak(60)
def test_drivers_and_workers_are_killed(
    spark: SparkSession, tmp_path: Path, moments: Callable[[Random], Callable[[], bool]], soak: Soak
) -> None:
    logs, table, random = Growing(tmp_path / "logs"), tmp_path / "table", Random(soak.seed)
    for _ in soak.rounds():
        logs.grow(20 + random.randrange(60))
        if random.random() < 0.4:
            was_killed = kill_when(start_driver(logs, table), moments(random))
            check(table, logs, is_done=not was_killed)
        else:
            kill_a_worker(spark, logs, table, random.randrange(10))
        if random.random() < 0.3:
            export_logs(spark, str(logs.folder), str(table))
            check(table, logs, is_done=True)
    export_logs(spark, str(logs.folder), str(table))
    check(table, logs, is_done=True)
