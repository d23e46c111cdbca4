"""A group of the consumer protocol, and its members: `ConsumerGroup`, `ConsumerMember`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import Enum, IntEnum
from typing import Final, NamedTuple
from uuid import UUID

from octavo.coordinator.groups.consumer.assignors.assignor import Assignment
from octavo.coordinator.groups.consumer.requests import Refused
from octavo.coordinator.groups.group import Group
from octavo.coordinator.groups.requests import CommitRequest, ListedGroup
from octavo.coordinator.groups.topics import Topics
from octavo.coordinator.journal import Journal, Table
from octavo.errors import ErrorCode
from octavo.schemas.consumer_offsets.consumer_groups import ClassicMemberMetadata
from octavo.schemas.primitives import NO_UUID

Held = Mapping[UUID, Mapping[int, int]]  # partitions by topic, each with the epoch in which the member got it

_NOTHING: Final[Held] = {}  # nobody changes it
_TYPE: Final = "consumer"
_PROTOCOL_TYPE: Final = "consumer"
_MAX_SUBSCRIPTIONS: Final = 64  # whose topics a group remembers
_COMMIT_VERSION: Final = 9  # of OffsetCommit, from which members of the consumer protocol may use it


class State(Enum):
    """The state of a consumer group, with Kafka's names."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"  # the target assignment has to be computed
    RECONCILING = "Reconciling"  # some members do not have what they shall have yet
    STABLE = "Stable"


class MemberState(IntEnum):
    """How far a member is with its assignment; the numbers are those of records."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1  # it has to give partitions back
    UNRELEASED_PARTITIONS = 2  # others have partitions yet that it shall get
    UNKNOWN = 127  # of a Kafka to come


class Resolved(NamedTuple):
    """What a regular expression matched, of which topics, and when."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


class ConsumerMember(NamedTuple):
    """A member. It is replaced when something of it changes."""

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: frozenset[str] = frozenset()
    subscribed_topic_regex: str | None = ""
    server_assignor: str | None = None
    assigned: Held = _NOTHING
    pending_revocation: Held = _NOTHING
    classic: ClassicMemberMetadata | None = None  # of a member that uses the classic protocol

    @property
    def held(self) -> set[tuple[UUID, int]]:
        """All partitions that nobody else may have yet."""
        return {
            (topic, partition)
            for held in (self.assigned, self.pending_revocation)
            for topic, partitions in held.items()
            for partition in partitions
        }

    @property
    def subscription(self) -> tuple[frozenset[str], str | None]:
        """What it subscribes to: names of topics, and a regular expression."""
        return self.subscribed_topic_names, self.subscribed_topic_regex

    def is_reconciled_to(self, epoch: int) -> bool:
        """Return whether it has all that it shall have in an epoch."""
        return self.state is MemberState.STABLE and self.member_epoch == epoch


class ConsumerGroup(Group):
    """A group to whose members the coordinator assigns partitions. All of it but `checked_version` is in records."""

    def __init__(self, journal: Journal, group_id: str, topics: Topics) -> None:
        super().__init__(journal)
        self.group_id = group_id
        self.topics = topics
        self.group_epoch = self.assignment_epoch = 1
        self.assignment_timestamp_ms = 0
        self.metadata_hash = 0
        self.has_partition_metadata = False  # a record of Kafka 4.0 that has to be deleted
        self.checked_version: int | None = None  # of the topics, when the hash was computed
        self.members: Table[str, ConsumerMember] = Table(journal)
        self.static_members: Table[str, str] = Table(journal)  # member ids by instance ids
        self.targets: Table[str, Assignment] = Table(journal)
        self.resolved: Table[str, Resolved] = Table(journal)  # by regular expressions
        self._holders: Table[tuple[UUID, int], str] = Table(journal)
        self._names: Table[str, int] = Table(journal)  # how many members subscribe to a topic by its name
        self._regexes: Table[str, int] = Table(journal)  # how many members subscribe by a regular expression
        self._topic_ids: Final = _TopicIds(topics)

    @property
    def state(self) -> State:
        """The state of the group."""
        if not self.members:
            return State.EMPTY
        if self.group_epoch > self.assignment_epoch:
            return State.ASSIGNING
        is_done = all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values())
        return State.STABLE if is_done else State.RECONCILING

    def listed(self) -> ListedGroup:
        """Return the group as it stands in a list."""
        return ListedGroup(self.group_id, _PROTOCOL_TYPE, self.state.value, _TYPE)

    # -------------------------------------------------------------------------------------------------------- members

    def put(self, member: ConsumerMember) -> None:
        """Add a member, or replace what is known of it."""
        old = self.members.get(member.member_id)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        # In most epochs most members keep what they have.
        if old is None or old.assigned != member.assigned or old.pending_revocation != member.pending_revocation:
            self._let_go(old)
            for partition in member.held:
                self._holders[partition] = member.member_id
        if old is None or old.subscription != member.subscription:
            self._unsubscribe(old)
            for name in member.subscribed_topic_names:
                self._names[name] = self._names.get(name, 0) + 1
            if member.subscribed_topic_regex:
                self._regexes[member.subscribed_topic_regex] = self.regex_count(member.subscribed_topic_regex) + 1

    def remove(self, member_id: str) -> None:
        """Remove a member."""
        member = self.members.pop(member_id, None)
        self._let_go(member)
        self._unsubscribe(member)
        if member is not None and self.static_members.get(member.instance_id or "") == member_id:
            del self.static_members[member.instance_id or ""]

    def _let_go(self, member: ConsumerMember | None) -> None:
        """Have a member hold nothing any more."""
        if member is None:
            return
        for partition in member.held:
            if self._holders.get(partition) == member.member_id:
                del self._holders[partition]

    def _unsubscribe(self, member: ConsumerMember | None) -> None:
        if member is None:
            return
        for name in member.subscribed_topic_names:
            _count_down(self._names, name)
        if member.subscribed_topic_regex:
            _count_down(self._regexes, member.subscribed_topic_regex)

    def member(self, member_id: str) -> ConsumerMember:
        """Return a member; it is `Refused` if it is none."""
        member = self.members.get(member_id)
        if member is None:
            message = f"Member {member_id} is not a member of group {self.group_id}."
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, message)
        return member

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        """Return the member that has an instance id; None if there is none."""
        member_id = None if instance_id is None else self.static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def holder(self, topic_id: UUID, partition: int) -> str | None:
        """Return the member that has a partition, or has to give it back; None if it is free."""
        return self._holders.get((topic_id, partition))

    def preferred_assignor(self) -> str | None:
        """Return the assignor that most members want, of several `uniform`; None if nobody wants any."""
        votes = Counter(member.server_assignor for member in self.members.values() if member.server_assignor)
        return max(votes, key=lambda name: (votes[name], name), default=None)

    # -------------------------------------------------------------------------------------------------- subscriptions

    @property
    def regexes(self) -> list[str]:
        """The regular expressions by which members subscribe."""
        return sorted(self._regexes)

    def regex_count(self, regex: str) -> int:
        """Return how many members subscribe by a regular expression."""
        return self._regexes.get(regex, 0)

    def subscribed_names(self) -> set[str]:
        """All topics that a member subscribes to, by name or by a regular expression."""
        return {*self._names, *(name for resolved in self.resolved.values() for name in resolved.topics)}

    def names_of(self, member: ConsumerMember) -> frozenset[str]:
        """Return the topics that a member subscribes to. A regular expression that is not resolved matches nothing."""
        resolved = self.resolved.get(member.subscribed_topic_regex or "")
        return member.subscribed_topic_names if resolved is None else member.subscribed_topic_names | resolved.topics

    def topic_ids_of(self, member: ConsumerMember) -> frozenset[UUID]:
        """Return the ids of the topics that a member subscribes to, as far as they exist."""
        return self._topic_ids.of(self.names_of(member))

    @property
    def is_homogeneous(self) -> bool:
        """Whether all members subscribe to the same topics."""
        if not self._regexes:
            return all(number == len(self.members) for number in self._names.values())
        return not self._names and list(self._regexes.values()) == [len(self.members)]

    # ------------------------------------------------------------------------------------------------ classic members

    @property
    def classic_count(self) -> int:
        """How many members use the classic protocol."""
        return sum(member.classic is not None for member in self.members.values())

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Return whether somebody with these classic protocols fits to the classic members."""
        if protocol_type != _PROTOCOL_TYPE:
            return False
        count = self.classic_count
        protocols = Counter(
            protocol.name
            for member in self.members.values()
            if member.classic is not None
            for protocol in member.classic.supported_protocols
        )
        return any(protocols[name] == count for name in names)

    # -------------------------------------------------------------------------------------------------------- offsets

    def commit_error(self, request: CommitRequest) -> ErrorCode:
        """Return why offsets must not be committed; NONE if they may."""
        epoch, is_transactional = request.generation_id_or_member_epoch, request.producer is not None
        if epoch < 0 and not self.members:
            return ErrorCode.NONE
        is_anonymous = epoch == -1 and not request.member_id and request.group_instance_id is None
        if is_transactional and is_anonymous:
            return ErrorCode.NONE
        member = self.members.get(request.member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if not is_transactional and member.classic is None and request.version < _COMMIT_VERSION:
            return ErrorCode.UNSUPPORTED_VERSION
        if epoch == member.member_epoch:
            return ErrorCode.NONE
        if epoch < member.member_epoch and all(
            self._was_given(member, epoch, each.topic, each.topic_id, each.partition) for each in request.offsets
        ):
            return ErrorCode.NONE
        return _epoch_error(member)

    def _was_given(self, member: ConsumerMember, epoch: int, name: str, topic_id: UUID, partition: int) -> bool:
        """Return whether a member had a partition in an epoch, and has it still."""
        if topic_id == NO_UUID:
            topic = self.topics.by_name(name)
            topic_id = NO_UUID if topic is None else topic.topic_id
        for held in (member.assigned, member.pending_revocation):
            since = held.get(topic_id, {}).get(partition)
            if since is not None:
                return since <= epoch
        return False

    def fetch_error(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        """Return why committed offsets must not be told; NONE if they may."""
        if member_id is None and member_epoch < 0:
            return ErrorCode.NONE
        member = self.members.get(member_id or "")
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if member_epoch == member.member_epoch else _epoch_error(member)

    def deletion_error(self) -> ErrorCode:
        """Return why the group must not be deleted; NONE if it may."""
        return ErrorCode.NON_EMPTY_GROUP if self.members else ErrorCode.NONE

    def offset_deletion_error(self) -> ErrorCode:
        """Return NONE: offsets of topics may be deleted that nobody subscribes to."""
        return ErrorCode.NONE

    def subscribes_to(self, topic: str) -> bool:
        """Return whether a member subscribes to a topic."""
        return topic in self._names or any(topic in resolved.topics for resolved in self.resolved.values())

    def unused_since(self, committed_ms: int) -> int | None:
        """Return when an offset was committed: from then on it counts as unused."""
        return committed_ms


class _TopicIds:
    """The ids of the topics of a subscription, which very many members may have in common."""

    def __init__(self, topics: Topics) -> None:
        self._topics: Final = topics
        self._version: int | None = None  # of the topics
        self._known: dict[frozenset[str], frozenset[UUID]] = {}

    def of(self, names: frozenset[str]) -> frozenset[UUID]:
        """Return the ids of topics by their names, as far as they exist."""
        version = self._topics.version  # first: topics that come later are looked at later
        if self._version != version:
            self._version, self._known = version, {}
        known = self._known.get(names)
        if known is None:
            if len(self._known) == _MAX_SUBSCRIPTIONS:
                self._known.clear()
            topics = map(self._topics.by_name, names)
            known = self._known[names] = frozenset(topic.topic_id for topic in topics if topic is not None)
        return known


def _epoch_error(member: ConsumerMember) -> ErrorCode:
    return ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION


def _count_down(counts: Table[str, int], name: str) -> None:
    if counts[name] == 1:
        del counts[name]
    else:
        counts[name] -= 1
