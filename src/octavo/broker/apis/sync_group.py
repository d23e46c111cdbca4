"""SyncGroup (14): a member's assignment in a classic group. The answer comes when the leader has brought all of them.

Versions: 3 has static members, 4 is flexible, 5 must name the type and the name of the protocol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from octavo.broker.answers import Answer, Parts
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import SYNC_GROUP
from octavo.broker.wire.messages import write_response
from octavo.coordinator.groups.classic.requests import SyncAnswer, SyncRequest
from octavo.errors import ErrorCode

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_PROTOCOLS: Final = 5  # the first version in which they are mandatory


def sync_group(broker: Broker, request: Request) -> Answer:
    """Answer a SyncGroup request."""
    asked, version = request.read(), request.version

    def write(answer: SyncAnswer) -> Parts:
        return [write_response(SYNC_GROUP, version, {"throttle_time_ms": 0, **answer._asdict()})]

    if version >= _PROTOCOLS and (asked.protocol_type is None or asked.protocol_name is None):
        return write(SyncAnswer(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
    if not asked.group_id:
        return write(SyncAnswer(ErrorCode.INVALID_GROUP_ID))
    sync = SyncRequest(
        asked.group_id,
        asked.member_id,
        asked.generation_id,
        asked.group_instance_id,
        asked.protocol_type,
        asked.protocol_name,
        {each.member_id: bytes(each.assignment) for each in asked.assignments},
    )
    return broker.coordinators.run(
        sync.group_id,
        lambda shard, ticket: shard.sync(ticket, sync),
        write,
        SyncAnswer,
        lambda shard, code: shard.classic.sync_failed(sync, code),
    )
