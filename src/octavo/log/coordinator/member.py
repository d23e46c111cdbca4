"""A member of a group in this process: `Member`.

A member speaks the consumer protocol (KIP-848): it tells what it has, and is told what it shall have. The coordinator
is in the same process, so a heartbeat is a call. The consumer makes it where it waits for the answer, and otherwise a
thread (see `members.py`), which never calls a consumer: it leaves a `Notice`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from octavo.coordinator.groups.consumer.requests import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerHeartbeatAnswer,
    ConsumerHeartbeatRequest,
)
from octavo.errors import CoordinatorRefused, ErrorCode, MemberFenced
from octavo.log.coordinator.notice import Notice
from octavo.log.names import TopicPartition
from octavo.log.ownership.fork_safe import make_rlock

if TYPE_CHECKING:
    from octavo.coordinator.groups.consumer.group import ConsumerGroup
    from octavo.coordinator.groups.group_shard import GroupShard
    from octavo.log.coordinator.groups import Groups
    from octavo.log.coordinator.host import Host
    from octavo.log.coordinator.offset_and_metadata import OffsetAndMetadata

CLIENT_HOST: Final = "/in-process"  # what groups know members of this kind by; other hosts have addresses
_SOON_S: Final = 0.1  # until a group is asked again whose target is not computed yet, or that could not be asked
_MS: Final = 1000
_LOST: Final = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.STALE_MEMBER_EPOCH,
)

Partitions = Mapping[TopicPartition, UUID]  # with the ids of their topics, which show whether one was created anew


class MemberConfig(NamedTuple):
    """Settings of a member."""

    group_id: str
    instance_id: str | None
    assignor: str | None
    max_poll_interval_ms: int
    client_id: str


class Member:
    """One member of a group. Any thread may use it.

    owned: the partitions that its consumer reads
    target: those that it shall read
    is_lost: the coordinator knows it no longer, so that others may have what it owned
    """

    def __init__(self, groups: Groups, config: MemberConfig, notice: Notice) -> None:
        self.member_id: Final = groups.new_id()
        self.config: Final = config
        self.owned: Partitions = {}
        self.target: Partitions = {}
        self.is_lost = False
        self.error: CoordinatorRefused | None = None  # why the coordinator refused the last heartbeat
        self.is_abandoned = False  # its consumer is gone, or wants to leave
        self.epoch = JOIN_EPOCH
        self._groups: Final = groups
        self._notice: Final = notice
        self._lock: Final = make_rlock()
        self._topics: frozenset[str] = frozenset()
        self._has_joined = False  # or has tried to: if that was interrupted, the coordinator may know it
        self._is_over = False
        self._next_beat = self._last_poll = time.monotonic()
        self._interval_s = 0.0

    @property
    def host(self) -> Host[GroupShard]:
        """What runs the coordinator of its group."""
        return self._groups.host_for(self.config.group_id)

    # ----------------------------------------------------------------------------------------------- for its consumer

    def subscribe(self, topics: frozenset[str]) -> None:
        """Join the group, or change what is subscribed to. Raises `CoordinatorRefused`."""
        with self._lock:
            self._groups.check_join(self.config.group_id)
            self._topics = topics
            self.beat()

    def polled(self) -> None:
        """Note that the consumer polls."""
        self._last_poll = time.monotonic()

    def give_back(self, partitions: Iterable[TopicPartition]) -> None:
        """Tell the coordinator that the consumer does not read these partitions any more."""
        with self._lock:
            gone = set(partitions)
            self.owned = {each: topic for each, topic in self.owned.items() if each not in gone}
            self.beat()

    def take(self) -> None:
        """Own all that the member shall have, as far as nothing has to be given back for it."""
        with self._lock:
            if not self.is_lost:
                self.owned = {**self.target, **self.owned}

    def rejoin(self) -> None:
        """Join the group again, without partitions, after the member was lost. Raises `CoordinatorRefused`."""
        with self._lock:
            self.owned, self.target, self.epoch = {}, {}, JOIN_EPOCH
            self.polled()
            self.is_lost = False
            try:
                self.beat()
            except BaseException:
                self._lose()  # the next poll tries again
                raise

    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit offsets as this member. Raises `MemberFenced` if it is none any more."""
        with self._lock:
            self._check_member()
            code = self._groups.commit_as(self, offsets)
            if code in _LOST:
                self._lose()
                self._check_member()
            if code is not ErrorCode.NONE:
                raise _refusal(self.config.group_id, code, "the offsets are not committed")

    def leave(self) -> None:
        """Leave the group. A static member keeps its partitions for a while. If this fails, the thread tries again."""
        with self._lock:
            self.is_abandoned = True
            self._leave()
            self._is_over = True
            self._groups.members.remove(self)

    def abandon(self) -> None:
        """Have the member leave soon. This may be called by a finalizer, in the middle of anything."""
        self.is_abandoned = True
        self._groups.members.poke()

    # ------------------------------------------------------------------------------------------------- for the thread

    @property
    def due(self) -> float:
        """When the member has to be looked after, by `time.monotonic`."""
        return math.inf if self.is_lost else min(self._next_beat, self._poll_deadline)

    @property
    def _poll_deadline(self) -> float:
        # The consumer takes notice after each heartbeat, so its last poll may be that much later than is known.
        return self._last_poll + self.config.max_poll_interval_ms / _MS + self._interval_s

    def look_after(self) -> None:
        """Send a heartbeat if it is time, or leave the group if the consumer has not polled for too long."""
        with self._lock:
            if self._is_over or self.is_lost:
                return
            now = time.monotonic()
            try:
                if now >= self._poll_deadline:
                    self._leave()
                    self._lose()
                elif now >= self._next_beat or self._is_behind():
                    self.beat()
            except CoordinatorRefused as error:
                self.error = error
                self._notice.is_there = True

    def beat(self) -> None:
        """Send a heartbeat, and take notice of the answer. Raises `CoordinatorRefused` if the member cannot go on."""
        with self._lock:
            if self._is_over or self.is_lost:
                return
            self.error = None
            self._next_beat = time.monotonic() + _SOON_S  # if the coordinator fails now
            self._groups.members.add(self)
            self._has_joined = True
            answer = self._ask(self.epoch)
            if answer.error_code in _LOST and self.epoch != JOIN_EPOCH:
                self._lose()
            elif answer.error_code is not ErrorCode.NONE:
                raise _refusal(self.config.group_id, answer.error_code, answer.error_message)
            else:
                self._take_notice(answer)

    # ---------------------------------------------------------------------------------------------------------- parts

    def _take_notice(self, answer: ConsumerHeartbeatAnswer) -> None:
        assert answer.assignment is not None  # as each heartbeat tells everything
        self.epoch = answer.member_epoch
        self.target = {
            TopicPartition(topic.name, number): topic_id
            for topic_id, numbers in answer.assignment.items()
            for topic in (self._groups.known.by_id(topic_id),)
            if topic is not None
            for number in numbers
        }
        self._interval_s = answer.heartbeat_interval_ms / _MS
        self._next_beat = time.monotonic() + (_SOON_S if self._waits_for_target() else self._interval_s)
        self._notice.is_there = True

    def _lose(self) -> None:
        self.is_lost = True
        self.target = {}
        self._notice.is_there = True

    def _leave(self) -> None:
        if self._has_joined and not self.is_lost:
            self._ask(LEAVE_EPOCH if self.config.instance_id is None else STATIC_LEAVE_EPOCH)

    def _check_member(self) -> None:
        if self.is_lost:
            raise MemberFenced(
                f"the consumer is no longer a member of group {self.config.group_id!r}, and others may have its "
                f"partitions: poll to join again"
            )

    def _ask(self, epoch: int) -> ConsumerHeartbeatAnswer:
        owned: dict[UUID, list[int]] = {}
        for partition, topic_id in self.owned.items():
            owned.setdefault(topic_id, []).append(partition.partition)
        is_leaving = epoch < JOIN_EPOCH
        request = ConsumerHeartbeatRequest(
            self.config.group_id,
            self.member_id,
            epoch,
            self.config.instance_id,
            None,
            self.config.max_poll_interval_ms,
            None if is_leaving else sorted(self._topics),
            None,
            None if is_leaving else self.config.assignor,
            owned,
            self.config.client_id,
            CLIENT_HOST,
        )
        return self._groups.heartbeat(request)

    def _is_behind(self) -> bool:
        """Return whether a heartbeat would have something new, without one."""
        return self.host.ask(lambda shard: self._has_news(shard))

    def _has_news(self, shard: GroupShard) -> bool:
        group = self._group(shard)
        known = None if group is None else group.members.get(self.member_id)
        if known is None or group is None:
            return True
        return known.member_epoch != self.epoch or not known.is_reconciled_to(group.group_epoch)

    def _waits_for_target(self) -> bool:
        def ask(shard: GroupShard) -> bool:
            group = self._group(shard)
            return group is not None and group.assignment_epoch < group.group_epoch

        return self.host.ask(ask)

    def _group(self, shard: GroupShard) -> ConsumerGroup | None:
        from octavo.coordinator.groups.consumer.group import ConsumerGroup  # a broker without groups never needs it

        group = shard.groups.get(self.config.group_id)
        return group if isinstance(group, ConsumerGroup) else None


def _refusal(group_id: str, code: ErrorCode, reason: str | None) -> CoordinatorRefused:
    error = CoordinatorRefused(f"group {group_id!r} refuses the consumer: {reason or code.name}")
    error.code = code
    return error
