"""Where the contenders write to: a new topic for each pass, in a directory of ours or on a broker."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Final, Protocol

from octavo.log import DataDirectory
from tests.kafka.client import KafkaAdminClient, KafkaConsumer, NewTopic, TopicPartition
from tests.spark.processes import CpuMeter

PARTITIONS: Final = 4
_TOPIC: Final = "written"


class Target(Protocol):
    """The target of a pass."""

    format: str

    def prepare(self) -> Mapping[str, str]:
        """Create what is written to; returns the options of the sink."""

    def count(self) -> int:
        """Return how many records were written."""

    def clear(self) -> None:
        """Remove what was written."""

    def broker_cpu(self) -> float:
        """Return the CPU seconds that a broker has used since it was started."""


class Directory:
    """A data directory with a topic, which the sink writes to."""

    format = "octavo"

    def __init__(self, folder: Path) -> None:
        self._folder: Final = folder / "octavo"

    def prepare(self) -> Mapping[str, str]:
        """Create the directory with its topic."""
        with DataDirectory.open(self._folder) as directory:
            directory.create_topic(_TOPIC, PARTITIONS)
        return {"path": str(self._folder), "topic": _TOPIC}

    def count(self) -> int:
        """Return the number of offsets in all partitions."""
        with DataDirectory.open(self._folder, read_only=True) as directory:
            return sum(directory.log(*partition).end_offset for partition in directory.partitions())

    def clear(self) -> None:
        """Remove the directory."""
        shutil.rmtree(self._folder)

    def broker_cpu(self) -> float:
        """Return 0: there is no broker."""
        return 0.0


class Served:
    """A topic of a broker, which Spark's connector writes to."""

    format = "kafka"

    def __init__(self, address: str, pid: int) -> None:
        self._address: Final = address
        self._cpu: Final = CpuMeter(pid)
        self._number = 0

    def prepare(self) -> Mapping[str, str]:
        """Create a topic of a new name: deleting one takes the broker a while."""
        self._number += 1
        with closing(KafkaAdminClient(bootstrap_servers=self._address)) as admin:
            admin.create_topics([NewTopic(self._topic, PARTITIONS, 1)])
        return {"kafka.bootstrap.servers": self._address, "topic": self._topic}

    def count(self) -> int:
        """Return the number of offsets in all partitions."""
        with closing(KafkaConsumer(bootstrap_servers=self._address)) as consumer:
            ends = consumer.end_offsets([TopicPartition(self._topic, number) for number in range(PARTITIONS)])
        return sum(ends.values())

    def clear(self) -> None:
        """Delete the topic."""
        with closing(KafkaAdminClient(bootstrap_servers=self._address)) as admin:
            admin.delete_topics([self._topic])

    def broker_cpu(self) -> float:
        """Return what the broker has used."""
        return self._cpu.seconds()

    @property
    def _topic(self) -> str:
        return f"{_TOPIC}-{self._number}"


class Dropped:
    """A target of which nothing is left: a sink that drops all rows."""

    def __init__(self, format: str) -> None:  # noqa: A002 - Spark's word
        self.format = format

    def prepare(self) -> Mapping[str, str]:
        """Create nothing."""
        return {}

    def count(self) -> int:
        """Return -1: nobody knows."""
        return -1

    def clear(self) -> None:
        """Remove nothing."""

    def broker_cpu(self) -> float:
        """Return 0: there is no broker."""
        return 0.0
