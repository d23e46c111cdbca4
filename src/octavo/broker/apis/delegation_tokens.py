"""CreateDelegationToken (38), RenewDelegationToken (39), ExpireDelegationToken (40), DescribeDelegationToken (41).

Tokens are for clients that have proved who they are, which nobody has on a listener without authentication. Version 2
is flexible; version 3 of the first names an owner, and tells who asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from octavo.broker.answers import Parts
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import (
    CREATE_DELEGATION_TOKEN,
    DESCRIBE_DELEGATION_TOKEN,
    EXPIRE_DELEGATION_TOKEN,
    RENEW_DELEGATION_TOKEN,
)
from octavo.broker.wire.messages import write_response
from octavo.errors import ErrorCode

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_REFUSED: Final = {"throttle_time_ms": 0, "error_code": ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED}
_NEVER: Final = -1
_ANYBODY: Final = ("User", "ANONYMOUS")


def create_delegation_token(broker: Broker, request: Request) -> Parts:
    """Answer a CreateDelegationToken request."""
    asked = request.read()
    owner, error = _ANYBODY, _REFUSED["error_code"]
    if asked.owner_principal_name:
        if asked.owner_principal_type is None:
            error = ErrorCode.UNKNOWN_SERVER_ERROR
        else:
            owner = (asked.owner_principal_type, asked.owner_principal_name)
    content: dict[str, Any] = {
        "throttle_time_ms": 0,
        "error_code": error,
        "principal_type": owner[0],
        "principal_name": owner[1],
        "token_requester_principal_type": _ANYBODY[0],
        "token_requester_principal_name": _ANYBODY[1],
        "issue_timestamp_ms": _NEVER,
        "expiry_timestamp_ms": _NEVER,
        "max_timestamp_ms": _NEVER,
        "token_id": "",
        "hmac": b"",
    }
    return [write_response(CREATE_DELEGATION_TOKEN, request.version, content)]


def renew_delegation_token(broker: Broker, request: Request) -> Parts:
    """Answer a RenewDelegationToken request."""
    request.read()
    return [write_response(RENEW_DELEGATION_TOKEN, request.version, _REFUSED | {"expiry_timestamp_ms": _NEVER})]


def expire_delegation_token(broker: Broker, request: Request) -> Parts:
    """Answer an ExpireDelegationToken request."""
    request.read()
    return [write_response(EXPIRE_DELEGATION_TOKEN, request.version, _REFUSED | {"expiry_timestamp_ms": _NEVER})]


def describe_delegation_token(broker: Broker, request: Request) -> Parts:
    """Answer a DescribeDelegationToken request."""
    request.read()
    return [write_response(DESCRIBE_DELEGATION_TOKEN, request.version, _REFUSED | {"tokens": []})]
