"""JoinGroup (11): become a member of a classic group. The answer comes when all members have joined.

Versions: 1 has the time-out of rebalances, 4 makes new members ask twice, 5 has static members, 6 is flexible, 7 has
the type of the protocol in the answer, 8 has the reason, 9 may tell the leader to assign nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from octavo.broker.answers import Answer, Parts
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import JOIN_GROUP
from octavo.broker.wire.messages import write_response
from octavo.coordinator.groups.classic.requests import JoinAnswer, JoinRequest, join_error
from octavo.errors import ErrorCode

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_REBALANCE_TIMEOUT: Final = 1  # the first version that has it
_KNOWN_MEMBERS: Final = 4  # the first version in which members must have an id
_NO_PROTOCOL: Final = 7  # the first version that can say that there is no protocol
_SKIPPING: Final = 9


def join_group(broker: Broker, request: Request) -> Answer:
    """Answer a JoinGroup request."""
    asked, version = request.read(), request.version
    has_timeout = version >= _REBALANCE_TIMEOUT
    join = JoinRequest(
        asked.group_id,
        asked.member_id,
        asked.protocol_type,
        tuple((each.name, bytes(each.metadata)) for each in asked.protocols),
        asked.session_timeout_ms,
        asked.rebalance_timeout_ms if has_timeout else asked.session_timeout_ms,
        asked.group_instance_id,
        request.header.client_id or "",
        f"/{request.client.peer}",
        requires_known_member_id=version >= _KNOWN_MEMBERS,
        supports_skipping_assignment=version >= _SKIPPING,
    )

    def write(answer: JoinAnswer) -> Parts:
        protocol = answer.protocol_name
        content = {
            "throttle_time_ms": 0,
            "error_code": answer.error_code,
            "generation_id": answer.generation_id,
            "protocol_type": answer.protocol_type,
            "protocol_name": "" if protocol is None and version < _NO_PROTOCOL else protocol,
            "leader": answer.leader or "",
            "skip_assignment": answer.skip_assignment,
            "member_id": answer.member_id,
            "members": [each._asdict() for each in answer.members],
        }
        return [write_response(JOIN_GROUP, version, content)]

    error = join_error(broker.coordinators.group_config, join)
    if error is not ErrorCode.NONE:
        return write(JoinAnswer(error, join.member_id))
    return broker.coordinators.run(
        join.group_id,
        lambda shard, ticket: shard.join(ticket, join),
        write,
        JoinAnswer,
    )
