"""DeleteGroups (42): delete groups without members, and what they have committed. Version 2 is flexible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from octavo.broker.answers import Later, Parts
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import DELETE_GROUPS
from octavo.broker.wire.messages import write_response
from octavo.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from octavo.broker.broker import Broker
    from octavo.coordinator.groups.group_shard import GroupShard


def delete_groups(broker: Broker, request: Request) -> Parts | Later:
    """Answer a DeleteGroups request. A group that is named twice is answered once."""
    group_ids = list(dict.fromkeys(request.read().groups_names))

    def delete(group_id: str) -> Callable[[GroupShard], ErrorCode]:
        return lambda shard: shard.delete_group(group_id)

    def write(codes: list[ErrorCode]) -> Parts:
        results = [{"group_id": group_id, "error_code": code} for group_id, code in zip(group_ids, codes, strict=True)]
        return [write_response(DELETE_GROUPS, request.version, {"throttle_time_ms": 0, "results": results})]

    return broker.coordinators.run_each(
        [(each, delete(each)) for each in group_ids], lambda group_id, code: code, write
    )
