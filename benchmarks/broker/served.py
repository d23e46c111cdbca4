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
JAVA: Final = (
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
    """A broker that runs, or all brokers of a cluster."""

    name: str
    address: str
    pids: tuple[int, ...]

    def cpu_seconds(self) -> float:
        """Return the processor time that the processes have used, in user and in system mode."""
        return sum(time.clock_gettime((~pid << 3) | _SCHEDULED) for pid in self.pids)

    def memory_mib(self) -> float:
        """Return the resident memory of the processes.

        That is their proportional set size if no other process shares their pages. Here others do, by chance: the
        benchmark itself runs Python, and its clients Java.
        """
        return sum(map(_resident_mib, self.pids))

    def peak_mib(self) -> float:
        """Return the most resident memory that the processes have had so far (`VmHWM`)."""
        return sum(map(_peak_mib, self.pids))

    def create(self, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        """Create a topic, with a replica on each broker, and return when clients can use it."""
        replicas = len(self.pids)
        wanted = NewTopic(topic, partitions, replicas, config=dict(config or {}))
        admin = self._admin()
        for future in admin.create_topics([wanted]).values():
            future.result(_PATIENCE_S)
        while not _is_complete(admin.list_topics(timeout=_PATIENCE_S).topics.get(topic), partitions, replicas):
            time.sleep(0.01)

    def delete(self, topic: str) -> None:
        """Delete a topic."""
        admin = self._admin()
        for future in admin.delete_topics([topic]).values():
            future.result(_PATIENCE_S)

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.address, "log_level": "3"})


def _peak_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("this system does not tell the peak of the memory")


def _resident_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Rss:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("this system does not tell the resident memory")


def _is_complete(topic: TopicMetadata | None, partitions: int, replicas: int) -> bool:
    """Return whether the broker knows all partitions of a topic and their replicas, which takes Kafka a moment."""
    if topic is None:
        return False
    ready = [each for each in topic.partitions.values() if each.leader >= 0 and len(each.isrs) == replicas]
    return len(ready) == partitions


class Pair(NamedTuple):
    """The two brokers of a comparison."""

    kafka: Served
    octavo: Served


class _Kafka(Broker):
    """A broker with the JVM's flags that Kafka's start script gives it."""

    def _command(self, main: str, *arguments: str) -> Sequence[str]:
        java, *_ = super()._command(main)
        return [java, *JAVA, *self._options, "-cp", ":".join(map(str, self.release.jars)), main, *arguments]


@contextmanager
def kafka(folder: Path, *, heap_mib: int = HEAP_MIB, settings: Mapping[str, str] | None = None) -> Iterator[Served]:
    """Run Apache Kafka on a new folder. Raises `KafkaUnavailable`."""
    tell(f"Apache Kafka starts with a heap of {heap_mib:,} MiB")
    options = [f"-Xms{heap_mib}m", f"-Xmx{heap_mib}m"]
    with _Kafka(folder, settings={**DEFAULTS, **_PATIENT, **(settings or {})}, options=options) as broker:
        broker.format()
        broker.start()
        yield Served("Kafka", broker.address, (broker.process_id,))


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
        yield Served("octavo", address, (process.pid,))
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
