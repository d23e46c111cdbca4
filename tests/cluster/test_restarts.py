"""Brokers that are stopped in order and started again are not noticed by clients."""

from __future__ import annotations

import pytest

from tests.cluster.nodes import Cluster
from tests.cluster.scenarios import under_load
from tests.kafka.judge import Judge


def test_no_request_fails_when_a_broker_is_stopped(cluster: Cluster, clients_of_java: Judge) -> None:
    """Its partitions have other leaders before it goes. An error of any request is one of the load."""
    broker = cluster.brokers[3]
    with under_load(cluster, clients_of_java, transactions=True) as load:
        broker.stop()
        assert all(cluster.leader(*each) != 3 for each in load.partitions)
        load.wait_for_all()
        broker.start()


@pytest.mark.soak(45)
def test_a_rolling_restart_loses_and_doubles_nothing(cluster: Cluster, clients_of_java: Judge) -> None:
    with under_load(cluster, clients_of_java, transactions=True) as load:
        for node in (*cluster.brokers.values(), *cluster.controllers.values()):
            node.stop()
            node.start()
            load.wait_for_all()
            cluster.await_in_sync(*load.topics)
