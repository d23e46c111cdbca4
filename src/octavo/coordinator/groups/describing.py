"""What can be told of the groups of a shard: `list_groups`, `describe_classic`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from octavo.coordinator.groups.classic.group import ClassicGroup, State
from octavo.coordinator.groups.requests import ListedGroup
from octavo.errors import ErrorCode

if TYPE_CHECKING:
    from octavo.coordinator.groups.group_shard import GroupShard

DEAD: Final = "Dead"  # the state of a group that there is not


class DescribedMember(NamedTuple):
    """A member of a classic group. Fields are called as in Kafka's protocol."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    member_metadata: bytes
    member_assignment: bytes


class DescribedGroup(NamedTuple):
    """A classic group. Fields are called as in Kafka's protocol."""

    group_id: str
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: Sequence[DescribedMember] = ()


def list_groups(shard: GroupShard, states: Collection[str], types: Collection[str]) -> list[ListedGroup]:
    """Return the groups in some states and of some types, in any case of letters; without any, all of them."""
    wanted_states = {each.lower().strip() for each in states}
    wanted_types = {each.lower() for each in types}
    return [
        listed
        for listed in (group.listed() for group in shard.groups.values())
        if (not states or listed.group_state.lower() in wanted_states)
        and (not types or listed.group_type.lower() in wanted_types)
    ]


def describe_classic(shard: GroupShard, group_id: str) -> DescribedGroup:
    """Return a classic group with its members."""
    group = shard.groups.get(group_id)
    if not isinstance(group, ClassicGroup):
        why = f"Group {group_id} not found." if group is None else f"Group {group_id} is not a classic group."
        return DescribedGroup(group_id, ErrorCode.GROUP_ID_NOT_FOUND, why, DEAD)
    is_stable = group.state is State.STABLE
    return DescribedGroup(
        group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if is_stable else "",
        members=[
            DescribedMember(
                member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                member.metadata(group.protocol_name) if is_stable else b"",
                member.assignment,
            )
            for member_id, member in sorted(group.members.items())
        ],
    )
