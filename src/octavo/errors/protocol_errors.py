"""Errors of requests: those that a broker does not answer, and those of a client."""

from __future__ import annotations

from octavo.errors.root import OctavoError


class ConnectionRefused(OctavoError):
    """A broker closes the connection, because it can give no other sign: a produce failed that wants no answer."""


class MalformedRequest(ConnectionRefused):
    """The bytes of a request do not follow Kafka's protocol. As in Kafka, the connection is closed, with no answer."""


class BrokerUnreachable(OctavoError):
    """No answer came from a broker: it cannot be connected to, or the connection broke. Has its `address`."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(address, reason)
        self.address = address
        self.reason = reason

    def __str__(self) -> str:
        return f"the broker at {self.address} does not answer: {self.reason}"


class CannotJoin(OctavoError):
    """A broker cannot be a member of its cluster: no controller answers, or they refuse it."""


class RequestFailed(OctavoError):
    """A broker refuses a request. Has Kafka's error `code`."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return self.message
