"""Ask nodes of Apache Kafka as a member of their cluster does, one request after the other: `MemberAsker`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from octavo.broker.notices import Notices
from octavo.cluster.messages import Endpoint
from octavo.server.peers import PeerConnections
from octavo.server.poller import make_poller

_LARGEST: Final = 100 << 20
_PATIENCE_MS: Final = 30_000
_TURN_S: Final = 1.0

A = TypeVar("A")


class MemberAsker:
    """A loop around `PeerConnections`."""

    def __init__(self) -> None:
        self._poller: Final = make_poller()
        self.peers: Final = PeerConnections(
            self._poller,
            Notices(self._failed),
            largest_answer=_LARGEST,
            do_elsewhere=self._failed,
            call=self._failed,
            clock_ms=lambda: time.monotonic() * 1000,
        )

    def ask(
        self, endpoint: Endpoint, channel: str, api_key: int, version: int, body: bytes, read: Callable[[memoryview], A]
    ) -> A:
        """Ask, and return the answer; raises `AssertionError` if there is none."""
        answers: list[A] = []
        self.peers.ask(
            endpoint,
            channel,
            api_key,
            version,
            [body],
            timeout_ms=_PATIENCE_MS,
            client_id="a member",
            answered=lambda data: answers.append(read(data)),
            failed=self._failed,
        )
        while not answers:
            for descriptor, event in self._poller.poll(_TURN_S):
                self.peers.handle(descriptor, event)
            self.peers.tick()
        return answers[0]

    def _failed(self, reason: object) -> None:
        raise AssertionError(reason)

    def close(self) -> None:
        """Close all connections."""
        self.peers.close()
        self._poller.close()


@contextmanager
def member_asker() -> Iterator[MemberAsker]:
    """Make one, and close it."""
    asker = MemberAsker()
    try:
        yield asker
    finally:
        asker.close()
