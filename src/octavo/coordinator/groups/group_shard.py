"""The coordinator of the groups of one partition of `__consumer_offsets`: `GroupShard`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from octavo.coordinator.groups.config import GroupConfig
from octavo.coordinator.groups.group import Group
from octavo.coordinator.groups.offsets import CommittedOffsets
from octavo.coordinator.journal import Table
from octavo.coordinator.shard import Origin, Producer, Shard
from octavo.coordinator.timers import Key
from octavo.schemas.consumer_offsets.offsets import LegacyOffsetCommitKey, OffsetCommitKey
from octavo.schemas.versioned import CoordinatorKey, CoordinatorValue

_EXPIRY: Final = ("expiry",)


class GroupShard(Shard):
    """All groups whose records are in one partition.

    groups: every group that is known, of any kind
    """

    def __init__(self, config: GroupConfig, simple_group: Callable[[GroupShard, str], Group]) -> None:
        super().__init__()
        self.config: Final = config
        self.groups: Final[Table[str, Group]] = Table(self.journal)
        self.offsets: Final = CommittedOffsets(self)
        self._simple_group: Final = simple_group

    def add_simple_group(self, group_id: str) -> Group:
        """Add a group without members, which only has committed offsets."""
        group = self.groups[group_id] = self._simple_group(self, group_id)
        return group

    def apply(self, key: CoordinatorKey[Any], value: CoordinatorValue | None, origin: Origin) -> None:
        """Change the state as a record says."""
        if isinstance(key, OffsetCommitKey | LegacyOffsetCommitKey):
            self.offsets.apply(key, value, origin)  # type: ignore[arg-type] # the value is of the key's kind

    def apply_marker(self, producer: Producer, *, commit: bool) -> None:
        """Change the state as the marker at the end of a transaction says."""
        self.offsets.apply_marker(producer.id, commit=commit)

    def loaded(self) -> None:
        """Begin to look for what expires."""
        self.timers.set(_EXPIRY, self.now.clock_ms + self.config.offsets_retention_check_interval_ms)

    def expired(self, key: Key) -> None:
        """Do what has to happen at the time that was set for a key."""
        if key == _EXPIRY:
            self._expire_offsets()
            self.loaded()

    def resign(self) -> None:
        """Answer everybody who waits."""

    def _expire_offsets(self) -> None:
        for group in list(self.groups.values()):
            self.offsets.expire(group)
