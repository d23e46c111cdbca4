"""A request as handlers see it."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from octavo.broker.wire.frames import RequestHeader
from octavo.broker.wire.messages import Struct, read_request


class Client(Protocol):
    """The connection that a request came on."""

    @property
    def listener(self) -> tuple[str, int]:
        """The advertised host and port of the listener."""

    @property
    def listener_name(self) -> str:
        """The name of the listener, which all brokers of a cluster share."""

    @property
    def peer(self) -> str:
        """The address of the client."""


class Request(NamedTuple):
    """A request. Its body is part of a buffer that is used again: keep nothing of it after the handler returns."""

    header: RequestHeader
    body: memoryview
    client: Client

    @property
    def version(self) -> int:
        """The version of the API."""
        return self.header.version

    def kept(self) -> Request:
        """Return a request that can be kept: its body is a copy."""
        return self._replace(body=memoryview(bytes(self.body)))

    def read(self) -> Struct:
        """Read the body, with the codec for all messages. Raises `MalformedRequest`."""
        return read_request(self.header.api_key, self.header.version, self.body)
