"""A group of the classic protocol, and its members: `ClassicGroup`, `ClassicMember`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, NamedTuple

from octavo.coordinator.groups.classic.requests import JoinedMember, Protocols
from octavo.coordinator.groups.group import Group
from octavo.coordinator.groups.requests import CommitRequest, ListedGroup
from octavo.coordinator.journal import Journal, Table
from octavo.coordinator.shard import Ticket
from octavo.errors import ErrorCode, FormatError
from octavo.schemas.consumer_offsets.classic_groups import GroupMetadataValue, MemberMetadata
from octavo.schemas.consumer_protocol import ConsumerProtocolSubscription
from octavo.schemas.entity import read_entity

CONSUMER: Final = "consumer"  # the protocol type of consumers
_TYPE: Final = "classic"
_VERSION_SIZE: Final = 2
_UNKNOWN: Final = -1


class State(Enum):
    """The state of a classic group, with Kafka's names."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"  # members join
    COMPLETING_REBALANCE = "CompletingRebalance"  # all have joined, and wait for what the leader assigns
    STABLE = "Stable"


class ClassicMember(NamedTuple):
    """A member. It is replaced when something of it changes."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False  # its first join was not answered yet
    join: Ticket | None = None  # of the join that waits for an answer
    sync: Ticket | None = None  # of the sync that waits for an answer

    @property
    def is_alive(self) -> bool:
        """Whether it counts as alive without heartbeats: it waits for us."""
        return not self.is_new and (self.join is not None or self.sync is not None)

    def metadata(self, protocol_name: str | None) -> bytes:
        """Return what it says to an assignor."""
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        return b""


class ClassicGroup(Group):
    """A group whose members assign the partitions themselves.

    What a record describes is set by `take`; the rest begins anew at a restart.
    """

    def __init__(self, journal: Journal, group_id: str) -> None:
        super().__init__(journal)
        self.group_id = group_id
        self.state = State.EMPTY
        self.previous_state = State.EMPTY
        self.state_timestamp_ms = _UNKNOWN
        self.protocol_type: str | None = None
        self.generation_id = 0
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: Table[str, ClassicMember] = Table(journal)
        self.static_members: Table[str, str] = Table(journal)  # member ids by instance ids
        self.pending: Table[str, bool] = Table(journal)  # ids that were given out, and have not joined yet
        self.pending_sync: Table[str, bool] = Table(journal)  # members that have not asked for their assignment yet
        self.joining_count = 0  # members that wait for the next generation
        self._protocol_counts: Table[str, int] = Table(journal)  # how many members have an assignor
        self.is_new_member_added = False  # during the delay before the first generation
        self.delay_ms = self.remaining_delay_ms = 0  # the delay, and by how much it may still be extended
        self.subscribed_topics: frozenset[str] | None = None  # None: not known

    def listed(self) -> ListedGroup:
        """Return the group as it stands in a list."""
        return ListedGroup(self.group_id, self.protocol_type or "", self.state.value, _TYPE)

    # -------------------------------------------------------------------------------------------------------- members

    def add(self, member: ClassicMember) -> None:
        """Add a member."""
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        self._count(member, 1)
        self.members[member.member_id] = member
        self.pending.pop(member.member_id, None)

    def remove(self, member_id: str) -> None:
        """Remove a member, or an id that was given out. Another member leads if it was the leader."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count(member, -1)
            if member.group_instance_id is not None:
                self.static_members.pop(member.group_instance_id, None)
            if self.leader_id == member_id:
                self.leader_id = min(self.members, default=None)
        self.pending.pop(member_id, None)
        self.pending_sync.pop(member_id, None)

    def change(self, member: ClassicMember, **changes: Any) -> ClassicMember:
        """Change something of a member."""
        before, changed = self.members[member.member_id], member._replace(**changes)
        self.members[member.member_id] = changed
        if (changed.join is None) != (before.join is None):
            self.joining_count += 1 if before.join is None else -1
        if changed.protocols != before.protocols:
            self._count_protocols(before, -1)
            self._count_protocols(changed, 1)
        return changed

    def _count(self, member: ClassicMember, number: int) -> None:
        """Count a member, or no longer: what all of them have in common must not take all of them to find out."""
        if member.join is not None:
            self.joining_count += number
        self._count_protocols(member, number)

    def _count_protocols(self, member: ClassicMember, number: int) -> None:
        for name in {name for name, _ in member.protocols}:
            self._protocol_counts[name] = self._protocol_counts.get(name, 0) + number
            if not self._protocol_counts[name]:
                del self._protocol_counts[name]

    def member_error(self, member_id: str, group_instance_id: str | None) -> ErrorCode:
        """Return why somebody is not the member that he says he is; NONE if he is."""
        if group_instance_id is not None:
            known = self.static_members.get(group_instance_id)
            if known is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if known != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    @property
    def rebalance_timeout_ms(self) -> int:
        """For how long members are waited for."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def has_all_joined(self) -> bool:
        """Whether every member waits for the next generation, and nobody has an id and has not joined."""
        return not self.pending and self.joining_count == len(self.members)

    # ------------------------------------------------------------------------------------------------------ protocols

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Return whether somebody with these protocols fits to the members."""
        if self.state is State.EMPTY:
            return bool(protocol_type and protocols)
        return self.protocol_type == protocol_type and any(self._is_common(name) for name, _ in protocols)

    def _is_common(self, protocol_name: str) -> bool:
        """Return whether all members have an assignor."""
        return self._protocol_counts.get(protocol_name) == len(self.members)

    def chosen_protocol(self) -> str:
        """Return the assignor that most members like best, of those that all of them have."""
        candidates = {name for name in self._protocol_counts if self._is_common(name)}
        votes = Counter(
            next(name for name, _ in member.protocols if name in candidates) for member in self.members.values()
        )
        return max(sorted(votes), key=lambda name: votes[name])

    def find_leader(self) -> bool:
        """Have somebody lead who has joined. Returns whether there is somebody."""
        if self.leader_id is None:
            return False
        if self.members[self.leader_id].join is not None:
            return True
        joined = [member_id for member_id, member in self.members.items() if member.join is not None]
        if joined:
            self.leader_id = min(joined)
        return bool(joined)

    def begin_generation(self, now_ms: int) -> None:
        """Begin the next generation, of the members that there are now."""
        self.generation_id += 1
        self.choose_protocol()
        self.enter(State.COMPLETING_REBALANCE if self.members else State.EMPTY, now_ms)
        self.pending_sync.clear()

    def choose_protocol(self) -> None:
        """Choose the assignor for the members that there are now."""
        self.protocol_name = self.chosen_protocol() if self.members else None
        self.subscribed_topics = self._subscribed_topics()

    def enter(self, state: State, now_ms: int) -> None:
        """Enter a state."""
        self.previous_state, self.state, self.state_timestamp_ms = self.state, state, now_ms

    def joined_members(self) -> list[JoinedMember]:
        """All members, as the leader is told of them."""
        return [
            JoinedMember(member_id, member.group_instance_id, member.metadata(self.protocol_name))
            for member_id, member in sorted(self.members.items())
        ]

    def _subscribed_topics(self) -> frozenset[str] | None:
        if self.protocol_type != CONSUMER or (self.members and self.protocol_name is None):
            return None
        topics: set[str] = set()
        try:
            for metadata in {member.metadata(self.protocol_name) for member in self.members.values()}:
                topics.update(subscribed_topics(metadata))
        except FormatError:
            return None
        return frozenset(topics)

    # -------------------------------------------------------------------------------------------------------- offsets

    def commit_error(self, request: CommitRequest) -> ErrorCode:
        """Return why offsets must not be committed; NONE if they may."""
        generation_id = request.generation_id_or_member_epoch
        is_transactional = request.producer is not None
        if generation_id < 0 and self.state is State.EMPTY:
            return ErrorCode.NONE
        if generation_id >= 0 or request.member_id or request.group_instance_id is not None:
            error = self.member_error(request.member_id, request.group_instance_id)
            if error is not ErrorCode.NONE:
                return error
            if generation_id != self.generation_id:
                return ErrorCode.ILLEGAL_GENERATION
        elif not is_transactional and self.state is not State.EMPTY:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if not is_transactional and self.state is State.COMPLETING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def fetch_error(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        """Return why committed offsets must not be told; NONE if they may."""
        return ErrorCode.NONE

    def deletion_error(self) -> ErrorCode:
        """Return why the group must not be deleted; NONE if it may."""
        return ErrorCode.NONE if self.state is State.EMPTY else ErrorCode.NON_EMPTY_GROUP

    def offset_deletion_error(self) -> ErrorCode:
        """Return why none of its offsets must be deleted; NONE if those of topics may that nobody subscribes to."""
        if self.state is State.EMPTY or self.protocol_type == CONSUMER:
            return ErrorCode.NONE
        return ErrorCode.NON_EMPTY_GROUP

    def subscribes_to(self, topic: str) -> bool:
        """Return whether a member subscribes to a topic, as far as that is known."""
        if self.subscribed_topics is None:
            return self.protocol_type == CONSUMER
        return topic in self.subscribed_topics

    def unused_since(self, committed_ms: int) -> int | None:
        """Return since when an offset counts as unused that was committed at a time; None if it is in use."""
        if self.protocol_type is None:
            return committed_ms
        if self.state is State.EMPTY:
            return committed_ms if self.state_timestamp_ms == _UNKNOWN else self.state_timestamp_ms
        knows_topics = self.protocol_type == CONSUMER and self.subscribed_topics is not None
        return committed_ms if knows_topics and self.state is State.STABLE else None

    # -------------------------------------------------------------------------------------------------------- records

    def value(self, assignments: Mapping[str, bytes]) -> GroupMetadataValue:
        """Return the group as a record has it."""
        return GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation_id,
            protocol=self.protocol_name,
            leader=self.leader_id,
            current_state_timestamp=self.state_timestamp_ms,
            members=tuple(
                MemberMetadata(
                    member_id=member_id,
                    group_instance_id=member.group_instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout=member.rebalance_timeout_ms,
                    session_timeout=member.session_timeout_ms,
                    subscription=member.metadata(self.protocol_name),
                    assignment=assignments.get(member_id, b""),
                )
                for member_id, member in sorted(self.members.items())
            ),
        )

    def take(self, value: GroupMetadataValue) -> None:
        """Be what a record says, at the start."""
        self.generation_id = value.generation
        self.protocol_name, self.leader_id = value.protocol, value.leader
        self.state_timestamp_ms = value.current_state_timestamp
        self.state = State.STABLE if value.members else State.EMPTY
        for each in value.members:
            self.add(
                ClassicMember(
                    member_id=each.member_id,
                    group_instance_id=each.group_instance_id,
                    client_id=each.client_id,
                    client_host=each.client_host,
                    rebalance_timeout_ms=each.session_timeout if each.rebalance_timeout < 0 else each.rebalance_timeout,
                    session_timeout_ms=each.session_timeout,
                    protocol_type=value.protocol_type,
                    protocols=((value.protocol or "", each.subscription),),
                    assignment=each.assignment,
                )
            )
        if self.leader_id not in self.members:  # the records of a damaged log may say anything
            self.leader_id = min(self.members, default=None)
        self.protocol_type = value.protocol_type or None
        self.subscribed_topics = self._subscribed_topics()


def subscribed_topics(metadata: bytes) -> tuple[str, ...]:
    """Return the topics of a subscription, which every version of it begins with. Raises a `FormatError`."""
    read, _ = read_entity(ConsumerProtocolSubscription, metadata, _VERSION_SIZE, 0, flexible=False)
    return read.topics
