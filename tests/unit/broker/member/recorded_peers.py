"""Other nodes that a test answers for: `RecordedPeers`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from octavo.broker.wire.messages import Struct, read_request
from octavo.cluster.messages import Endpoint


class Sent(NamedTuple):
    """A request, and who takes the answer."""

    endpoint: Endpoint
    channel: str
    api_key: int
    version: int
    body: memoryview
    timeout_ms: int
    client_id: str
    answered: Callable[[memoryview], None]
    failed: Callable[[str], None]

    def read(self) -> Struct:
        """What it asks."""
        return read_request(self.api_key, self.version, self.body)


class RecordedPeers:
    """Keeps what was sent."""

    def __init__(self) -> None:
        self.sent: Final[list[Sent]] = []
        self.disconnected: Final[list[Endpoint]] = []

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
        answered: Callable[[memoryview], None],
        failed: Callable[[str], None],
    ) -> None:
        whole = memoryview(b"".join(body))
        sent = Sent(endpoint, channel, api_key, version, whole, timeout_ms, client_id, answered, failed)
        self.check(sent)
        self.sent.append(sent)

    def check(self, sent: Sent) -> None:
        """Look at every request."""

    def disconnect(self, endpoint: Endpoint, channel: str, reason: str) -> None:
        self.disconnected.append(endpoint)
