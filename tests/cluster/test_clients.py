"""What clients do with a broker that is alone, they do with a member of a cluster, too.

All topics are on a broker of Octavo. Groups and transactions are coordinated by one of Apache Kafka, which has nothing
else: its directory is cordoned, so that controllers place no new replicas there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from octavo.broker.wire import api_keys as keys
from tests.clients.brokers import Brokers
from tests.clients.cells import CELLS, Cell, Connections
from tests.clients.driver import ClientUnavailable
from tests.cluster.conftest import OTHERS
from tests.cluster.nodes import COORDINATOR, Cluster, wait_until
from tests.cluster.proxy import ProxyNetwork
from tests.cluster.questions import Asking, Question
from tests.kafka.releases import KafkaUnavailable, do_without

_MEMBER: Final = 2
_ADVERTISED: Final = "advertised.listeners"


class Member:
    """A broker of Octavo in a cluster."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self._network: Final = ProxyNetwork()
        own = {name: value for name, value in settings.items() if name != _ADVERTISED}
        for name in ("offsets.topic.num.partitions", "transaction.state.log.num.partitions"):
            own[name] = "1"  # a cluster for tests has them with one
        own["default.replication.factor"] = "1"
        self._cluster: Final = Cluster(folder, self._network, {COORDINATOR: "kafka", _MEMBER: OTHERS}, settings=own)
        self._node: Final = self._cluster.brokers[_MEMBER]
        self._advertised: Final = settings.get(_ADVERTISED)  # behind which there is nobody before this one has started
        self._has_begun = False

    @property
    def address(self) -> str:
        return self._node.address

    @property
    def addresses(self) -> Sequence[str]:
        return [each.address for each in self._cluster.brokers.values()]

    @property
    def folder(self) -> Path:
        return self._node.data

    def start(self) -> None:
        if self._has_begun:
            self._node.start()
            return
        self._has_begun = True
        self._cluster.__enter__()
        client = Asking(self._cluster.brokers[COORDINATOR].address)
        configs = [{"name": "cordoned.log.dirs", "config_operation": 0, "value": "*"}]
        resource = {"resource_type": 4, "resource_name": str(COORDINATOR), "configs": configs}
        content = {"resources": [resource], "validate_only": False}
        assert not client.answer(Question(keys.INCREMENTAL_ALTER_CONFIGS, 1, content)).responses[0].error_code
        probe = {"name": "probe", "num_partitions": 1, "replication_factor": 2, "assignments": [], "configs": []}
        on_both = Question(keys.CREATE_TOPICS, 7, {"topics": [probe], "timeout_ms": 5000, "validate_only": True})
        wait_until(lambda: bool(client.answer(on_both).topics[0].error_code), "the directory is not cordoned")
        client.close()
        if self._advertised is not None:
            self._node.stop()
            self._node.advertise(self._advertised)
            self._node.start()

    def kill(self) -> None:
        self._node.kill()

    def stop(self) -> None:
        self._cluster.__exit__(None, None, None)
        self._network.close()


@pytest.fixture(scope="module")
def member(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connections]:
    with Brokers(Member, tmp_path_factory.mktemp("member")) as brokers, Connections(brokers) as connections:
        yield connections


@pytest.mark.soak
@pytest.mark.parametrize("cell", [cell for cell in CELLS if not cell.fails_on_kafka], ids=str)
def test_the_same_is_true_of_a_member_of_a_cluster(cell: Cell, member: Connections) -> None:
    try:
        member.run(cell, everything_is_built=True)
    except (KafkaUnavailable, ClientUnavailable) as reason:
        do_without(reason)
