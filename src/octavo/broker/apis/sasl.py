"""SaslHandshake (17), SaslAuthenticate (36): they have no place on a listener without SASL, and are answered so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from octavo.broker.answers import Parts
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import SASL_AUTHENTICATE, SASL_HANDSHAKE
from octavo.broker.wire.messages import write_response
from octavo.errors import ErrorCode

if TYPE_CHECKING:
    from octavo.broker.broker import Broker


def sasl_handshake(broker: Broker, request: Request) -> Parts:
    """Answer a SaslHandshake request."""
    request.read()
    content: dict[str, Any] = {"error_code": ErrorCode.ILLEGAL_SASL_STATE, "mechanisms": []}
    return [write_response(SASL_HANDSHAKE, request.version, content)]


def sasl_authenticate(broker: Broker, request: Request) -> Parts:
    """Answer a SaslAuthenticate request."""
    request.read()
    content = {
        "error_code": ErrorCode.ILLEGAL_SASL_STATE,
        "error_message": "SaslAuthenticate request received after successful authentication",
        "auth_bytes": b"",
        "session_lifetime_ms": 0,
    }
    return [write_response(SASL_AUTHENTICATE, request.version, content)]
