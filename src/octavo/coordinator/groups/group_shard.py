"""The coordinator of the groups of one partition of `__consumer_offsets`: `GroupShard`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from octavo.coordinator.groups.classic.classic_groups import TIMERS as CLASSIC_TIMERS
from octavo.coordinator.groups.classic.classic_groups import ClassicGroups
from octavo.coordinator.groups.classic.group import ClassicGroup
from octavo.coordinator.groups.config import GroupConfig
from octavo.coordinator.groups.group import Group
from octavo.coordinator.groups.offsets import CommittedOffsets
from octavo.coordinator.journal import Table
from octavo.coordinator.shard import Origin, Producer, Shard
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
    offsets: what groups have committed
    """

    def __init__(self, config: GroupConfig, new_id: Callable[[], str]) -> None:
        """`new_id` returns ids that nobody has had, for members."""
        super().__init__()
        self.config: Final = config
        self.groups: Final[Table[str, Group]] = Table(self.journal)
        self.offsets: Final = CommittedOffsets(self)
        self.classic: Final = ClassicGroups(self, new_id)

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

    def apply_marker(self, producer: Producer, *, commit: bool) -> None:
        """Change the state as the marker at the end of a transaction says."""
        self.offsets.apply_marker(producer.id, commit=commit)

    def loaded(self) -> None:
        """Wait for members, and begin to look for what expires."""
        self.classic.loaded()
        self._set_expiry()

    def expired(self, key: Key) -> None:
        """Do what has to happen at the time that was set for a key."""
        if key == _EXPIRY:
            self._expire_offsets()
            self._set_expiry()
        elif key[0] in CLASSIC_TIMERS:
            self.classic.expired(key)

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
