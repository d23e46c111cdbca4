"""The directories of a real cluster of two nodes: read, refused to be written, and left as they were."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.errors import OthersDecide
from octavo.log import DataDirectory, Isolation, Log
from octavo.log.metadata import handover
from tests.kafka.broker import Broker
from tests.kafka.client import OLD_RESOURCES, KafkaAdminClient
from tests.kafka.conftest import NewBroker
from tests.kafka.test_metadata import contents, produce

pytestmark = OLD_RESOURCES

VALUES = [b"%d" % number for number in range(20)]


def make_cluster(root: Path, new_broker: NewBroker) -> tuple[Broker, Broker]:
    """A node that is broker and controller, and one that is a broker only."""
    one = new_broker(root / "one", settings={"min.insync.replicas": "1"})
    two = new_broker(root / "two")
    two.take_part_in(one, node_id=2)
    for broker in (one, two):
        broker.format()
        broker.start()
    return one, two


def test_the_replicas_of_a_cluster_are_read_but_not_written_to_and_opening_them_changes_nothing(
    tmp_path: Path, new_broker: NewBroker
) -> None:
    one, two = make_cluster(tmp_path, new_broker)
    admin = KafkaAdminClient(bootstrap_servers=one.address)
    admin.create_topics({"orders": {"num_partitions": 1, "replication_factor": 2}}, wait_for_metadata=True)
    admin.close()
    produce(one, "orders", 0, *VALUES)
    two.stop()
    one.stop()
    for broker, reason in ((one, "other brokers: 2"), (two, "not node 2 but the controllers 1 decide")):
        [folder] = broker.folders
        before = contents(folder)
        with pytest.raises(OthersDecide, match=reason):
            DataDirectory.open(folder)
        with pytest.raises(OthersDecide, match=reason):
            Log.open(folder / "orders-0")
        with pytest.raises(OthersDecide, match=reason):
            handover([folder])
        with DataDirectory.open(folder, read_only=True) as watched:
            found = watched.log("orders", 0).reader(isolation=Isolation.LOG_END).records()
            assert [record.value for record in found] == VALUES
        with DataDirectory.open(folder, even_if_replicated=True) as data:
            assert data.log("orders", 0).end_offset == len(VALUES)
        assert contents(folder) == before
