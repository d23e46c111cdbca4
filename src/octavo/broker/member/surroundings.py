"""What the parts of a member need of the process around them: `Surroundings`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from octavo.broker.member.peers import Peers
from octavo.cluster.messages import Endpoint

A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """How to ask other nodes, and how to have something done elsewhere. All of it is for the reactor's thread."""

    peers: Peers
    node_id: int
    call: Callable[[Callable[[], None]], object]  # has the reactor's thread call a function; for any thread
    elsewhere: Callable[[Callable[[], None]], object]  # has another thread call a function, because it may take long
    say: Callable[[str], object]  # tells the operator
    now_ms: Callable[[], int]  # by a clock that never goes back
    poke: Callable[[], object]  # something has happened: look what there is to do

    def ask(
        self,
        endpoint: Endpoint,
        channel: str,
        api: tuple[int, int],
        body: bytes,
        read: Callable[[memoryview], A],
        answered: Callable[[A], None],
        failed: Callable[[str], None],
        *,
        timeout_ms: int,
        client_id: str | None = None,
    ) -> None:
        """Ask another node. Then `answered` is called, or `failed` with the reason.

        api: the key and the version
        read: reads the answer, or raises `MalformedRequest`. What it has of the answer's bytes is valid until
            `answered` returns
        """

        def take(data: memoryview) -> None:
            self.poke()
            answered(read(data))

        def give_up(reason: str) -> None:
            self.poke()
            failed(reason)

        self.peers.ask(
            endpoint,
            channel,
            *api,
            [body],
            timeout_ms=timeout_ms,
            client_id=str(self.node_id) if client_id is None else client_id,
            answered=take,
            failed=give_up,
        )
