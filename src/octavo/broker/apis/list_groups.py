"""ListGroups (16): all groups. Versions: 3 is flexible, 4 has and filters states, 5 has and filters types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from octavo.broker.answers import Later, Parts
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import LIST_GROUPS
from octavo.broker.wire.messages import write_response
from octavo.coordinator.groups.requests import ListedGroup
from octavo.errors import ErrorCode

if TYPE_CHECKING:
    from octavo.broker.broker import Broker


def list_groups(broker: Broker, request: Request) -> Parts | Later:
    """Answer a ListGroups request."""
    from octavo.coordinator.groups import describing

    asked = request.read()

    def write(groups: list[ListedGroup]) -> Parts:
        content = {
            "throttle_time_ms": 0,
            "error_code": ErrorCode.NONE,
            "groups": [each._asdict() for each in groups],
        }
        return [write_response(LIST_GROUPS, request.version, content)]

    return broker.coordinators.ask_all(
        lambda shard: describing.list_groups(shard, asked.states_filter, asked.types_filter), write
    )
