"""What runs the coordinators of all partitions of an internal topic: `Hosts`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final, Generic, TypeVar
from uuid import UUID

from octavo.coordinator.shard import Shard
from octavo.errors import UnknownPartition
from octavo.log.append.readiness import ALLOWANCE, MustWait
from octavo.log.coordinator.host import Host
from octavo.log.coordinator.internal_topic import InternalTopic, partition_of
from octavo.log.names import TopicPartition
from octavo.log.ownership.fork_safe import make_rlock

if TYPE_CHECKING:
    from octavo.log.directory.data_directory import DataDirectory
    from octavo.log.log import Log

S = TypeVar("S", bound=Shard)


class Hosts(ABC, Generic[S]):
    """The hosts of a directory that is open for writing, made when they are needed. Any thread may use it."""

    def __init__(self, data: DataDirectory, topic: str) -> None:
        self._data: Final = data
        self._topic: Final = InternalTopic(data, topic)
        self._lock: Final = make_rlock()  # held to find a host
        self._hosts: dict[int, Host[S]] = {}
        self._hosts_of: UUID | None = None  # the id of the topic that the hosts are for
        self.running: tuple[Host[S], ...] = ()  # those that were needed until now

    @abstractmethod
    def _new_host(self, log: Log) -> Host[S]:
        """Make the host of a partition."""

    def partition_for(self, key: str) -> TopicPartition:
        """The partition for the records of a group or a transactional id. Creates the topic if needed."""
        return self._topic.partition_for(key)

    def host_for(self, key: str) -> Host[S]:
        """Return what runs the coordinator of a group or a transactional id. Creates the topic if needed."""
        return self._host(self.partition_for(key).partition)

    def find_host(self, key: str) -> Host[S] | None:
        """Return what runs the coordinator of a group or a transactional id; None if the topic does not exist yet."""
        topic = self._topic.found
        if topic is not None and topic.id == self._hosts_of:
            known = self._hosts.get(partition_of(key, len(topic.partitions)))
            if known is not None:  # nearly always
                return known
        try:
            return self.host_for(key) if self._exists else None
        except UnknownPartition:  # it was deleted a moment ago
            return None

    @property
    def hosts(self) -> list[Host[S]]:
        """What runs the coordinators of all partitions; none if the topic does not exist yet."""
        return [self._host(log.partition.partition) for log in self._topic.logs()]

    @property
    def _exists(self) -> bool:
        return self._topic.id is not None or bool(self._topic.logs())

    def drop_old(self) -> None:
        """Forget what ran for a topic that was deleted. Whoever waits is answered.

        A thread with an `ALLOWANCE` does not wait for those who run something: `MustWait` is raised.
        """
        if self._hosts_of == self._topic.id:
            return
        if self.running and ALLOWANCE.left is not None:
            raise MustWait
        with self._lock:
            old, self.running = self.running, ()
            self._hosts, self._hosts_of = {}, self._topic.id
        for host in old:
            host.resign()

    def _host(self, partition: int) -> Host[S]:
        self.drop_old()
        with self._lock:
            if partition not in self._hosts:
                self._hosts[partition] = self._new_host(self._data.log(self._topic.name, partition))
                self.running = tuple(self._hosts.values())
            return self._hosts[partition]
