"""The state of a cluster, built by replaying the records of its metadata log: `Image`.

It keeps everything that a snapshot of the metadata has: topics, partitions, configurations, quotas, credentials,
features, nodes, voters, access control and tokens.
Records of a metadata transaction are applied when it ends, and not at all if it is aborted (KIP-868).

An image may be replayed in place, or be kept as it is while its `successor` takes the next records. The two share what
no record changes: neither a successor nor `topics` costs more where there are more topics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Final, TypeAlias
from uuid import UUID

from octavo.errors import BadRecord
from octavo.log.metadata.delta import Delta
from octavo.log.metadata.sorted_map import SortedMap
from octavo.log.names import topic_name_problem
from octavo.records.control import Control, KRaftVersion, KRaftVoter, KRaftVoters, LeaderChange
from octavo.schemas.metadata.access import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from octavo.schemas.metadata.nodes import (
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from octavo.schemas.metadata.progress import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    ProducerIdsRecord,
)
from octavo.schemas.metadata.record import MetadataRecord
from octavo.schemas.metadata.serde import UnknownRecord
from octavo.schemas.metadata.topics import (
    ClearElrRecord,
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)

TOPIC_RESOURCE: Final = 2  # ConfigResource.Type
GROUP_RESOURCE: Final = 32
METADATA_VERSION: Final = "metadata.version"
_NO_LEADER_CHANGE: Final = -2
_NO_RECOVERY_CHANGE: Final = -1

# Whom quotas apply to: pairs of a type (`user`, `client-id`, `ip`) and a name, in the order of the types. None is the
# name for everybody who has no quota of their own.
QuotaEntity: TypeAlias = tuple[tuple[str, str | None], ...]

PartitionState = PartitionRecord  # the current state of a partition: its record, with all later changes


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic in the metadata. Options that are not in `config` have the broker's value, or Kafka's default."""

    name: str
    id: UUID
    partitions: Mapping[int, PartitionState]
    config: Mapping[str, str]


class Image:
    """The state of a cluster, as far as a directory of logs needs it."""

    def __init__(self) -> None:
        self.delta: Delta | None = None  # notes what records change, if it is there
        self.features: Final[dict[str, int]] = {}
        self.configs: SortedMap[tuple[int, str], Mapping[str, str]] = SortedMap()  # by resource type and name
        self.quotas: Final[dict[QuotaEntity, dict[str, float]]] = {}
        self.credentials: Final[dict[tuple[str, int], UserScramCredentialRecord]] = {}  # by user and mechanism
        self.access: Final[dict[UUID, AccessControlEntryRecord]] = {}  # by id
        self.tokens: Final[dict[str, DelegationTokenRecord]] = {}  # by id
        self.brokers: Final[dict[int, RegisterBrokerRecord]] = {}
        self.controllers: Final[dict[int, RegisterControllerRecord]] = {}
        self.unknown: Final[list[UnknownRecord]] = []  # records of a later Kafka
        self.next_producer_id = 0
        self.kraft_version = 0
        self.voters: tuple[int, ...] | None = None  # node ids of the quorum; None if no record names them
        self.voter_details: tuple[KRaftVoter, ...] = ()  # set if the log itself names the voters (KIP-853)
        self._ids: SortedMap[str, UUID] = SortedMap()
        self._names: SortedMap[int, str] = SortedMap()  # by the topic's id as a number, which is compared faster
        self._partitions: SortedMap[int, dict[int, PartitionState]] = SortedMap()  # likewise
        self._topics: SortedMap[str, Topic] = SortedMap()  # as they were when `topics` was called
        self._changed: Final[set[str]] = set()  # the names of topics that have changed since then
        self._removed: SortedMap[int, None] = SortedMap()  # topics; those of records that no snapshot has replaced yet
        self._own: Final[set[UUID]] = set()  # topics whose partitions no other image has
        self._pending: list[MetadataRecord | UnknownRecord] | None = None

    def successor(self, delta: Delta) -> Image:
        """Return an image to which later records can be applied without changing this one. `delta` notes changes."""
        image = Image()
        image.delta = delta
        image.features.update(self.features)
        image.configs = self.configs
        image.quotas.update(self.quotas)
        image.credentials.update(self.credentials)
        image.access.update(self.access)
        image.tokens.update(self.tokens)
        image.brokers.update(self.brokers)
        image.controllers.update(self.controllers)
        image.unknown.extend(self.unknown)
        image.next_producer_id = self.next_producer_id
        image.kraft_version, image.voters, image.voter_details = self.kraft_version, self.voters, self.voter_details
        image._ids, image._names, image._partitions = self._ids, self._names, self._partitions
        image._topics, image._removed = self._topics, self._removed
        image._changed.update(self._changed)
        self._own.clear()
        image._pending = None if self._pending is None else list(self._pending)
        return image

    @property
    def metadata_version(self) -> int:
        """The level of `metadata.version`, which determines the versions of the records that the cluster writes."""
        return self.features.get(METADATA_VERSION, 1)

    @property
    def in_transaction(self) -> bool:
        """Whether a metadata transaction is open. Its records are applied when it ends."""
        return self._pending is not None

    def topics(self) -> SortedMap[str, Topic]:
        """Return all topics by name. For the thread that replays; for any thread if nothing has changed since."""
        if self._changed:
            topics = self._topics
            for name in self._changed:
                topic_id = self._ids.get(name)
                if topic_id is None:
                    topics = topics.without(name)
                else:
                    topics = topics.with_item(name, self._view(name, topic_id))
            self._topics = topics
            self._changed.clear()
        return self._topics

    def topic(self, topic_id: UUID) -> Topic | None:
        """Return a topic by its id; None if there is none."""
        name = self.name_of(topic_id)
        if name is None:
            return None
        return self._view(name, topic_id) if name in self._changed else self._topics[name]

    def name_of(self, topic_id: UUID) -> str | None:
        """Return the name of the topic with this id; None if there is none. Any thread may call this."""
        return self._names.get(topic_id.int)

    def partitions_of(self, topic_id: UUID) -> Mapping[int, PartitionState]:
        """Return the partitions of the topic with this id; none if there is no such topic."""
        return self._partitions.get(topic_id.int, {})

    @property
    def topic_ids(self) -> Iterable[UUID]:
        """The ids of all topics."""
        return self._ids.values()

    def has_topic_id(self, topic_id: UUID) -> bool:
        """Return whether some topic has this id."""
        return topic_id.int in self._names

    def was_removed(self, topic_id: UUID) -> bool:
        """Return whether there was a topic with this id, according to records that no snapshot has replaced yet."""
        return topic_id.int in self._removed

    def _view(self, name: str, topic_id: UUID) -> Topic:
        return Topic(
            name=name,
            id=topic_id,
            partitions=MappingProxyType(dict(sorted(self._partitions[topic_id.int].items()))),
            config=MappingProxyType(dict(self.configs.get((TOPIC_RESOURCE, name), {}))),
        )

    # Replaying

    def replay_control(self, control: Control) -> None:
        """Apply a control record of the quorum."""
        if isinstance(control, KRaftVersion):
            self.kraft_version = control.kraft_version
        elif isinstance(control, KRaftVoters):
            self.voter_details = control.voters
            self.voters = tuple(sorted(voter.id for voter in control.voters))
        elif isinstance(control, LeaderChange):
            self.voters = tuple(sorted(voter.id for voter in control.voters))

    def replay(self, record: MetadataRecord | UnknownRecord) -> None:
        """Apply the next record. Raises `BadRecord` if it is invalid, or does not fit the records before it."""
        if isinstance(record, BeginTransactionRecord):
            if self._pending is not None:
                raise BadRecord(0, "a transaction begins inside another")
            self._pending = []
        elif isinstance(record, EndTransactionRecord | AbortTransactionRecord):
            if self._pending is None:
                raise BadRecord(0, "a transaction ends that has not begun")
            pending, self._pending = self._pending, None
            if isinstance(record, EndTransactionRecord):
                for each in pending:
                    self._apply(each)
        elif self._pending is not None:
            self._pending.append(record)
        else:
            self._apply(record)

    def _apply(self, record: MetadataRecord | UnknownRecord) -> None:
        if isinstance(record, UnknownRecord):
            self.unknown.append(record)
            return
        if self.delta is not None:
            self.delta.note(record)
        apply = _APPLY.get(type(record))
        if apply is not None:
            apply(self, record)

    def _topic_record(self, record: TopicRecord) -> None:
        problem = topic_name_problem(record.name)
        if problem is not None:
            raise BadRecord(0, problem)
        if self._ids.get(record.name, record.topic_id) != record.topic_id:
            raise BadRecord(0, f"there is a second topic {record.name!r}")
        number = record.topic_id.int
        self._ids = self._ids.with_item(record.name, record.topic_id)
        self._names = self._names.with_item(number, record.name)
        if number not in self._partitions:
            self._partitions = self._partitions.with_item(number, {})
            self._own.add(record.topic_id)
        self._touch(record.topic_id)

    def _remove_topic(self, record: RemoveTopicRecord) -> None:
        name = self.name_of(record.topic_id)
        if name is None:
            raise BadRecord(0, f"the topic that goes, {record.topic_id}, was never there")
        self._touch(record.topic_id)
        self._own.discard(record.topic_id)
        self._ids = self._ids.without(name)
        self._names = self._names.without(record.topic_id.int)
        self._partitions = self._partitions.without(record.topic_id.int)
        self._removed = self._removed.with_item(record.topic_id.int, None)
        self.configs = self.configs.without((TOPIC_RESOURCE, name))

    def _partition(self, record: PartitionRecord) -> None:
        if record.partition_id < 0:
            raise BadRecord(0, f"a partition cannot have the number {record.partition_id}")
        self._partitions_of(record.topic_id)[record.partition_id] = record

    def _partition_change(self, change: PartitionChangeRecord) -> None:
        partitions = self._partitions_of(change.topic_id)
        state = partitions.get(change.partition_id)
        if state is None:
            raise BadRecord(0, f"partition {change.partition_id} changes, but was never there")
        partitions[change.partition_id] = changed(state, change)

    def _touch(self, topic_id: UUID) -> None:
        """Note that a topic changes."""
        name = self.name_of(topic_id)
        if name is not None:
            self._changed.add(name)
        if self.delta is not None:
            self.delta.changed_topics.add(topic_id)

    def _partitions_of(self, topic_id: UUID) -> dict[int, PartitionState]:
        """Return the partitions of a topic, to be changed."""
        self._touch(topic_id)
        try:
            partitions = self._partitions[topic_id.int]
        except KeyError:
            raise BadRecord(0, f"there is a partition of a topic {topic_id}, which is not there") from None
        if topic_id not in self._own:
            partitions = dict(partitions)
            self._partitions = self._partitions.with_item(topic_id.int, partitions)
            self._own.add(topic_id)
        return partitions

    def _config(self, record: ConfigRecord) -> None:
        if record.resource_type == TOPIC_RESOURCE and record.resource_name in self._ids:
            self._touch(self._ids[record.resource_name])
        key = record.resource_type, record.resource_name
        if self.delta is not None:
            self.delta.changed_configs.add(key)
        config = dict(self.configs.get(key, {}))
        if record.value is None:
            config.pop(record.name, None)
        else:
            config[record.name] = record.value
        self.configs = self.configs.with_item(key, config)

    def _quota(self, record: ClientQuotaRecord) -> None:
        entity = quota_entity((each.entity_type, each.entity_name) for each in record.entity)
        quotas = self.quotas[entity] = dict(self.quotas.get(entity, {}))
        if record.remove:
            quotas.pop(record.key, None)
        else:
            quotas[record.key] = record.value
        if not quotas:
            del self.quotas[entity]

    def _credential(self, record: UserScramCredentialRecord) -> None:
        self.credentials[record.name, record.mechanism] = record

    def _remove_credential(self, record: RemoveUserScramCredentialRecord) -> None:
        self.credentials.pop((record.name, record.mechanism), None)

    def _access(self, record: AccessControlEntryRecord) -> None:
        self.access[record.id] = record

    def _remove_access(self, record: RemoveAccessControlEntryRecord) -> None:
        self.access.pop(record.id, None)

    def _token(self, record: DelegationTokenRecord) -> None:
        self.tokens[record.token_id] = record

    def _remove_token(self, record: RemoveDelegationTokenRecord) -> None:
        self.tokens.pop(record.token_id, None)

    def _clear_elr(self, record: ClearElrRecord) -> None:
        cleared = [self._ids[record.topic_name]] if record.topic_name in self._ids else []
        for topic_id in cleared if record.topic_name else list(self._ids.values()):
            partitions = self._partitions_of(topic_id)
            for number, state in partitions.items():
                partitions[number] = replace(state, eligible_leader_replicas=None, last_known_elr=None)

    def _feature(self, record: FeatureLevelRecord) -> None:
        if record.feature_level == 0:
            self.features.pop(record.name, None)
        else:
            self.features[record.name] = record.feature_level

    def _register_broker(self, record: RegisterBrokerRecord) -> None:
        self.brokers[record.broker_id] = record

    def _unregister_broker(self, record: UnregisterBrokerRecord) -> None:
        self.brokers.pop(record.broker_id, None)

    def _change_broker(self, change: BrokerRegistrationChangeRecord) -> None:
        broker = self.brokers.get(change.broker_id)
        if broker is None:
            raise BadRecord(0, f"broker {change.broker_id} changes, but was never there")
        self.brokers[change.broker_id] = replace(
            broker,
            fenced=broker.fenced if change.fenced == 0 else change.fenced == 1,
            in_controlled_shutdown=broker.in_controlled_shutdown or change.in_controlled_shutdown == 1,
            log_dirs=change.log_dirs or broker.log_dirs,
            cordoned_log_dirs=(
                broker.cordoned_log_dirs if change.cordoned_log_dirs is None else change.cordoned_log_dirs
            ),
        )

    def _fence(self, record: FenceBrokerRecord | UnfenceBrokerRecord) -> None:
        broker = self.brokers.get(record.id)
        if broker is None:
            raise BadRecord(0, f"broker {record.id} changes, but was never there")
        self.brokers[record.id] = replace(broker, fenced=isinstance(record, FenceBrokerRecord))

    def _register_controller(self, record: RegisterControllerRecord) -> None:
        self.controllers[record.controller_id] = record

    def _producer_ids(self, record: ProducerIdsRecord) -> None:
        self.next_producer_id = record.next_producer_id


def quota_entity(parts: Iterable[tuple[str, str | None]]) -> QuotaEntity:
    """Return an entity that quotas apply to, of its parts in any order; of two of one type the last counts."""
    return tuple(sorted(dict(parts).items(), key=itemgetter(0)))


def changed(state: PartitionState, change: PartitionChangeRecord) -> PartitionState:
    """Return a partition after a change, by the rules of Kafka's `PartitionRegistration`."""
    new_leader = change.leader != _NO_LEADER_CHANGE
    new_recovery = change.leader_recovery_state != _NO_RECOVERY_CHANGE
    named: dict[str, Any] = {
        name: value
        for name in (
            "isr",
            "replicas",
            "removing_replicas",
            "adding_replicas",
            "directories",
        )
        if (value := getattr(change, name)) is not None
    }
    for name in ("eligible_leader_replicas", "last_known_elr"):
        if (value := getattr(change, name)) is not None:
            named[name] = value or None  # as in a snapshot
    return replace(
        state,
        leader=change.leader if new_leader else state.leader,
        leader_epoch=state.leader_epoch + new_leader,
        leader_recovery_state=change.leader_recovery_state if new_recovery else state.leader_recovery_state,
        partition_epoch=state.partition_epoch + 1,
        **named,
    )


_APPLY: Final[dict[type[MetadataRecord], Callable[[Image, Any], None]]] = {
    TopicRecord: Image._topic_record,
    RemoveTopicRecord: Image._remove_topic,
    PartitionRecord: Image._partition,
    PartitionChangeRecord: Image._partition_change,
    ConfigRecord: Image._config,
    ClientQuotaRecord: Image._quota,
    UserScramCredentialRecord: Image._credential,
    RemoveUserScramCredentialRecord: Image._remove_credential,
    AccessControlEntryRecord: Image._access,
    RemoveAccessControlEntryRecord: Image._remove_access,
    DelegationTokenRecord: Image._token,
    RemoveDelegationTokenRecord: Image._remove_token,
    ClearElrRecord: Image._clear_elr,
    FeatureLevelRecord: Image._feature,
    RegisterBrokerRecord: Image._register_broker,
    UnregisterBrokerRecord: Image._unregister_broker,
    BrokerRegistrationChangeRecord: Image._change_broker,
    FenceBrokerRecord: Image._fence,
    UnfenceBrokerRecord: Image._fence,
    RegisterControllerRecord: Image._register_controller,
    ProducerIdsRecord: Image._producer_ids,
}
