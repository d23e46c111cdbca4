"""DescribeAcls (29), CreateAcls (30), DeleteAcls (31): there is no authorizer, so there are no access rights.

Kafka closes the connection if a request names something that is unknown by definition (0). Version 2 is flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from octavo.broker.answers import Parts
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import CREATE_ACLS, DELETE_ACLS, DESCRIBE_ACLS
from octavo.broker.wire.messages import Struct, write_response
from octavo.errors import ErrorCode, MalformedRequest

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_NO_AUTHORIZER: dict[str, Any] = {
    "error_code": ErrorCode.SECURITY_DISABLED,
    "error_message": "No Authorizer is configured.",
}


def describe_acls(broker: Broker, request: Request) -> Parts:
    """Answer a DescribeAcls request."""
    asked = request.read()
    _check_filter(asked)
    content = {
        "throttle_time_ms": 0,
        "error_code": ErrorCode.SECURITY_DISABLED,
        "error_message": "No Authorizer is configured on the broker",
        "resources": [],
    }
    return [write_response(DESCRIBE_ACLS, request.version, content)]


def create_acls(broker: Broker, request: Request) -> Parts:
    """Answer a CreateAcls request."""
    asked = request.read()
    for each in asked.creations:
        _check(each.resource_type, each.resource_pattern_type, each.operation, each.permission_type)
    content = {"throttle_time_ms": 0, "results": [_NO_AUTHORIZER for _ in asked.creations]}
    return [write_response(CREATE_ACLS, request.version, content)]


def delete_acls(broker: Broker, request: Request) -> Parts:
    """Answer a DeleteAcls request."""
    asked = request.read()
    for each in asked.filters:
        _check_filter(each)
    results = [_NO_AUTHORIZER | {"matching_acls": []} for _ in asked.filters]
    return [write_response(DELETE_ACLS, request.version, {"throttle_time_ms": 0, "filter_results": results})]


def _check_filter(asked: Struct) -> None:
    _check(asked.resource_type_filter, asked.pattern_type_filter, asked.operation, asked.permission_type)


def _check(*kinds: int) -> None:
    if 0 in kinds:
        raise MalformedRequest("an access right has a part that is unknown by definition")
