"""Send consumers to a replica in their own rack (KIP-392): Kafka's `RackAwareReplicaSelector`."""

from __future__ import annotations

from collections.abc import Mapping

from octavo.broker.cluster_image import Node
from octavo.broker.wire.fetched import NO_REPLICA
from octavo.cluster.leading import LedPartition


def nearest_replica(led: LedPartition, node_id: int, nodes: Mapping[int, Node], rack: str, offset: int) -> int:
    """Return the replica that a consumer had better read from; `NO_REPLICA` if that is this broker, the leader.

    It is the replica in sync in the consumer's rack that has come furthest, if it has the offset.
    nodes: the brokers that the consumer can reach
    """
    leader = nodes.get(node_id)
    if not rack or leader is None or leader.rack == rack:
        return NO_REPLICA
    best: tuple[int, int, int] | None = None
    for number, replica in led.replicas.items():
        node = nodes.get(number)
        if node is None or node.is_fenced or node.rack != rack or number not in led.isr:
            continue
        if replica.log_start_offset <= offset <= replica.log_end_offset:
            found = (replica.log_end_offset, replica.last_caught_up_ms, number)
            best = found if best is None else max(best, found)
    return NO_REPLICA if best is None else best[2]
