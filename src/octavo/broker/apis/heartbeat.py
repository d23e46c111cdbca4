"""Heartbeat (12): a member of a classic group is alive. Versions: 3 has static members, 4 is flexible."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from octavo.broker.answers import Answer, Parts
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import HEARTBEAT
from octavo.broker.wire.messages import write_response
from octavo.coordinator.groups.classic.requests import HeartbeatRequest
from octavo.errors import ErrorCode

if TYPE_CHECKING:
    from octavo.broker.broker import Broker


@cache
def _response(version: int, code: ErrorCode) -> bytes:
    return write_response(HEARTBEAT, version, {"throttle_time_ms": 0, "error_code": code})


def heartbeat(broker: Broker, request: Request) -> Answer:
    """Answer a Heartbeat request."""
    asked, version = request.read(), request.version

    def write(code: ErrorCode) -> Parts:
        return [_response(version, code)]

    if not asked.group_id:
        return write(ErrorCode.INVALID_GROUP_ID)
    alive = HeartbeatRequest(asked.group_id, asked.member_id, asked.generation_id, asked.group_instance_id)
    return broker.coordinators.run(
        alive.group_id,
        lambda shard, ticket: shard.answer(ticket, shard.heartbeat(alive)),
        write,
        lambda code: code,
    )
