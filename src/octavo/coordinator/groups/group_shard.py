"""The coordinator of the groups of one partition of `__consumer_offsets`: `GroupShard`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from octavo.coordinator.groups.classic.classic_groups import TIMERS as CLASSIC_TIMERS
from octavo.coordinator.groups.classic.classic_groups import ClassicGroups
from octavo.coordinator.groups.classic.group import ClassicGroup
from octavo.coordinator.groups.classic.requests import (
    HeartbeatRequest,
    JoinAnswer,
    JoinRequest,
    LeaveRequest,
    SyncRequest,
    join_error,
)
from octavo.coordinator.groups.config import GroupConfig
from octavo.coordinator.groups.consumer.consumer_groups import TIMERS as CONSUMER_TIMERS
from octavo.coordinator.groups.consumer.consumer_groups import ConsumerGroups
from octavo.coordinator.groups.consumer.group import ConsumerGroup
from octavo.coordinator.groups.foreign import ForeignGroups
from octavo.coordinator.groups.group import Group
from octavo.coordinator.groups.offsets import CommittedOffsets
from octavo.coordinator.groups.topics import NoTopics, Topics
from octavo.coordinator.journal import Table
from octavo.coordinator.shard import Origin, Producer, Shard, Ticket
from octavo.coordinator.timers import Key
from octavo.errors import ErrorCode
from octavo.schemas.consumer_offsets.classic_groups import GroupMetadataKey
from octavo.schemas.consumer_offsets.offsets import LegacyOffsetCommitKey, OffsetCommitKey
from octavo.schemas.versioned import CoordinatorKey, CoordinatorValue

_EXPIRY: Final = ("expiry",)


class GroupShard(Shard):
    """All groups whose records are in one partition.

    groups: every group that is known, of any kind
    classic: the groups of the classic protocol
    consumer: the groups of the consumer protocol
    foreign: groups of protocols that are not served
    offsets: what groups have committed
    """

    def __init__(
        self,
        config: Callable[[], GroupConfig],
        new_id: Callable[[], str],
        topics: Topics | None = None,
        own_config: Callable[[str], Mapping[str, str]] = lambda _: {},
    ) -> None:
        """Begin without groups. Without `topics`, nothing can be assigned.

        config: returns the settings as they are now
        new_id: returns ids that nobody has had, for members
        own_config: returns the settings that a group has for itself, by Kafka's names
        """
        super().__init__()
        self._config: Final = config
        self._own_config: Final = own_config
        self.topics: Final[Topics] = NoTopics() if topics is None else topics
        self.groups: Final[Table[str, Group]] = Table(self.journal)
        self.offsets: Final = CommittedOffsets(self)
        self.classic: Final = ClassicGroups(self, new_id)
        self.consumer: Final = ConsumerGroups(self, new_id)
        self.foreign: Final = ForeignGroups(self)

    @property
    def size(self) -> int:
        """How many groups there are."""
        return len(self.groups)

    @property
    def config(self) -> GroupConfig:
        """The settings, as they are now."""
        return self._config()

    def config_of(self, group_id: str) -> GroupConfig:
        """The settings of a group, as they are now."""
        return self._config().of_group(self._own_config(group_id))

    # ------------------------------------------------------------------------- requests of the classic protocol

    def join(self, ticket: Ticket, request: JoinRequest) -> None:
        """Let somebody join by the classic protocol, be it a group of the consumer protocol."""
        group = self.groups.get(request.group_id)
        error = join_error(self.config, request)
        if isinstance(group, ConsumerGroup) and error is ErrorCode.NONE:
            if group.members:
                self.consumer.members.join(ticket, request, group)
                return
            if request.member_id:
                self.answer(ticket, JoinAnswer(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
                return
            self.consumer.delete(group)
        self.classic.join(ticket, request)

    def sync(self, ticket: Ticket, request: SyncRequest) -> None:
        """Tell a member of the classic protocol its assignment."""
        group = self.groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            self.consumer.members.sync(ticket, request, group)
        else:
            self.classic.sync(ticket, request)

    def heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        """Note that a member of the classic protocol is alive."""
        group = self.groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            return self.consumer.members.heartbeat(request, group)
        return self.classic.heartbeat(request)

    def leave(self, request: LeaveRequest) -> list[ErrorCode]:
        """Let members leave by the classic protocol. Returns what came of each."""
        group = self.groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            return self.consumer.members.leave(request, group)
        return self.classic.leave(request)

    # -------------------------------------------------------------------------------------------- groups and records

    def add_simple_group(self, group_id: str) -> Group:
        """Add a group without members, which only has committed offsets."""
        return self.classic.add(group_id)

    def committed(self, group: Group, member_id: str) -> None:
        """Note that somebody has committed offsets of a group."""
        if isinstance(group, ClassicGroup):
            self.classic.committed(group, member_id)

    def delete_group(self, group_id: str) -> ErrorCode:
        """Delete a group without members, and all that it has committed."""
        group = self.groups.get(group_id)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        error = group.deletion_error()
        if error is ErrorCode.NONE:
            self.offsets.forget_group(group_id)
            self._delete(group)
        return error

    def apply(self, key: CoordinatorKey[Any], value: CoordinatorValue | None, origin: Origin) -> None:
        """Change the state as a record says."""
        if isinstance(key, OffsetCommitKey | LegacyOffsetCommitKey):
            self.offsets.apply(key, value, origin)  # type: ignore[arg-type] # the value is of the key's kind
        elif isinstance(key, GroupMetadataKey):
            self.classic.apply(key, value)  # type: ignore[arg-type] # the value is of the key's kind
        elif not self.foreign.apply(key, value):
            self.consumer.apply(key, value)

    def apply_marker(self, producer: Producer, *, commit: bool) -> None:
        """Change the state as the marker at the end of a transaction says."""
        self.offsets.apply_marker(producer.id, commit=commit)

    def loaded(self) -> None:
        """Wait for members, and begin to look for what expires."""
        self.classic.loaded()
        self.consumer.loaded()
        self._set_expiry()

    def expired(self, key: Key) -> None:
        """Do what has to happen at the time that was set for a key."""
        if key == _EXPIRY:
            self._expire_offsets()
            self._set_expiry()
        elif key[0] in CLASSIC_TIMERS:
            self.classic.expired(key)
        elif key[0] in CONSUMER_TIMERS:
            self.consumer.expired(key)

    def resign(self) -> None:
        """Answer everybody who waits: another coordinator has the groups now."""
        self.classic.resign()

    def _set_expiry(self) -> None:
        self.timers.set(_EXPIRY, self.now.clock_ms + self.config.offsets_retention_check_interval_ms)

    def _expire_offsets(self) -> None:
        """Forget offsets that nobody uses, and groups that have neither offsets nor members."""
        for group in list(self.groups.values()):
            if self.offsets.expire(group) and group.deletion_error() is ErrorCode.NONE:
                self._delete(group)

    def _delete(self, group: Group) -> None:
        if isinstance(group, ClassicGroup):
            self.classic.delete(group)
        elif isinstance(group, ConsumerGroup):
            self.consumer.delete(group)
