"""Groups of the share and streams protocols, which are not served here: `ForeignGroups`.

Apache Kafka has left their records in the log. They are kept as they are, for Kafka to go on with; here they only keep
others from using the ids of these groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from octavo.coordinator.groups.classic.group import ClassicGroup
from octavo.coordinator.groups.group import Group
from octavo.coordinator.groups.requests import CommitRequest, ListedGroup
from octavo.coordinator.journal import Journal, Table
from octavo.errors import ErrorCode, FormatError
from octavo.schemas.versioned import CoordinatorKey, CoordinatorValue, UnknownKey, key_kinds, read_any_key

if TYPE_CHECKING:
    from octavo.coordinator.groups.group_shard import GroupShard

_SHARE: Final = "share"
_STREAMS: Final = "streams"
_WITH_MEMBERS: Final = {_SHARE: "Stable", _STREAMS: "NotReady"}
# By the types of the keys that tell of groups, and of members. Their schemas are loaded when they are needed, if ever.
_GROUPS: Final = {11: _SHARE, 17: _STREAMS}
_MEMBERS: Final = {10: _SHARE, 19: _STREAMS}


class ForeignGroup(Group):
    """A group of another protocol. Its errors are those of Kafka, but it cannot be deleted here."""

    def __init__(self, journal: Journal, group_id: str, protocol: str) -> None:
        super().__init__(journal)
        self.group_id = group_id
        self.protocol = protocol
        self.members: Table[str, None] = Table(journal)

    def listed(self) -> ListedGroup:
        """Return the group as it stands in a list."""
        state = _WITH_MEMBERS[self.protocol] if self.members else "Empty"
        return ListedGroup(self.group_id, self.protocol, state, self.protocol)

    def commit_error(self, request: CommitRequest) -> ErrorCode:
        """Return why offsets must not be committed; NONE if they may: those of streams, by nobody in particular."""
        if self.protocol == _SHARE:
            return ErrorCode.GROUP_ID_NOT_FOUND
        is_member = request.generation_id_or_member_epoch >= 0 or request.member_id or request.group_instance_id
        is_allowed = not is_member and (request.producer is not None or not self.members)
        return ErrorCode.NONE if is_allowed else ErrorCode.UNKNOWN_MEMBER_ID

    def fetch_error(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        """Return why committed offsets must not be told; NONE if they may. A share group has none."""
        is_member = member_id is not None or member_epoch >= 0
        return ErrorCode.UNKNOWN_MEMBER_ID if is_member and self.protocol == _STREAMS else ErrorCode.NONE

    def deletion_error(self) -> ErrorCode:
        """Return why the group must not be deleted: nobody here knows all that belongs to it."""
        return ErrorCode.NON_EMPTY_GROUP if self.members else ErrorCode.GROUP_ID_NOT_FOUND

    def offset_deletion_error(self) -> ErrorCode:
        """Return why none of its offsets must be deleted; NONE if they may."""
        return ErrorCode.GROUP_ID_NOT_FOUND if self.protocol == _SHARE else ErrorCode.NONE

    def subscribes_to(self, topic: str) -> bool:
        """Return whether somebody may subscribe to a topic: any member to any topic."""
        return bool(self.members)

    def unused_since(self, committed_ms: int) -> int | None:
        """Return when an offset was committed: from then on it counts as unused."""
        return committed_ms


class ForeignGroups:
    """The groups of other protocols in a shard."""

    def __init__(self, shard: GroupShard) -> None:
        self._shard: Final = shard

    def apply(self, key: CoordinatorKey[Any], value: CoordinatorValue | None) -> bool:
        """Note what a record says. Returns whether it is of a group of another protocol."""
        protocol = _GROUPS.get(key.TYPE) or _MEMBERS.get(key.TYPE)
        if protocol is None:
            return False
        group_id: str = key.group_id  # type: ignore[attr-defined] # all of these keys have it
        group = self._shard.groups.get(group_id)
        if value is not None and (group is None or isinstance(group, ClassicGroup)):
            group = ForeignGroup(self._shard.journal, group_id, protocol)  # the classic group only had offsets
            self._shard.groups[group_id] = group
        if not isinstance(group, ForeignGroup):
            return True
        if key.TYPE in _MEMBERS:
            member_id: str = key.member_id  # type: ignore[attr-defined] # these two have it
            if value is None:
                group.members.pop(member_id, None)
            else:
                group.members[member_id] = None
        elif value is None:
            del self._shard.groups[group_id]
        return True


def read_foreign_key(unknown: UnknownKey, data: bytes) -> CoordinatorKey[Any] | UnknownKey:
    """Return a key that tells of a group of another protocol, or of a member; else the one that is not known.

    So is one that is malformed: nobody here has to understand it.
    """
    if unknown.type not in _GROUPS and unknown.type not in _MEMBERS:
        return unknown
    try:
        return read_any_key(_kinds(), data)
    except FormatError:
        return unknown


@cache
def _kinds() -> Mapping[int, type[CoordinatorKey[Any]]]:
    from octavo.schemas.consumer_offsets import share_groups, streams_groups

    return key_kinds(share_groups, streams_groups)
