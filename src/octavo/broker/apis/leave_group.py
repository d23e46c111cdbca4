"""LeaveGroup (13): members leave a classic group.

Versions: 0 to 2 are for one member, whose error is that of the whole; 3 is for several; 4 is flexible; 5 has reasons.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from octavo.broker.answers import Answer, Parts
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import LEAVE_GROUP
from octavo.broker.wire.messages import write_response
from octavo.coordinator.groups.classic.requests import LeaveRequest, LeavingMember
from octavo.errors import ErrorCode

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_SEVERAL: Final = 3  # the first version that is for several members


def leave_group(broker: Broker, request: Request) -> Answer:
    """Answer a LeaveGroup request."""
    asked, version = request.read(), request.version
    if version < _SEVERAL:
        members = [LeavingMember(asked.member_id)]
    else:
        members = [LeavingMember(each.member_id, each.group_instance_id) for each in asked.members]

    def write(codes: ErrorCode | list[ErrorCode]) -> Parts:
        """Write the error of the whole, or one for each member."""
        code, of_each = (codes, []) if isinstance(codes, ErrorCode) else (ErrorCode.NONE, codes)
        if version < _SEVERAL and of_each:
            code = of_each[0]
        content = {
            "throttle_time_ms": 0,
            "error_code": code,
            "members": [
                {**member._asdict(), "error_code": error} for member, error in zip(members, of_each, strict=False)
            ],
        }
        return [write_response(LEAVE_GROUP, version, content)]

    if not asked.group_id:
        return write(ErrorCode.INVALID_GROUP_ID)
    leave = LeaveRequest(asked.group_id, members)
    return broker.coordinators.run(
        leave.group_id,
        lambda shard, ticket: shard.answer(ticket, shard.leave(leave)),
        write,
        lambda code: code,
    )
