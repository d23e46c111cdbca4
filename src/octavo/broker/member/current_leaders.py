"""Tell clients who leads a partition if this broker does not (KIP-951), so that they need not ask for metadata."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from octavo.broker.cluster_image import NO_LISTENER
from octavo.broker.request import Client
from octavo.broker.wire.leader_tags import NO_LEADER, CurrentLeader, NodeEndpoint

if TYPE_CHECKING:
    from octavo.broker.broker import Broker


def current_leader(broker: Broker, topic: str | bytes, partition: int) -> CurrentLeader:
    """Return the leader of a partition by the metadata. `topic`: its name or its id."""
    found = broker.image.topic(topic)
    state = None if found is None else found.partitions.get(partition)
    return NO_LEADER if state is None else CurrentLeader(state.leader, state.leader_epoch)


def endpoints(broker: Broker, client: Client, leaders: Iterable[CurrentLeader]) -> list[NodeEndpoint]:
    """Return where a client reaches leaders, by the listener that it has come by. Those that are down are left out."""
    wanted = {leader.leader_id for leader in leaders}
    listener = broker.image.listeners.get(client.listener_name, NO_LISTENER)
    return [NodeEndpoint(*node[:4]) for node in listener.alive if node.id in wanted]
