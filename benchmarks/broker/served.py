"""The brokers that are compared, each in a process of its own: Apache Kafka and `octavo serve`."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from confluent_kafka.admin import AdminClient, NewTopic, TopicMetadata

from benchmarks.log.sets import scratch
from benchmarks.measure import tell
from benchmarks.warm_broker import DEFAULTS
from tests.kafka.broker import Broker

# What Kafka's own start script gives to the JVM, next to the size of the heap.
_JAVA: Final = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
    "-Djava.awt.headless=true",
)
HEAP_MIB: Final = 1024
# Where the machine is busy, heartbeats come late; a broker that is taken for dead would serve nobody for minutes.
_PATIENT: Final = {"broker.session.timeout.ms": "60000"}
_PATIENCE_S: Final = 60
_SCHEDULED: Final = 2  # of the clocks of another process, the one that the scheduler keeps


class Served(NamedTuple):
    """A broker that runs."""

    name: str
    address: str
    pid: int

    def cpu_seconds(self) -> float:
        """Return the processor time that the process has used, in user and in system mode."""
        return time.clock_gettime((~self.pid << 3) | _SCHEDULED)

    def memory_mib(self) -> float:
        """Return the resident memory of the process.

        That is its proportional set size if no other process shares its pages. Here others do, by chance: the
        benchmark itself runs Python, and its clients Java.
        """
        for line in Path(f"/proc/{self.pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Rss:"):
                return int(line.split()[1]) / 1024
        raise RuntimeError("this system does not tell the resident memory")

    def create(self, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        """Create a topic, and return when clients can use it."""
        wanted = NewTopic(topic, partitions, 1, config=dict(config or {}))
        admin = self._admin()
        for future in admin.create_topics([wanted]).values():
            future.result(_PATIENCE_S)
        while not _is_complete(admin.list_topics(timeout=_PATIENCE_S).topics.get(topic), partitions):
            time.sleep(0.01)

    def delete(self, topic: str) -> None:
        """Delete a topic."""
        admin = self._admin()
        for future in admin.delete_topics([topic]).values():
            future.result(_PATIENCE_S)

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.address, "log_level": "3"})


def _is_complete(topic: TopicMetadata | None, partitions: int) -> bool:
    """Return whether the broker knows all partitions of a topic, which takes Kafka a moment."""
    return topic is not None and sum(each.leader >= 0 for each in topic.partitions.values()) == partitions


class Pair(NamedTuple):
    """The two brokers of a comparison."""

    kafka: Served
    octavo: Served


class _Kafka(Broker):
    """A broker with the JVM's flags that Kafka's start script gives it."""

    def _command(self, main: str, *arguments: str) -> Sequence[str]:
        java, *_ = super()._command(main)
        return [java, *_JAVA, *self._options, "-cp", ":".join(map(str, self.release.jars)), main, *arguments]

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid


@contextmanager
def kafka(folder: Path, *, heap_mib: int = HEAP_MIB, settings: Mapping[str, str] | None = None) -> Iterator[Served]:
    """Run Apache Kafka on a new folder. Raises `KafkaUnavailable`."""
    tell(f"Apache Kafka starts with a heap of {heap_mib:,} MiB")
    options = [f"-Xms{heap_mib}m", f"-Xmx{heap_mib}m"]
    with _Kafka(folder, settings={**DEFAULTS, **_PATIENT, **(settings or {})}, options=options) as broker:
        broker.format()
        broker.start()
        yield Served("Kafka", broker.address, broker.pid)


@contextmanager
def octavo(
    folder: Path,
    *,
    program: Sequence[str] = ("-m", "octavo.cli", "serve"),
    settings: Mapping[str, str] | None = None,
) -> Iterator[Served]:
    """Run `octavo serve` on a folder."""
    command = [sys.executable, *program, "--data", str(folder)]
    if settings:
        file = folder.with_suffix(".properties")
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        command += ["--config", str(file)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        yield Served("octavo", address, process.pid)
    finally:
        process.terminate()
        process.wait(_PATIENCE_S)


@contextmanager
def both(settings: Mapping[str, str] | None = None) -> Iterator[Pair]:
    """Run both brokers, on folders of one disk."""
    with (
        scratch() as folder,
        kafka(folder / "kafka", settings=settings) as theirs,
        octavo(folder / "octavo", settings=settings) as ours,
    ):
        yield Pair(theirs, ours)
