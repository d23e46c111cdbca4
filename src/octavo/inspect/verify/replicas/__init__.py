"""Compare the replicas of partitions with each other.

    compare_replicas([Path("node1"), Path("node2")])      the first difference of each replica, as problems

Replicas are compared by lineage, as Kafka does when a follower joins: the one with the highest last leader epoch leads,
and among those the longest. A replica that is merely behind does not differ. Nor do replicas whose segments begin
elsewhere, that are compacted to different offsets, or whose batches are compressed otherwise.
"""

from __future__ import annotations

from octavo.inspect.verify.replicas.replicas import compare_replicas

__all__ = ["compare_replicas"]
