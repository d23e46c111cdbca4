"""Ask about consumer groups, and change their offsets: `Groups`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from octavo.broker.wire.api_keys import (
    CONSUMER_GROUP_DESCRIBE,
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    FIND_COORDINATOR,
    LIST_GROUPS,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
)
from octavo.client.cluster import Cluster
from octavo.client.connection import BrokerConnection, check, only
from octavo.client.described_groups import Coordinator, DescribedGroup, of_classic_protocol, of_consumer_protocol
from octavo.errors import BrokerUnreachable, ErrorCode, RequestFailed
from octavo.log.names import TopicPartition

_T = TypeVar("_T")

_OF_GROUPS: Final = 0  # the type of a coordinator's key
_SEVERAL_KEYS: Final = 4  # since this version FindCoordinator takes several keys
_SEVERAL_GROUPS: Final = 8  # since this version OffsetFetch takes several groups
_WITH_STATES: Final = 4  # since this version ListGroups tells states
_WITH_TYPES: Final = 5  # since this version ListGroups tells types
_BY_NAME: Final = 9  # the last version of OffsetCommit and OffsetFetch in which topics have names
_NO_GENERATION: Final = -1
_CONSUMERS: Final = ("consumer", "")  # types of protocols; nothing is of groups that only keep offsets
# The coordinator is looked for again, and asked again.
_MOVED: Final = frozenset(
    {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
)
# So says a coordinator of a group that is not of the consumer protocol, or of no group at all.
_NOT_OF_CONSUMER_PROTOCOL: Final = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION})


class ListedGroup(NamedTuple):
    """A group in a list. `type` and `state` are empty if the broker does not tell them."""

    id: str
    type: str
    state: str


class Committed(NamedTuple):
    """A committed offset."""

    offset: int
    leader_epoch: int | None


class Groups:
    """The consumer groups of a cluster. Requests go to the coordinators, and are repeated when these move or load."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster: Final = cluster
        self._coordinators: Final[dict[str, Coordinator]] = {}

    def list(self, states: Collection[str] = (), types: Collection[str] = ()) -> list[ListedGroup]:
        """Return the groups of all brokers, in order; only those in some states or of some types if these are given.

        Raises `RequestFailed`, `BrokerUnreachable`.
        """
        found: dict[str, ListedGroup] = {}
        for node in self._cluster.nodes():
            answer = self._cluster.persist(partial(self._list_of, node, states, types))
            for each in answer.groups:
                if each.protocol_type in _CONSUMERS:
                    type_, state = getattr(each, "group_type", ""), getattr(each, "group_state", "")
                    found[each.group_id] = ListedGroup(each.group_id, type_.capitalize(), state)
        return [found[each] for each in sorted(found)]

    def _list_of(self, node: int, states: Collection[str], types: Collection[str]) -> Any:
        connection = self._cluster.node(node)
        version = connection.version(LIST_GROUPS)
        if (version < _WITH_STATES and states) or (version < _WITH_TYPES and types):
            what = "types" if types else "states"
            raise RequestFailed(
                ErrorCode.UNSUPPORTED_VERSION, f"the broker at {connection.address} cannot list groups by their {what}"
            )
        answer = connection.ask(LIST_GROUPS, {"states_filter": [*states], "types_filter": [*types]})
        check(answer, f"groups of the broker at {connection.address}")
        return answer

    def describe(self, group: str) -> DescribedGroup:
        """Return a group. Raises `RequestFailed`: with GROUP_ID_NOT_FOUND if there is none."""
        return self._at_coordinator(group, lambda connection: self._describe(connection, group))

    def _describe(self, connection: BrokerConnection, group: str) -> DescribedGroup:
        if connection.serves(CONSUMER_GROUP_DESCRIBE):
            told = only(connection.ask(CONSUMER_GROUP_DESCRIBE, {"group_ids": [group]}).groups, f"group {group}")
            if told.error_code not in _NOT_OF_CONSUMER_PROTOCOL:
                check(told, f"group {group}")
                return of_consumer_protocol(told, self._coordinators[group])
        told = only(connection.ask(DESCRIBE_GROUPS, {"groups": [group]}).groups, f"group {group}")
        if told.error_code == ErrorCode.GROUP_ID_NOT_FOUND or told.group_state == "Dead":
            raise RequestFailed(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group}")
        check(told, f"group {group}")
        if told.protocol_type not in _CONSUMERS:
            raise RequestFailed(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"group {group} is not a group of consumers: its protocol is {told.protocol_type}",
            )
        return of_classic_protocol(told, self._coordinators[group])

    def committed(self, group: str) -> dict[TopicPartition, Committed]:
        """Return all committed offsets of a group. Raises `RequestFailed`."""

        def attempt(connection: BrokerConnection) -> Any:
            content = {"group_id": group, "topics": None}
            answer = connection.ask(OFFSET_FETCH, {**content, "groups": [content]}, newest=_BY_NAME)
            if connection.version(OFFSET_FETCH, _BY_NAME) >= _SEVERAL_GROUPS:
                answer = only(answer.groups, f"group {group}")
            check(answer, f"group {group}")
            return answer

        found: dict[TopicPartition, Committed] = {}
        for topic in self._at_coordinator(group, attempt).topics:
            for part in topic.partitions:
                check(part, f"the offset of group {group} in partition {topic.name}-{part.partition_index}")
                if part.committed_offset >= 0:
                    epoch = getattr(part, "committed_leader_epoch", -1)
                    committed = Committed(part.committed_offset, epoch if epoch >= 0 else None)
                    found[TopicPartition(topic.name, part.partition_index)] = committed
        return found

    def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Commit offsets for a group without members. Returns an error code by partition. Raises `RequestFailed`."""
        topics = [
            {
                "name": topic,
                "partitions": [
                    {
                        "partition_index": number,
                        "committed_offset": offsets[TopicPartition(topic, number)],
                        "committed_leader_epoch": -1,
                        "committed_metadata": "",
                    }
                    for number in numbers
                ],
            }
            for topic, numbers in _by_topic(offsets).items()
        ]
        content = {
            "group_id": group,
            "generation_id_or_member_epoch": _NO_GENERATION,
            "member_id": "",
            "retention_time_ms": -1,
            "topics": topics,
        }

        def attempt(connection: BrokerConnection) -> dict[TopicPartition, int]:
            return _codes(connection.ask(OFFSET_COMMIT, content, newest=_BY_NAME))

        return self._at_coordinator(group, attempt) if offsets else {}

    def delete_offsets(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Delete committed offsets. Returns an error code by partition. Raises `RequestFailed`."""
        topics = [
            {"name": topic, "partitions": [{"partition_index": each} for each in numbers]}
            for topic, numbers in _by_topic(partitions).items()
        ]

        def attempt(connection: BrokerConnection) -> dict[TopicPartition, int]:
            answer = connection.ask(OFFSET_DELETE, {"group_id": group, "topics": topics})
            check(answer, f"group {group}")
            return _codes(answer)

        return self._at_coordinator(group, attempt)

    def delete(self, group: str) -> None:
        """Delete a group and its offsets. Raises `RequestFailed`."""

        def attempt(connection: BrokerConnection) -> None:
            answer = only(connection.ask(DELETE_GROUPS, {"groups_names": [group]}).results, f"group {group}")
            check(answer, f"group {group}")

        self._at_coordinator(group, attempt)

    def _at_coordinator(self, group: str, attempt: Callable[[BrokerConnection], _T]) -> _T:
        def once() -> _T:
            try:
                coordinator = self._coordinators.get(group) or self._find(group)
                return attempt(self._cluster.connect(coordinator.host, coordinator.port))
            except (RequestFailed, BrokerUnreachable):
                self._coordinators.pop(group, None)  # it may be another one by now
                raise

        return self._cluster.persist(once)

    def _find(self, group: str) -> Coordinator:
        connection = self._cluster.any()
        answer = connection.ask(FIND_COORDINATOR, {"key": group, "key_type": _OF_GROUPS, "coordinator_keys": [group]})
        if connection.version(FIND_COORDINATOR) >= _SEVERAL_KEYS:
            answer = only(answer.coordinators, f"group {group}")
        check(answer, f"the coordinator of group {group}")
        found = self._coordinators[group] = Coordinator(answer.node_id, answer.host, answer.port)
        return found


def _codes(answer: Any) -> dict[TopicPartition, int]:
    codes = {
        TopicPartition(topic.name, part.partition_index): part.error_code
        for topic in answer.topics
        for part in topic.partitions
    }
    for partition, code in codes.items():
        if code in _MOVED:
            raise RequestFailed(code, f"partition {partition}: {ErrorCode(code).name}")
    return codes


def _by_topic(partitions: Collection[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        topics.setdefault(topic, []).append(number)
    return topics
