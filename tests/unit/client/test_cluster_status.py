"""What `octavo cluster status` makes of the answers of brokers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from octavo.broker.wire.api_keys import DESCRIBE_QUORUM
from octavo.client.cluster import Cluster
from octavo.client.cluster_status import cluster_status, metadata_lags
from octavo.errors import BrokerUnreachable


class WithoutControllers:
    """A cluster whose broker answers what it knows itself, and waits for controllers otherwise."""

    def metadata(self, topics: object) -> Any:
        return SimpleNamespace(topics=[], brokers=[])

    def any(self) -> WithoutControllers:
        return self

    def ask(self, api_key: int, content: object) -> Any:
        if api_key == DESCRIBE_QUORUM:
            raise BrokerUnreachable("here:1", "timed out")
        return SimpleNamespace(error_code=0, cluster_id="c", brokers=[])


def test_a_cluster_without_controllers_is_told_and_not_well() -> None:
    status = cluster_status(cast(Cluster, WithoutControllers()))
    assert (status.cluster_id, status.controllers, status.is_well) == ("c", [], False)


def node(number: int, end: int) -> SimpleNamespace:
    return SimpleNamespace(replica_id=number, log_end_offset=end)


def test_a_directory_that_a_broker_had_before_does_not_count() -> None:
    quorum = SimpleNamespace(
        leader_id=1,
        current_voters=[node(1, 500), node(2, 490)],
        observers=[node(4, 500), node(4, 20), node(5, 7), node(5, 480)],
    )
    assert metadata_lags(quorum) == {1: 0, 2: 10, 4: 0, 5: 20}


def test_a_controller_of_which_nothing_is_known_yet_lags_by_everything() -> None:
    assert metadata_lags(SimpleNamespace(leader_id=1, current_voters=[node(1, 9), node(2, -1)], observers=[])) == {
        1: 0,
        2: 10,
    }
