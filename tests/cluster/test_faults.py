"""Nodes are killed, stopped, cut off and robbed of their disks under load, and clients lose nothing.

Broker 1 is Apache Kafka's, and brokers 2 and 3 are Octavo's. Each of them leads a third of the partitions.
"""

from __future__ import annotations

from typing import Final

import pytest

from tests.cluster import faults
from tests.cluster.nodes import Cluster, Node
from tests.cluster.scenarios import under_load
from tests.kafka.cluster import SESSION_MS
from tests.kafka.judge import Judge
from tests.selection import EXHAUSTIVE
from tests.soak.plugin import Soak

GRACE_MS: Final = 3000  # after the session's end, until acks=all goes on
ATTEMPTS: Final = 3


@pytest.mark.parametrize("number", [2, pytest.param(1, marks=pytest.mark.soak(20))])
def test_clients_of_a_leader_that_is_killed_go_on_soon(cluster: Cluster, clients_of_java: Judge, number: int) -> None:
    """A machine that is busy with something else may need several attempts."""
    took_ms: list[float] = []
    while not took_ms or (took_ms[-1] > SESSION_MS + GRACE_MS and len(took_ms) < ATTEMPTS):
        took_ms.append(_kill_a_leader(cluster, clients_of_java, cluster.brokers[number]))
    assert took_ms[-1] <= SESSION_MS + GRACE_MS, took_ms


def _kill_a_leader(cluster: Cluster, clients_of_java: Judge, broker: Node) -> float:
    """Kill a leader under load. Returns how long clients had to wait, in ms."""
    with under_load(cluster, clients_of_java) as load:
        led = [each for each in load.partitions if cluster.leader(*each) == broker.node_id]
        assert led
        broker.kill()
        stopped_for_ms = load.await_sends(led)
        broker.start()
    return stopped_for_ms


@pytest.mark.parametrize(
    ("fault", "number"),
    [
        ("hang", 2),
        pytest.param("lose the controller", 2, marks=EXHAUSTIVE),
        pytest.param("cut from the others", 2, marks=EXHAUSTIVE),
        pytest.param("cut in one direction", 2, marks=EXHAUSTIVE),
        pytest.param("cut from the controllers", 3, marks=EXHAUSTIVE),
        pytest.param("delay", 2, marks=EXHAUSTIVE),
        pytest.param("fail the disk", 3, marks=pytest.mark.soak(15)),
        pytest.param("fill the disk", 2, marks=EXHAUSTIVE),
        pytest.param("replace the disk", 3, marks=EXHAUSTIVE),
    ],
)
def test_nothing_is_lost(cluster: Cluster, clients_of_java: Judge, fault: str, number: int) -> None:
    with under_load(cluster, clients_of_java) as load:
        faults.ALL[fault](cluster, load, cluster.brokers[number])


@pytest.mark.soak(30)
def test_nothing_is_lost_of_transactions_whichever_broker_it_is(
    cluster: Cluster, clients_of_java: Judge, soak: Soak
) -> None:
    every = [(fault, number) for number in cluster.brokers for fault in faults.ALL]
    for seed in soak.seeds():
        fault, number = every[seed % len(every)]
        with under_load(cluster, clients_of_java, seed=seed, transactions=True) as load:
            faults.ALL[fault](cluster, load, cluster.brokers[number])
