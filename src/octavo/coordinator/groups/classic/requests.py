"""Requests of members of classic groups, and their answers. Fields are called as in Kafka's protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from octavo.coordinator.groups.config import GroupConfig
from octavo.errors import ErrorCode

Protocols = tuple[tuple[str, bytes], ...]  # names of assignors, in the order of preference, and metadata for each
NO_GENERATION = -1


class JoinRequest(NamedTuple):
    """Somebody wants to be a member, or to go on being one."""

    group_id: str
    member_id: str  # "" for somebody who is none yet
    protocol_type: str
    protocols: Protocols
    session_timeout_ms: int
    rebalance_timeout_ms: int
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    requires_known_member_id: bool = True  # of JoinGroup since version 4
    supports_skipping_assignment: bool = True  # of JoinGroup since version 9


class JoinedMember(NamedTuple):
    """A member, as the leader is told of it."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


class JoinAnswer(NamedTuple):
    """The generation that a member is part of. The leader is told of all members."""

    error_code: ErrorCode
    member_id: str = ""
    generation_id: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str | None = ""
    skip_assignment: bool = False
    members: Sequence[JoinedMember] = ()


class SyncRequest(NamedTuple):
    """A member wants its assignment; the leader brings all of them."""

    group_id: str
    member_id: str
    generation_id: int
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: Mapping[str, bytes] = {}


class SyncAnswer(NamedTuple):
    """The assignment of a member."""

    error_code: ErrorCode
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


class HeartbeatRequest(NamedTuple):
    """A member is alive."""

    group_id: str
    member_id: str
    generation_id: int
    group_instance_id: str | None = None


class LeavingMember(NamedTuple):
    """A member that leaves. Without a member id, somebody else removes it by its instance id."""

    member_id: str
    group_instance_id: str | None = None


class LeaveRequest(NamedTuple):
    """Members leave."""

    group_id: str
    members: Sequence[LeavingMember]


def join_error(config: GroupConfig, request: JoinRequest) -> ErrorCode:
    """Return what is wrong with a request, whatever the group is."""
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    allowed = range(config.group_min_session_timeout_ms, config.group_max_session_timeout_ms + 1)
    if request.session_timeout_ms not in allowed:
        return ErrorCode.INVALID_SESSION_TIMEOUT
    return ErrorCode.NONE
