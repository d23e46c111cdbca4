"""How the real brokers of the simulation ask others: `SimulatedPeers`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from octavo.broker.member.peers import Answered, Failed
from octavo.cluster.messages import Endpoint
from octavo.errors import MalformedRequest
from tests.simulation.replication.network import CONTROLLER, Reply
from tests.simulation.replication.wire_controller import KINDS

if TYPE_CHECKING:
    from tests.simulation.replication.real_member import RealMember


class SimulatedPeers:
    """Implements `octavo.broker.member.peers.Peers`."""

    def __init__(self, member: RealMember) -> None:
        self._member: Final = member

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
        """Send a request through the simulated network."""
        member, world = self._member, self._member.world
        data = b"".join(body)
        node = CONTROLLER if endpoint.host == "controller" else int(endpoint.host.rpartition("-")[2])
        kind = KINDS[api_key] if node == CONTROLLER else channel.partition("-")[0]

        def serve(reply: Reply) -> None:
            if node == CONTROLLER:
                world.wire.serve(api_key, version, data, reply)
            else:
                world.real(node).serve(api_key, version, data, client_id, reply)

        def take(answer: bytes) -> None:
            try:
                answered(memoryview(answer))
            except MalformedRequest as error:
                failed(str(error))
            member.turn()

        def give_up() -> None:
            failed("no answer came in time")
            member.turn()

        world.network.ask(member.number, node, kind, serve, take, give_up, timeout_ms)

    def disconnect(self, endpoint: Endpoint, channel: str, reason: str) -> None:
        """Nothing: a connection has no state here."""
