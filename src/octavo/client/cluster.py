"""The brokers of a cluster, as a client knows them: `Cluster`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Final, NamedTuple, Self, TypeVar

from octavo.broker.wire.api_keys import METADATA
from octavo.broker.wire.messages import Struct
from octavo.client.connection import BrokerConnection, check
from octavo.errors import BrokerUnreachable, ErrorCode, InvalidInput, RequestFailed
from octavo.log.names import TopicPartition

_T = TypeVar("_T")

_PAUSE_S: Final = 0.1
# After these errors a client asks for the leaders anew, and tries again.
_PASSING: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)


class TopicLeaders(NamedTuple):
    """A topic, and which brokers lead its partitions."""

    name: str
    id: bytes
    leaders: dict[int, int]  # by partition; -1 where there is none


class Cluster:
    """A cluster that is reached through some of its brokers. It keeps a connection to each broker that is asked."""

    def __init__(self, bootstrap_servers: str, *, patience_s: float = 30.0) -> None:
        """`patience_s`: for how long a request is tried again before it fails."""
        self._bootstrap: Final = parse_servers(bootstrap_servers)
        self._patience_s: Final = patience_s
        self._connections: Final[dict[tuple[str, int], BrokerConnection]] = {}
        self._nodes: dict[int, tuple[str, int]] = {}
        self._controller = -1

    def metadata(self, topics: Sequence[str] | None = None, *, creating: bool = False) -> Struct:
        """Ask for the metadata of topics, or of all. With `creating`, a broker may create those that are missing."""
        wanted = None if topics is None else [{"name": name} for name in topics]
        answer = self.any().ask(METADATA, {"topics": wanted, "allow_auto_topic_creation": creating})
        self._nodes = {each.node_id: (each.host, each.port) for each in answer.brokers}
        self._controller = answer.controller_id
        return answer

    def topic(self, name: str, *, creating: bool = False) -> TopicLeaders:
        """Return a topic with its leaders. Raises `RequestFailed` if there is none."""
        (found,) = self.metadata([name], creating=creating).topics
        if found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise RequestFailed(found.error_code, f"there is no topic {name}")
        check(found, f"topic {name}")
        return TopicLeaders(name, found.topic_id, {each.partition_index: each.leader_id for each in found.partitions})

    def any(self) -> BrokerConnection:
        """Return a connection to some broker. Raises `BrokerUnreachable` if there is none."""
        for connection in self._connections.values():
            return connection
        last: BrokerUnreachable | None = None
        for host, port in [*self._bootstrap, *self._nodes.values()]:
            try:
                return self.connect(host, port)
            except BrokerUnreachable as error:
                last = error
        assert last is not None
        raise last

    def controller(self) -> BrokerConnection:
        """Return a connection to the broker that takes requests for the controller."""
        if self._controller not in self._nodes:
            self.metadata([])
        return self.node(self._controller)

    def node(self, number: int) -> BrokerConnection:
        """Return a connection to a broker by its number. Raises `BrokerUnreachable`."""
        if number not in self._nodes:
            raise BrokerUnreachable(f"node {number}", "the cluster does not name such a broker")
        return self.connect(*self._nodes[number])

    def nodes(self) -> list[int]:
        """Return the numbers of all brokers."""
        self.metadata([])
        return sorted(self._nodes)

    def leaders(self, topics: Iterable[str]) -> dict[TopicPartition, int]:
        """Return who leads the partitions of topics, as far as these exist; -1 where nobody does."""
        return {
            TopicPartition(topic.name, each.partition_index): each.leader_id
            for topic in self.metadata(sorted(topics)).topics
            if not topic.error_code
            for each in topic.partitions
        }

    def persist(self, attempt: Callable[[], _T]) -> _T:
        """Call a function again and again until it raises nothing that passes, or patience ends."""
        until = time.monotonic() + self._patience_s
        while True:
            try:
                return attempt()
            except BrokerUnreachable:
                self.close()  # connections that were idle may have been closed long ago
                if time.monotonic() >= until:
                    raise
            except RequestFailed as error:
                if error.code not in _PASSING or time.monotonic() >= until:
                    raise
            time.sleep(_PAUSE_S)

    def connect(self, host: str, port: int) -> BrokerConnection:
        """Return the connection to a broker. Raises `BrokerUnreachable`."""
        connection = self._connections.get((host, port))
        if connection is None:
            connection = BrokerConnection(host, port, patience_s=self._patience_s)
            self._connections[host, port] = connection
        return connection

    def close(self) -> None:
        """Close all connections. The next request opens new ones."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def parse_servers(text: str) -> list[tuple[str, int]]:
    """Return the addresses of `HOST:PORT,HOST:PORT`. Raises `InvalidInput`."""
    servers: list[tuple[str, int]] = []
    for each in filter(None, (part.strip() for part in text.split(","))):
        host, separator, port = each.rpartition(":")
        if not separator or not host or not port.isdecimal() or not 0 < int(port) <= 0xFFFF:
            raise InvalidInput(f"{each!r} is no address of a broker: it must be HOST:PORT, like 127.0.0.1:9092")
        servers.append((host.removeprefix("[").removesuffix("]"), int(port)))
    if not servers:
        raise InvalidInput("there is no address of a broker: it must be HOST:PORT, like 127.0.0.1:9092")
    return servers
