"""The groups of a directory: `Groups`, and `ReadGroups` for a directory that another process writes.

Each partition of `__consumer_offsets` has a `Host`, which runs the coordinator of its groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import UUID

from octavo.coordinator.groups.config import GroupConfig
from octavo.coordinator.groups.consumer.requests import (
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerHeartbeatAnswer,
    ConsumerHeartbeatRequest,
)
from octavo.coordinator.groups.requests import (
    CommitAnswer,
    CommitRequest,
    CommittedOffset,
    FetchAnswer,
    FetchedOffset,
    FetchRequest,
)
from octavo.coordinator.shard import Producer
from octavo.errors import (
    ConsumerError,
    ErrorCode,
    InvalidInput,
    MemberFenced,
    MetadataTooLarge,
    NotReady,
    WrongGroup,
)
from octavo.log.coordinator.consumer_group_metadata import ConsumerGroupMetadata
from octavo.log.coordinator.host import Host, apply_batch
from octavo.log.coordinator.hosts import Hosts
from octavo.log.coordinator.internal_topic import replay
from octavo.log.coordinator.known_topics import KnownTopics
from octavo.log.coordinator.member import CLIENT_HOST, Member
from octavo.log.coordinator.members import Members
from octavo.log.coordinator.offset_and_metadata import OffsetAndMetadata
from octavo.log.metadata.image import GROUP_RESOURCE
from octavo.log.names import CONSUMER_OFFSETS, TopicPartition
from octavo.log.reading.readable_log import ReadableLog
from octavo.records.layout import MAX_INT64
from octavo.records.text import write_text
from octavo.schemas.primitives import MAX_STRING, NO_UUID
from octavo.schemas.versioned import CoordinatorKey, UnknownKey, key_kinds, read_any_key

if TYPE_CHECKING:
    from octavo.coordinator.groups.group_shard import GroupShard
    from octavo.log.directory.data_directory import DataDirectory
    from octavo.log.log import Log

MAX_METADATA: Final = 4096  # bytes: offset.metadata.max.bytes

_FEATURE: Final = "group.version"  # from level 1 on, a cluster has the consumer protocol

# Nobody waits for a group to settle here: it takes no time to compute a target.
_EMBEDDED: Final = GroupConfig(group_consumer_assignment_interval_ms=0)

_A = TypeVar("_A")
Positions = dict[TopicPartition, OffsetAndMetadata | None]


class Groups(Hosts["GroupShard"]):
    """The groups of a directory that is open for writing. Any thread may use it."""

    def __init__(self, data: DataDirectory, config: GroupConfig | None = None) -> None:
        super().__init__(data, CONSUMER_OFFSETS)
        self._config = config or _EMBEDDED
        self.known: Final = KnownTopics(data)
        self.members: Final = Members(lambda: data.is_open, data.monotonic_ms)  # those of this process

    def configure(self, config: GroupConfig) -> None:
        """Have other settings from now on. Everything is loaded again."""
        self._config = config
        for host in self.running:
            host.resign()

    def adopt(self, config: GroupConfig) -> None:
        """Have other settings from now on, where they matter only to what happens later."""
        self._config = config

    def _new_host(self, log: Log) -> Host[GroupShard]:
        def make() -> GroupShard:
            from octavo.coordinator.groups.group_shard import GroupShard  # a broker without groups never needs it

            return GroupShard(lambda: self._config, self.new_id, self.known, self._own_config)

        host: Host[GroupShard] = Host(
            log,
            make,
            _read_key,
            wall_ms=self._data.now_ms,
            clock_ms=self._data.monotonic_ms,
            recover=lambda: self._remove_gone(host),
            noticed=self._noticed,
        )
        return host

    def _own_config(self, group_id: str) -> Mapping[str, str]:
        return self._data.cluster.configs.get((GROUP_RESOURCE, group_id), {})

    def new_id(self) -> str:
        """Return an id for a member, which nobody has had."""
        return str(self._data.new_id())

    def _remove_gone(self, host: Host[GroupShard]) -> None:
        """Remove members whose process has ended. As it had the directory alone, nobody else speaks for them."""
        alive = self.members.ids
        for group_id, member in host.ask(lambda shard: shard.consumer.members_at(CLIENT_HOST)):
            if member.member_id not in alive:
                epoch = LEAVE_EPOCH if member.instance_id is None else STATIC_LEAVE_EPOCH
                self.heartbeat(ConsumerHeartbeatRequest(group_id, member.member_id, epoch, member.instance_id))

    def _noticed(self, shard: GroupShard) -> None:
        """Have members of this process see what has changed in their groups."""
        if shard.consumer.has_changed:
            shard.consumer.has_changed = False
            self.members.poke()

    # ------------------------------------------------------------------------------------- for clients in this process

    def committed(self, group_id: str, partitions: Iterable[TopicPartition] | None = None) -> Positions:
        """A group's committed offset in each partition, or None; without `partitions`, all that the group has."""
        if not self._exists:
            return dict.fromkeys(partitions or ())
        return self.host_for(group_id).ask(lambda shard: positions(shard, group_id, partitions, self._topic_id))

    def stable_offset(self, group_id: str, partition: TopicPartition) -> OffsetAndMetadata | None:
        """A group's committed offset in a partition, or None.

        Raises `NotReady` while a transaction may still change it (KIP-447).
        """
        if not self._exists:
            return None
        asked = [(*partition, self._topic_id(partition))]
        request = FetchRequest(group_id, asked, require_stable=True)
        (found,) = self.host_for(group_id).ask(lambda shard: shard.offsets.fetch(request)).offsets
        if found.error_code is ErrorCode.UNSTABLE_OFFSET_COMMIT:
            raise NotReady(f"the position of group {group_id!r} in {partition} depends on a transaction that is open")
        return _position(found)

    def groups(self) -> list[str]:
        """The groups that have committed offsets."""
        return sorted(name for host in self.hosts for name in host.ask(groups_with_offsets))

    def commit(
        self,
        group: str | ConsumerGroupMetadata,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        producer: Producer | None = None,
    ) -> None:
        """Write committed offsets; with `producer`, as part of its transaction. Raises `UnknownPartition`.

        Raises `MemberFenced` if `group` names a member that is none any more.
        """
        group_id, epoch, member_id, instance_id = ConsumerGroupMetadata(group) if isinstance(group, str) else group
        request = CommitRequest(group_id, (), member_id, instance_id, epoch, producer=producer)
        if self._commit(request, offsets) is not ErrorCode.NONE:
            if member_id:
                raise MemberFenced(f"the consumer is no longer a member of group {group_id!r} in generation {epoch}")
            raise WrongGroup(f"group {group_id!r} has members, who alone may commit its offsets")

    def commit_as(self, member: Member, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> ErrorCode:
        """Write offsets that a member commits. Returns why not, if the group refuses. Raises `UnknownPartition`."""
        config = member.config
        return self._commit(
            CommitRequest(config.group_id, (), member.member_id, config.instance_id, member.epoch), offsets
        )

    def _commit(self, request: CommitRequest, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> ErrorCode:
        check_commit(request.group_id, offsets)
        for partition in offsets:
            self._data.log(*partition)  # raises if missing: a later topic of that name would start from this offset
        wanted = [
            CommittedOffset(
                *partition, position.offset, position.leader_epoch, position.metadata, self._topic_id(partition)
            )
            for partition, position in offsets.items()
        ]
        if not wanted:
            return ErrorCode.NONE
        whole = request._replace(offsets=wanted)
        answer: CommitAnswer = answer_of(self.host_for(request.group_id), lambda shard: shard.offsets.commit(whole))
        return answer.error_code

    def heartbeat(self, request: ConsumerHeartbeatRequest) -> ConsumerHeartbeatAnswer:
        """Answer a member of this process."""
        return answer_of(self.host_for(request.group_id), lambda shard: shard.consumer.heartbeat(request))

    def check_join(self, group_id: str) -> None:
        """Raise `ConsumerError` or `WrongGroup` if a group cannot have members of this process."""
        check_commit(group_id, {})
        if self._data.feature_level(_FEATURE) < 1:
            raise ConsumerError(
                f"groups have no members in a cluster whose {_FEATURE} is 0: raise it to 1, or assign() the partitions"
            )

    def forget_topic(self, topic: str) -> None:
        """Remove all committed offsets in a topic that was deleted, as Kafka does."""
        for host in self.hosts:
            host.run(lambda shard: shard.offsets.forget_topic(topic, NO_UUID))

    def note_marker(self, partition: TopicPartition, producer: Producer, *, commit: bool) -> None:
        """Apply a marker that was written to a partition of `__consumer_offsets`."""
        self._host(partition.partition).apply_marker(producer, commit=commit)

    def _topic_id(self, partition: TopicPartition) -> UUID:
        topic = self._data.topics.get(partition.topic)
        return NO_UUID if topic is None else topic.id


class ReadGroups:
    """The groups of a directory that another process writes, as far as its logs were read."""

    def __init__(self) -> None:
        self._shards: Final[dict[TopicPartition, GroupShard]] = {}
        self._next_offsets: Final[dict[TopicPartition, int]] = {}

    def read(self, partition: TopicPartition, log: ReadableLog) -> None:
        """Read what was added to a partition of `__consumer_offsets` since the last call."""
        from octavo.coordinator.groups.group_shard import GroupShard

        shard = self._shards.setdefault(partition, GroupShard(GroupConfig, str))
        self._next_offsets[partition] = replay(
            log, self._next_offsets.get(partition, 0), lambda batch: apply_batch(shard, batch, _read_key)
        )
        shard.journal.keep(shard.journal.mark())

    def committed(self, group_id: str, partitions: Iterable[TopicPartition]) -> Positions:
        """A group's committed offset in each partition; None where there is none."""
        found: Positions = dict.fromkeys(partitions)
        for shard in self._shards.values():
            known = positions(shard, group_id, list(found), lambda partition: NO_UUID)
            found |= {partition: position for partition, position in known.items() if position is not None}
        return found


def _read_key(key: bytes) -> CoordinatorKey[Any] | UnknownKey:
    """Read a key. Most records of groups of other kinds are not even read: they are kept for Kafka as they are."""
    found = read_any_key(_kinds(), key)
    if isinstance(found, UnknownKey):
        from octavo.coordinator.groups.foreign import read_foreign_key

        return read_foreign_key(found, key)
    return found


@cache
def _kinds() -> Mapping[int, type[CoordinatorKey[Any]]]:
    from octavo.schemas.consumer_offsets import classic_groups, consumer_groups, offsets

    return key_kinds(classic_groups, consumer_groups, offsets)


def answer_of(host: Host[GroupShard], action: Callable[[GroupShard], _A]) -> _A:
    """Have something happen to the groups of a host, and return what came of it, once it is written."""
    answers: list[_A] = []
    host.run(lambda shard: answers.append(action(shard)))
    return answers[0]


def positions(
    shard: GroupShard,
    group_id: str,
    partitions: Iterable[TopicPartition] | None,
    topic_id: Callable[[TopicPartition], UUID],
) -> Positions:
    """What a group has committed, in some partitions or everywhere."""
    if partitions is None:
        everything: FetchAnswer = shard.offsets.fetch(FetchRequest(group_id, None))
        partitions = [TopicPartition(each.topic, each.partition) for each in everything.offsets]
    wanted = list(partitions)
    asked = [(partition.topic, partition.partition, topic_id(partition)) for partition in wanted]
    answer = shard.offsets.fetch(FetchRequest(group_id, asked))
    return {partition: _position(each) for partition, each in zip(wanted, answer.offsets, strict=True)}


def _position(found: FetchedOffset) -> OffsetAndMetadata | None:
    return OffsetAndMetadata(found.offset, found.metadata, found.leader_epoch) if found.offset >= 0 else None


def groups_with_offsets(shard: GroupShard) -> list[str]:
    """The groups that have committed offsets."""
    return shard.offsets.groups()


def check_commit(group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
    """Check a commit as Kafka does. Raises `CoordinatorRefused` and `InvalidInput`."""
    if not group_id or len(write_text(group_id)) > MAX_STRING:
        raise WrongGroup(f"a group needs an id of at most {MAX_STRING} bytes, not {group_id[:80]!r}")
    for partition, position in offsets.items():
        if not 0 <= position.offset <= MAX_INT64:
            raise InvalidInput(f"a group cannot be at offset {position.offset} of {partition}")
        size = len(write_text(position.metadata))
        if size > MAX_METADATA:
            raise MetadataTooLarge(f"the metadata of {partition} take {size} bytes, more than {MAX_METADATA}")
