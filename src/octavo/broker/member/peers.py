"""How a member asks other nodes: `Peers`. The server has the connections, on the same poller as those of clients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from octavo.cluster.messages import Endpoint

Answered = Callable[[memoryview], None]
Failed = Callable[[str], None]


class Peers(Protocol):
    """Connections to other nodes, one for each node and channel. For the reactor's thread alone.

    A channel is a name for what the requests are about: those of one channel are answered in their order, and none of
    them waits for those of another.
    """

    def ask(
        self,
        endpoint: Endpoint,
        channel: str,
        api_key: int,
        version: int,
        body: Sequence[bytes],
        *,
        timeout_ms: int,
        client_id: str,
        answered: Answered,
        failed: Failed,
    ) -> None:
        """Send a request. Exactly one of the two functions is called later, unless everything is closed before.

        answered: takes the body of the answer, whose bytes are valid until it returns. If it raises `MalformedRequest`,
            the connection is closed and `failed` is called
        failed: takes the reason, in words. After `timeout_ms` the connection is closed, and with it fail all requests
            that wait for an answer on it
        """

    def disconnect(self, endpoint: Endpoint, channel: str, reason: str) -> None:
        """Close a connection, if there is one. The requests on it fail, for this reason."""
