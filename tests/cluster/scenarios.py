"""What happens to a cluster under load, and what has to be true afterwards: `Scenario`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.cluster.load import ClusterLoad
from tests.cluster.nodes import Cluster
from tests.cluster.replicas import expect_equal_replicas
from tests.history import check
from tests.kafka.judge import Judge


@contextmanager
def under_load(cluster: Cluster, judge: Judge, *, seed: int = 18, transactions: bool = False) -> Iterator[ClusterLoad]:
    """Have clients write and read while something happens to the cluster, which is whole again at the end.

    Afterwards all replicas come back in sync and are equal, and the history of what clients saw is checked.
    """
    with ClusterLoad(cluster, judge, seed=seed, transactions=transactions) as load:
        load.wait_for_all()
        yield load
        load.wait_for_all()
        cluster.await_in_sync(*load.topics)
    assert not load.errors, load.errors
    load.read_everything()
    report = check(load.history)
    assert report.is_clean, f"{report}\nseed {seed}"
    assert expect_equal_replicas(cluster, load.topics) > 0
    cluster.delete(*load.topics)
    for broker in cluster.of_kind("octavo"):
        assert not [line for line in broker.said if "Traceback" in line], broker.said
