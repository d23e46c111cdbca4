"""The topics in which Kafka's coordinators keep their state: created at first use, configured as in Kafka.

Kafka creates such a topic with 50 partitions, to spread the work over brokers. There is only one node here, so a new
topic has one partition. If Kafka is given the directory, it uses the partitions that exist.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from uuid import UUID

from octavo.errors import BadDirectory, FormatError
from octavo.log.append.readiness import ALLOWANCE, MustWait
from octavo.log.names import CONSUMER_OFFSETS, TRANSACTION_STATE, TopicPartition
from octavo.log.ownership.fork_safe import make_rlock
from octavo.log.reading.readable_log import ReadableLog
from octavo.log.view import Isolation
from octavo.records import Batch

if TYPE_CHECKING:
    from octavo.log.directory.data_directory import DataDirectory
    from octavo.log.log import Log
    from octavo.log.metadata.image import Topic

PARTITIONS: Final = 1
CONFIGS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        CONSUMER_OFFSETS: {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": "104857600",
        },
        TRANSACTION_STATE: {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": "1",
            "segment.bytes": "104857600",
            "unclean.leader.election.enable": "false",
        },
    }
)
_INT32: Final = 1 << 32
_HASHES: Final = 1024  # of groups and transactional ids, which ask again and again
_MIN_INT32: Final = -(1 << 31)


class InternalTopic:
    """An internal topic of a directory that is open for writing."""

    def __init__(self, data: DataDirectory, name: str) -> None:
        self.name: Final = name
        self._data = data
        self._lock = make_rlock()  # held to check for the topic, or create it

    @property
    def id(self) -> UUID | None:
        """The topic id, which shows whether the topic was recreated; None if there is no such topic."""
        topic = self.found
        return None if topic is None else topic.id

    @property
    def found(self) -> Topic | None:
        """The topic as the metadata have it; None if there is no such topic."""
        return self._data.topics.get(self.name)

    def logs(self) -> list[Log]:
        """The logs of its partitions; none if it does not exist yet."""
        return self._data.logs_of(self.name)

    def partition_for(self, key: str) -> TopicPartition:
        """The partition for a group or a transactional id. Creates the topic if needed.

        A thread with an `ALLOWANCE` does not wait for that: `MustWait` is raised.
        """
        if self.name not in self._data.topics:
            if ALLOWANCE.left is not None:
                raise MustWait
            self._create()
        return TopicPartition(self.name, partition_of(key, len(self._data.topics[self.name].partitions)))

    def _create(self) -> None:
        with self._lock:
            if self.name in self._data.topics:
                return
            if self.logs():
                self._data.set_config(self.name, CONFIGS[self.name])  # adds the topic to the metadata
            else:
                self._data.create_topic(self.name, PARTITIONS, CONFIGS[self.name])

    def log_for(self, key: str) -> Log:
        """The log of the partition for a group or a transactional id."""
        return self._data.log(*self.partition_for(key))


def partition_of(key: str, count: int) -> int:
    """The partition that Kafka chooses for a key: by the absolute value of Java's `String.hashCode`."""
    return java_hash(key) % count


@lru_cache(_HASHES)
def java_hash(text: str) -> int:
    """The absolute value of Java's `String.hashCode`; 0 for the smallest `int`, as in Kafka."""
    units = memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")
    number = 0
    for unit in units:
        number = (31 * number + unit) % _INT32
    if number >= _INT32 // 2:
        number -= _INT32
    return 0 if number == _MIN_INT32 else abs(number)


def replay(log: ReadableLog, offset: int, take: Callable[[Batch], None]) -> int:
    """Pass all batches of a log from `offset` on to `take`. Return the offset after the last.

    Raises `BadDirectory` if a batch cannot be read.
    """
    reader = log.reader(max(offset, log.start_offset), isolation=Isolation.LOG_END, buffer_size=1 << 20)
    try:
        for batch in reader:
            take(batch)
    except FormatError as error:
        folder = getattr(log, "folder", "")
        raise BadDirectory(folder, f"what is before offset {reader.offset} cannot be read: {error}") from error
    return reader.offset
