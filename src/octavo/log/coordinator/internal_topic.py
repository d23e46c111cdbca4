"""The topics in which Kafka's coordinators keep their state: made at first use, configured as Kafka does it.

A new one has a single partition, where Kafka makes 50: those spread the work over brokers, and here is one. Kafka goes
by the partitions that there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from uuid import UUID

from octavo.errors import BadDirectory, FormatError
from octavo.log.fork_safe import make_rlock
from octavo.log.names import CONSUMER_OFFSETS, TRANSACTION_STATE, TopicPartition
from octavo.log.readable import ReadableLog
from octavo.log.reading import Isolation
from octavo.records import Batch

if TYPE_CHECKING:
    from octavo.log.directory import DataDirectory
    from octavo.log.log import Log

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
_MIN_INT32: Final = -(1 << 31)


class InternalTopic:
    """One of these topics, to be written."""

    def __init__(self, data: DataDirectory, name: str) -> None:
        self.name: Final = name
        self._data = data
        self._lock = make_rlock()  # of whoever looks whether it is there, or makes it

    @property
    def id(self) -> UUID | None:
        """By which it is known that it has been made anew; None where it is not there."""
        topic = self._data.topics.get(self.name)
        return None if topic is None else topic.id

    def logs(self) -> list[Log]:
        """Its partitions; none where it is not there yet."""
        return [log for log in self._data.logs if log.partition.topic == self.name]

    def partition_for(self, key: str) -> TopicPartition:
        """Where records of a group, or of a transactional id, are kept; the topic is there then."""
        with self._lock:
            if self.name not in self._data.topics:
                if self.logs():
                    self._data.set_config(self.name, CONFIGS[self.name])  # from then on the metadata know it
                else:
                    self._data.create_topic(self.name, PARTITIONS, CONFIGS[self.name])
        return TopicPartition(self.name, partition_of(key, len(self._data.topics[self.name].partitions)))

    def log_for(self, key: str) -> Log:
        """The log of that partition."""
        return self._data.log(*self.partition_for(key))


def partition_of(key: str, count: int) -> int:
    """Which of so many partitions Kafka has for a key: by Java's `String.hashCode`, without its sign."""
    return java_hash(key) % count


def java_hash(text: str) -> int:
    """The absolute value of Java's `String.hashCode`; 0 for the one that has none."""
    units = memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")
    number = 0
    for unit in units:
        number = (31 * number + unit) % _INT32
    if number >= _INT32 // 2:
        number -= _INT32
    return 0 if number == _MIN_INT32 else abs(number)


def replay(log: ReadableLog, offset: int, take: Callable[[Batch], None]) -> int:
    """Hand all batches of a log from `offset` on to `take`; the offset behind the last.

    Raises `BadDirectory` where there is something that cannot be read.
    """
    reader = log.reader(max(offset, log.start_offset), isolation=Isolation.LOG_END, buffer_size=1 << 20)
    try:
        for batch in reader:
            take(batch)
    except FormatError as error:
        folder = getattr(log, "folder", "")
        raise BadDirectory(folder, f"what is before offset {reader.offset} cannot be read: {error}") from error
    return reader.offset
