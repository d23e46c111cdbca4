"""A broker of one kind is stopped and one of the other kind started on its directory, with the same id, under load."""

from __future__ import annotations

import pytest

from tests.cluster.nodes import Cluster, Kind, Node
from tests.cluster.scenarios import under_load
from tests.kafka.judge import Judge


def replace(broker: Node, kind: Kind, *, kill: bool = False) -> None:
    """Go on with a broker of this kind on the same directory."""
    if kill:
        broker.kill()
    else:
        broker.stop()
    broker.kind = kind
    broker.start()


@pytest.mark.parametrize("kill", [False, pytest.param(True, marks=pytest.mark.soak(15))])
def test_a_broker_is_replaced_by_the_other_kind_and_back(cluster: Cluster, clients_of_java: Judge, kill: bool) -> None:
    broker = cluster.brokers[2]
    kind = broker.kind
    try:
        with under_load(cluster, clients_of_java, transactions=True) as load:
            replace(broker, "kafka", kill=kill)
            load.wait_for_all()
            cluster.await_in_sync(*load.topics)
            replace(broker, kind, kill=kill)
    finally:
        broker.kind = kind
