"""AlterConfigs and IncrementalAlterConfigs on a member: what concerns this broker is checked here, the rest forwarded.

Only a broker knows which of its settings can be changed, and what they can be. The controller keeps all of them.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from octavo.broker.answers import Answer, Parts
from octavo.broker.apis.alter_configs import changes_of, checked_name
from octavo.broker.config_resources import ResourceType
from octavo.broker.member.forwarding import to_controller
from octavo.broker.refused import Refused
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import INCREMENTAL_ALTER_CONFIGS
from octavo.broker.wire.messages import Struct, read_response, write_request, write_response
from octavo.errors import ErrorCode

if TYPE_CHECKING:
    from octavo.broker.broker import Broker


def alter_configs_by_controller(broker: Broker, request: Request) -> Answer:
    """Answer an AlterConfigs or an IncrementalAlterConfigs request."""
    asked, key = request.read(), request.header.api_key
    is_incremental = key == INCREMENTAL_ALTER_CONFIGS
    counts = Counter((each.resource_type, each.resource_name) for each in asked.resources)
    answers: list[dict[str, Any] | None] = []  # None: by the controller
    for each in asked.resources:
        is_repeated = counts[each.resource_type, each.resource_name] > 1
        answers.append(_local(broker, each, is_incremental=is_incremental, is_repeated=is_repeated))
    left = [each for each, answer in zip(asked.resources, answers, strict=True) if answer is None]

    def write(body: bytes) -> Parts:
        given = read_response(key, request.version, memoryview(body)).responses if left else ()
        by_name = {(each.resource_type, each.resource_name): _content(each) for each in given}
        responses = [
            answer or by_name.get((each.resource_type, each.resource_name), _UNANSWERED | _resource(each))
            for each, answer in zip(asked.resources, answers, strict=True)
        ]
        return [write_response(key, request.version, {"throttle_time_ms": 0, "responses": responses})]

    if not left:
        return write(b"")
    content = {"resources": [_content(each) for each in left], "validate_only": asked.validate_only}
    return to_controller(broker).forwarding.forward(request, write_request(key, request.version, content), write)


def _local(broker: Broker, asked: Struct, *, is_incremental: bool, is_repeated: bool) -> dict[str, Any] | None:
    """Return the answer for a resource; None if the controller has to be asked."""
    try:
        if is_repeated:
            raise Refused(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        name = checked_name(broker, asked, is_incremental=is_incremental)
        if name is None:
            return _resource(asked) | {"error_code": 0, "error_message": None}
        if asked.resource_type == ResourceType.BROKER:
            changes_of(broker, asked, name, is_incremental=is_incremental)
    except Refused as refused:
        return _resource(asked) | {"error_code": refused.code, "error_message": refused.message}
    return None


def _resource(asked: Struct) -> dict[str, Any]:
    return {"resource_type": asked.resource_type, "resource_name": asked.resource_name}


_UNANSWERED = {"error_code": ErrorCode.UNKNOWN_SERVER_ERROR, "error_message": None}


def _content(value: Any) -> Any:
    """Return what was read, as it is written."""
    if isinstance(value, Struct):
        return {name: _content(each) for name, each in vars(value).items()}
    return [_content(each) for each in value] if isinstance(value, tuple) else value
