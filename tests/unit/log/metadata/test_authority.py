"""Directories of a node that is not the only one of its cluster: others decide on what is in them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from octavo.errors import OthersDecide
from octavo.log import Background, DataDirectory, Isolation, Log, Producer
from octavo.log.files.meta_properties import MetaProperties, write_meta_properties
from octavo.log.files.text_checkpoint import REPLICATION, read_offsets
from octavo.log.metadata import handover
from octavo.log.names import TopicPartition
from octavo.log.storage import DISK
from octavo.schemas.metadata.nodes import UnregisterBrokerRecord
from tests.unit.log.directories import left_as_it_was
from tests.unit.log.logs import make_batch
from tests.unit.log.metadata.forging import add_metadata, add_replicas, add_voters, registered_broker

EVENTS = TopicPartition("events", 0)


def make_directory(folder: Path, records: int = 10) -> Path:
    with DataDirectory.open(folder) as data:
        data.create_topic("events")
        data.log("events", 0).append(make_batch(records))
    return folder


def record_high_watermark(folder: Path, offset: int) -> None:
    (folder / REPLICATION).write_text(f"0\n1\nevents 0 {offset}\n")


def add_another_broker(folder: Path) -> None:
    add_metadata(folder, registered_broker(1), registered_broker(2))


def lose_the_metadata(folder: Path) -> None:
    for path in (folder / "__cluster_metadata-0").iterdir():
        path.unlink()
    (folder / "__cluster_metadata-0").rmdir()


WAYS: dict[str, tuple[Callable[[Path], None], str]] = {
    "several voters": (
        lambda folder: add_voters(folder, 1, 1, 2, 3),
        "not node 1 but the controllers 1, 2, 3 decide on its topics",
    ),
    "another controller": (
        lambda folder: add_voters(folder, 3000, 3000),
        "not node 1 but the controllers 3000 decide on its topics",
    ),
    "several replicas": (
        lambda folder: add_replicas(folder, "events", 1, 2),
        "events-0 has replicas on the nodes 1, 2",
    ),
    "another broker": (add_another_broker, "the cluster of node 1 has other brokers: 2"),
    "metadata elsewhere": (lose_the_metadata, r"give the folder of metadata\.log\.dir as well"),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_directory_that_others_decide_on_is_not_opened_to_be_written(tmp_path: Path, way: str) -> None:
    change, message = WAYS[way]
    change(make_directory(tmp_path))
    with left_as_it_was(tmp_path):
        with pytest.raises(OthersDecide, match=message):
            DataDirectory.open(tmp_path)
        with pytest.raises(OthersDecide, match="read_only=True"):
            Log.open(tmp_path / "events-0")
        with pytest.raises(OthersDecide, match=message):
            handover([tmp_path])
        with DataDirectory.open(tmp_path, read_only=True) as watched:
            assert watched.log("events", 0).end_offset == 10
        with Log.open(tmp_path / "events-0", read_only=True) as log:
            assert log.end_offset == 10


@pytest.mark.parametrize("way", WAYS)
def test_opening_such_a_directory_and_closing_it_changes_nothing(tmp_path: Path, way: str) -> None:
    WAYS[way][0](make_directory(tmp_path))
    record_high_watermark(tmp_path, 4)
    mark = tmp_path / ".kafka_cleanshutdown"
    mark.write_text('{"version":0,"brokerEpoch":7}')
    before = contents(tmp_path)
    with DataDirectory.open(tmp_path, even_if_replicated=True):
        pass
    assert contents(tmp_path) == before
    with Log.open(tmp_path / "events-0", even_if_replicated=True):
        pass
    assert contents(tmp_path) == before


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_replica_is_read_up_to_the_recorded_high_watermark_and_appends_do_not_raise_it(tmp_path: Path) -> None:
    add_replicas(make_directory(tmp_path), "events", 1, 2)
    record_high_watermark(tmp_path, 4)
    with DataDirectory.open(tmp_path, even_if_replicated=True) as data:
        log = data.log("events", 0)
        assert (log.high_watermark, log.end_offset) == (4, 10)
        log.append_as_follower(log.read(0, 1 << 20, isolation=Isolation.LOG_END).records[:0])
        with Producer(data, enable_idempotence=False) as producer:
            producer.send("events", b"repaired", partition=0)
        assert (log.high_watermark, log.end_offset) == (4, 11)
        Background(data, initial_delay_ms=0).run_once()
    assert read_offsets(DISK, tmp_path / REPLICATION) == {EVENTS: 4}
    with DataDirectory.open(tmp_path, read_only=True) as watched:
        assert len(list(watched.log("events", 0).reader().records())) == 0  # the batch goes on behind it


def test_where_no_high_watermark_is_recorded_none_is_made_up_for_a_replica(tmp_path: Path) -> None:
    add_replicas(make_directory(tmp_path), "events", 1, 2)
    (tmp_path / REPLICATION).unlink()
    with DataDirectory.open(tmp_path, even_if_replicated=True) as data:
        assert data.log("events", 0).high_watermark == 0  # as for Kafka
    assert not (tmp_path / REPLICATION).exists()
    with DataDirectory.open(tmp_path, read_only=True) as watched:
        assert watched.log("events", 0).high_watermark == 10


def test_the_only_replica_lets_readers_see_everything_as_kafka_does(tmp_path: Path) -> None:
    record_high_watermark(make_directory(tmp_path), 4)
    with DataDirectory.open(tmp_path) as data:
        assert data.log("events", 0).high_watermark == 10
    assert read_offsets(DISK, tmp_path / REPLICATION) == {EVENTS: 10}


def test_topics_transactions_and_positions_of_a_cluster_are_not_changed(tmp_path: Path) -> None:
    add_another_broker(make_directory(tmp_path))
    before = contents(tmp_path / "__cluster_metadata-0")
    with DataDirectory.open(tmp_path, even_if_replicated=True) as data:
        assert not data.is_in_charge
        for change in (
            lambda: data.create_topic("more"),
            lambda: data.delete_topic("events"),
            lambda: data.set_config("events", {"retention.ms": "1"}),
            lambda: data.coordinator,
        ):
            with pytest.raises(OthersDecide):
                change()
    assert contents(tmp_path / "__cluster_metadata-0") == before


def test_a_partition_that_this_node_is_about_to_get_is_not_made(tmp_path: Path) -> None:
    add_replicas(make_directory(tmp_path), "events", 1, 2)
    for path in (tmp_path / "events-0").iterdir():
        path.unlink()
    (tmp_path / "events-0").rmdir()
    with DataDirectory.open(tmp_path, even_if_replicated=True) as data:
        assert data.logs == []
    assert not (tmp_path / "events-0").exists()


def test_a_cluster_that_has_shrunk_to_one_node_is_written_to_again(tmp_path: Path) -> None:
    add_another_broker(make_directory(tmp_path))
    add_metadata(tmp_path, UnregisterBrokerRecord(broker_id=2, broker_epoch=7))
    with DataDirectory.open(tmp_path) as data:
        data.log("events", 0).append(make_batch())


@pytest.mark.parametrize("zookeeper", [False, True])
def test_a_directory_without_metadata_counts_as_the_only_replica(tmp_path: Path, zookeeper: bool) -> None:
    make_directory(tmp_path)
    lose_the_metadata(tmp_path)
    (tmp_path / "meta.properties").unlink()
    if zookeeper:
        write_meta_properties(DISK, tmp_path, MetaProperties(version=0, cluster_id="abc", node_id=0))
    record_high_watermark(tmp_path, 4)
    with Log.open(tmp_path / "events-0") as log:
        log.append(make_batch())
        assert log.high_watermark == 11
    with DataDirectory.open(tmp_path) as data:
        data.log("events", 0).append(make_batch())


def test_a_directory_id_of_another_disk_does_not_make_it_a_clusters(tmp_path: Path) -> None:
    add_metadata(make_directory(tmp_path), registered_broker(1, UUID(int=12345)))
    with DataDirectory.open(tmp_path) as data:
        data.log("events", 0).append(make_batch())
