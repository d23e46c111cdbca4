"""Rounds of a classic group: members join, a generation begins, and members ask for their assignments: `Rounds`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from octavo.coordinator.groups.classic.group import ClassicGroup, ClassicMember, State
from octavo.coordinator.groups.classic.requests import JoinAnswer, SyncAnswer
from octavo.errors import ErrorCode
from octavo.schemas.consumer_offsets.classic_groups import GroupMetadataKey

if TYPE_CHECKING:
    from octavo.coordinator.groups.group_shard import GroupShard

HEARTBEAT: Final = "heartbeat"  # timers: a member must be heard of
JOIN: Final = "join"  # members must have joined
INITIAL: Final = "initial join"  # the delay before the first generation is over
SYNC: Final = "sync"  # members must have asked for their assignments

VERSION: Final = 3  # of the record that Kafka 4.x writes


class Rounds:
    """What begins and ends a round, for all classic groups of a shard."""

    def __init__(self, shard: GroupShard) -> None:
        self._shard: Final = shard

    def rebalance_or_complete(self, group: ClassicGroup) -> None:
        """Begin a round; if there is one, end it if nobody is missing."""
        if group.state is State.PREPARING_REBALANCE:
            self.complete_if_all_joined(group)
        else:
            self.rebalance(group)

    def rebalance(self, group: ClassicGroup) -> None:
        """Begin a round: all members have to join again."""
        if group.state is State.COMPLETING_REBALANCE:
            for member in list(group.members.values()):
                changed = group.change(member, assignment=b"")
                self.answer_sync(group, changed, SyncAnswer(ErrorCode.REBALANCE_IN_PROGRESS))
        group.pending_sync.clear()
        self._shard.timers.cancel((SYNC, group.group_id))
        is_first = group.state is State.EMPTY
        group.enter(State.PREPARING_REBALANCE, self.now_ms)
        if is_first:
            delay_ms = self._shard.config.group_initial_rebalance_delay_ms
            self._delay_first(group, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
        elif group.has_all_joined:
            self.complete(group)
        else:
            self._await_joins(group)

    def _delay_first(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        """Wait for more members before the first generation; longer while more come."""
        group.delay_ms, group.remaining_delay_ms = delay_ms, remaining_ms
        self._shard.timers.set((INITIAL, group.group_id), self._clock_ms + delay_ms)

    def end_delay(self, group: ClassicGroup) -> None:
        """Begin the first generation, or wait once more if somebody has come meanwhile."""
        remaining_ms = group.remaining_delay_ms
        if group.is_new_member_added and remaining_ms:
            group.is_new_member_added = False
            next_ms = min(self._shard.config.group_initial_rebalance_delay_ms, remaining_ms)
            self._delay_first(group, next_ms, max(remaining_ms - group.delay_ms, 0))
        else:
            self.complete(group)

    def _await_joins(self, group: ClassicGroup) -> None:
        self._shard.timers.set((JOIN, group.group_id), self._clock_ms + group.rebalance_timeout_ms)

    def complete_if_all_joined(self, group: ClassicGroup) -> None:
        """End the round of joins if nobody is missing; the first one ends when its delay is over."""
        is_due = group.state is State.PREPARING_REBALANCE and group.previous_state is not State.EMPTY
        if is_due and group.has_all_joined:
            self.complete(group)

    def complete(self, group: ClassicGroup) -> None:
        """End the round of joins: go on without those who are missing."""
        self._shard.timers.cancel((JOIN, group.group_id))
        self._shard.timers.cancel((INITIAL, group.group_id))
        for member in list(group.members.values()):
            if member.join is None and member.group_instance_id is None:
                group.remove(member.member_id)
                self._shard.timers.cancel((HEARTBEAT, group.group_id, member.member_id))
        if not group.find_leader() and group.members:  # only static members, which may still come
            self._await_joins(group)
            return
        group.begin_generation(self.now_ms)
        if not group.members:
            self.write(group, {})
            return
        for member in list(group.members.values()):
            if member.join is not None:
                is_leader = group.leader_id == member.member_id
                self._shard.answer(member.join, joined(group, member.member_id, tells_members=is_leader))
            group.change(member, join=None, is_new=False)
            self.expect(group, member.member_id, member.session_timeout_ms)
            group.pending_sync[member.member_id] = True
        self._shard.timers.set((SYNC, group.group_id), self._clock_ms + group.rebalance_timeout_ms)

    def remove(self, group: ClassicGroup, member_id: str) -> None:
        """Remove a member, or an id that was given out, and answer what it waits for."""
        member = group.members.get(member_id)
        if member is not None:
            self.answer_join(group, member, JoinAnswer(ErrorCode.UNKNOWN_MEMBER_ID))
            self.answer_sync(group, group.members[member_id], SyncAnswer(ErrorCode.UNKNOWN_MEMBER_ID))
        group.remove(member_id)
        self._shard.timers.cancel((HEARTBEAT, group.group_id, member_id))

    # ---------------------------------------------------------------------------------------------------------- parts

    def answer_join(self, group: ClassicGroup, member: ClassicMember, answer: JoinAnswer) -> None:
        """Answer the join of a member, if it waits for one."""
        if member.join is not None:
            self._shard.answer(member.join, answer)
            group.change(member, join=None)

    def answer_sync(self, group: ClassicGroup, member: ClassicMember, answer: SyncAnswer) -> None:
        """Answer the sync of a member, if it waits for one."""
        if member.sync is not None:
            self._shard.answer(member.sync, answer)
            group.change(member, sync=None)
            self.expect(group, member.member_id, member.session_timeout_ms)

    def expect(self, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
        """Have a member removed unless it is heard of in time."""
        self._shard.timers.set((HEARTBEAT, group.group_id, member_id), self._clock_ms + timeout_ms)

    def write(self, group: ClassicGroup, assignments: Mapping[str, bytes]) -> None:
        """Write the record of a group."""
        self._shard.write_only(GroupMetadataKey(group=group.group_id), group.value(assignments), VERSION)

    @property
    def now_ms(self) -> int:
        """The time of records."""
        return self._shard.now.wall_ms

    @property
    def _clock_ms(self) -> int:
        return self._shard.now.clock_ms


def joined(group: ClassicGroup, member_id: str, *, tells_members: bool = False) -> JoinAnswer:
    """Return the answer to a member of the present generation."""
    return JoinAnswer(
        ErrorCode.NONE,
        member_id,
        group.generation_id,
        group.protocol_type,
        group.protocol_name,
        group.leader_id,
        False,
        group.joined_members() if tells_members else (),
    )
