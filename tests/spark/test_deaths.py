"""Drivers and Python workers are killed while Spark writes a log: afterwards each row is there once.

What kills them is in tests.spark.dying: at chosen steps of a write; or, in the soak, at any time.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from octavo.errors import DirectoryLocked
from octavo.log.metadata import handover
from octavo.log.ownership.lock import DirectoryLock
from tests.kafka.client import OLD_RESOURCES, KafkaProducer
from tests.kafka.conftest import NewBroker
from tests.soak.plugin import Soak
from tests.spark import sessions
from tests.spark.dying import STEPS, Death, DyingSource
from tests.spark.processes import descendants, kill, workers
from tests.spark.programs.writes import ROWS, TOPIC, Job, Work, of_batch, values, write

pytestmark = [pytest.mark.timeout(1200), pytest.mark.usefixtures("java"), OLD_RESOURCES]

LONGEST_S: Final = 900  # a driver that takes longer hangs, however busy the machine is
IDENTITY: Final = {"txnAppId": "job", "txnVersion": "1"}


@contextmanager
def driver(work: Work, jobs: Sequence[Job]) -> Iterator[subprocess.Popen[str]]:
    """Run a driver that does the jobs. Nothing of it stays."""
    command = [sys.executable, "-m", "tests.spark.programs.writes", "local[2,4]", str(work.folder), json.dumps(jobs)]
    with (work.folder / "output").open("w") as output:  # no pipe: workers that outlive their driver hold it open
        process = subprocess.Popen(
            command, env=sessions.environment(), cwd=sessions.ROOT, stdout=output, stderr=output, text=True
        )
    try:
        yield process
    finally:
        kill([*descendants(process.pid), process.pid])
        process.wait()


def output(work: Work) -> str:
    """The last of what a driver has printed, for a person to find out what went wrong."""
    return (work.folder / "output").read_text()[-6000:]


def run(work: Work, *jobs: Job) -> int:
    """Run a driver to its end; returns how it ended."""
    with driver(work, jobs) as process:
        try:
            return process.wait(LONGEST_S)
        except subprocess.TimeoutExpired:
            pytest.fail(f"the driver has neither ended nor died after {LONGEST_S} s:\n{output(work)}")


def run_until_killed(work: Work, death: Death, *jobs: Job) -> None:
    """Run a driver that is to die in its last job."""
    code = run(work, *jobs)
    assert Path(death.marker).exists(), f"nobody got to the step {death.step}:\n{output(work)}"
    assert code == -signal.SIGKILL, output(work)


def wait_until_free(folder: Path) -> None:
    """Wait until the worker that committed is dead, too: the kernel ends processes one after the other."""
    deadline = time.monotonic() + LONGEST_S
    while True:
        try:
            with DirectoryLock.acquire(folder):
                return
        except DirectoryLocked:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


@pytest.fixture
def dying(spark: SparkSession) -> SparkSession:
    spark.dataSource.register(DyingSource)
    return spark


@pytest.mark.parametrize("step", ["committed", pytest.param("end", marks=pytest.mark.exhaustive)])
def test_a_batch_write_is_repeated_after_its_commit_was_killed(dying: SparkSession, tmp_path: Path, step: str) -> None:
    work = Work(tmp_path)
    death = Death(step, "worker", str(tmp_path / "died"))
    with pytest.raises((PySparkException, Py4JJavaError)):
        write(dying, work, Job("a", {**IDENTITY, **death.options}))
    assert Path(death.marker).exists()
    write(dying, work, Job("a", IDENTITY))
    assert values(work) == of_batch("a")


def test_a_stream_goes_on_after_its_commit_was_killed(dying: SparkSession, tmp_path: Path) -> None:
    """The second micro-batch is in the log then, and Spark does not know."""
    work = Work(tmp_path)
    work.fill_source(3)
    death = Death("committed", "worker", str(tmp_path / "died"), 1)
    with pytest.raises(PySparkException):
        write(dying, work, Job(None, death.options))
    assert Path(death.marker).exists()
    assert work.next_micro_batch == 1
    assert values(work).total() == 80
    write(dying, work, Job(None, {}))
    assert values(work) == Counter(work.rows())


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "step", [step if step == "append 2" else pytest.param(step, marks=pytest.mark.soak(60)) for step in STEPS]
)
def test_kafka_takes_records_after_a_driver_was_killed(
    dying: SparkSession, tmp_path: Path, new_broker: NewBroker, step: str
) -> None:
    """Then the stream goes on, which opens the directory: each row is there once, and so are Kafka's records."""
    work = Work(tmp_path)
    work.fill_source(3)
    death = Death(step, "driver", str(tmp_path / "died"), 1)
    run_until_killed(work, death, Job(None, death.options))
    if work.log.exists():
        wait_until_free(work.log)
        handover([work.log])
        broker = new_broker(work.log)
        broker.start()
        producer: Any = KafkaProducer(bootstrap_servers=broker.address)
        for number in range(10):
            producer.send(TOPIC, partition=number % 2, value=b"of Kafka %d" % number)
        producer.flush()
        producer.close()
        broker.stop()
        assert not [path for path in work.log.iterdir() if path.name.endswith("-stray")]
    of_kafka = [f"of Kafka {number}" for number in range(10)] if work.log.exists() else []
    write(dying, work, Job(None, {}))
    assert values(work) == Counter([*work.rows(), *of_kafka])


def kill_at_any_time(work: Work, rng: random.Random, *jobs: Job) -> None:
    """Run a driver, and kill it, or its JVM, or its workers, while it does its last job."""
    with driver(work, jobs) as process:
        deadline = time.monotonic() + LONGEST_S
        while output(work).count("a job begins") < len(jobs):
            assert process.poll() is None, output(work)
            assert time.monotonic() < deadline, f"the last job has not begun after {LONGEST_S} s:\n{output(work)}"
            time.sleep(0.05)
        time.sleep(rng.uniform(0, 5))
        everything = [process.pid, *descendants(process.pid)]
        kill(rng.choice([everything, everything[1:2], list(workers(process.pid))]))
        try:
            process.wait(LONGEST_S)
        except subprocess.TimeoutExpired:
            pytest.fail(f"the driver has not ended {LONGEST_S} s after something of it was killed:\n{output(work)}")


@pytest.mark.soak(120)
def test_drivers_are_killed_one_after_the_other(tmp_path: Path, soak: Soak) -> None:
    """At each step, and three at any time, and so on. A write that has an identity is repeated by the next driver."""
    rng = random.Random(soak.seed)
    work = Work(tmp_path)
    chances = [*STEPS, None, None, None]
    rng.shuffle(chances)
    once: Counter[str] = Counter()  # what has to be there, beside the rows of the stream
    again: list[Job] = []
    for number in soak.rounds():
        step = chances[number % len(chances)]
        name = None if rng.random() < 0.5 else f"write {number}"
        has_identity = name is not None and rng.random() < 0.7
        job = Job(name, {"txnAppId": "job", "txnVersion": str(number)} if has_identity else {})
        if name is None:
            work.fill_source(2)
        if step is None:
            kill_at_any_time(work, rng, *again, job)
        else:
            death = Death(step, "driver", str(tmp_path / f"died {number}"), work.next_micro_batch + rng.randrange(2))
            run_until_killed(work, death, *again, job._replace(options={**job.options, **death.options}))
            again.clear()
        if has_identity:
            again.append(job)
            once += of_batch(str(name))
        elif name is not None:
            there = values(work) & of_batch(name)
            assert there.total() in (0, ROWS), f"{there.total()} rows of {name}, which was killed at {step}"
            once += there
        if rng.random() < 0.5:
            assert max(values(work).values(), default=1) == 1, f"after a kill at {step}"
    work.fill_source(1)
    assert run(work, *again, Job(None, {})) == 0, output(work)
    assert values(work) == Counter(work.rows()) + once
