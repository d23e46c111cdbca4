"""DescribeGroups (15): classic groups with their members.

Versions: 3 can ask for the operations that are allowed, 4 has static members, 5 is flexible, 6 has an error for groups
that do not exist; before, their state is "Dead".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from octavo.broker.answers import Later, Parts
from octavo.broker.apis.metadata import NOT_ASKED
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import DESCRIBE_GROUPS
from octavo.broker.wire.messages import write_response
from octavo.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from octavo.broker.broker import Broker
    from octavo.coordinator.groups.describing import DescribedGroup
    from octavo.coordinator.groups.group_shard import GroupShard

GROUP_OPERATIONS: Final = 3400  # everything that can be done with a group, as bits
_NOT_FOUND: Final = 6  # the first version with an error for groups that do not exist


def describe_groups(broker: Broker, request: Request) -> Parts | Later:
    """Answer a DescribeGroups request."""
    from octavo.coordinator.groups.describing import DescribedGroup, describe_classic

    asked, version = request.read(), request.version

    def describe(group_id: str) -> Callable[[GroupShard], DescribedGroup]:
        return lambda shard: describe_classic(shard, group_id)

    def write(groups: list[DescribedGroup]) -> Parts:
        contents = [_content(each, version, asked.include_authorized_operations) for each in groups]
        return [write_response(DESCRIBE_GROUPS, version, {"throttle_time_ms": 0, "groups": contents})]

    return broker.coordinators.run_each([(each, describe(each)) for each in asked.groups], DescribedGroup, write)


def _content(group: DescribedGroup, version: int, tells_operations: bool) -> dict[str, Any]:
    if group.error_code is ErrorCode.GROUP_ID_NOT_FOUND and version < _NOT_FOUND:
        group = group._replace(error_code=ErrorCode.NONE, error_message=None)
    may_tell = tells_operations and group.error_code is ErrorCode.NONE
    return {
        **group._asdict(),
        "members": [member._asdict() for member in group.members],
        "authorized_operations": GROUP_OPERATIONS if may_tell else NOT_ASKED,
    }
