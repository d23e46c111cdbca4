"""Producer ids that are in partitions from elsewhere are not given out again, neither here nor by Kafka."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from octavo.errors import BadDirectory
from octavo.log import DataDirectory
from octavo.log.metadata import MetadataStore, handover
from octavo.log.storage import DISK
from octavo.records import BatchBuilder
from octavo.records.layout import BATCH_HEADER
from tests.unit.log.directories import left_as_it_was
from tests.unit.log.logs import SMALL, TIME_MS, make_batch


def of_producer(producer_id: int, sequence: int = 0) -> bytes:
    builder = BatchBuilder(producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
    builder.append(None, bytes(200), timestamp_ms=TIME_MS)
    return builder.build()


def next_producer_id(folder: Path) -> int:
    return MetadataStore.open([folder], storage=DISK, read_only=True).image.next_producer_id


def copied(source: Path, target: Path, *partitions: str) -> Path:
    """A directory without metadata, of partitions of another."""
    target.mkdir()
    for partition in partitions:
        shutil.copytree(source / partition, target / partition)
    return target


def written(folder: Path, *producer_ids: int) -> Path:
    """A log in several segments with a batch of each of these producers, the last of them in the last segment."""
    with DataDirectory.open(folder) as data:
        data.create_topic("events", config=SMALL)
        for producer_id in producer_ids:
            data.log("events", 0).append(of_producer(producer_id) if producer_id >= 0 else make_batch())
            data.log("events", 0).roll()
    return folder


@pytest.mark.parametrize("ids", [(7, 3), (3, 7), (7, -1), (0,)])
def test_a_directory_without_metadata_is_handed_over_with_all_ids_taken_that_its_logs_know(
    tmp_path: Path, ids: tuple[int, ...]
) -> None:
    data = copied(written(tmp_path / "from", *ids), tmp_path / "to", "events-0")
    handover([data])
    assert next_producer_id(data) == max(ids) + 1


@pytest.mark.parametrize("lost", ["*.snapshot", "*.log"])
def test_ids_are_found_in_the_data_and_in_snapshots_alone(tmp_path: Path, lost: str) -> None:
    data = copied(written(tmp_path / "from", 7, 3), tmp_path / "to", "events-0")
    for path in (data / "events-0").glob(lost):
        path.unlink()
    handover([data])
    assert next_producer_id(data) == 8


def test_a_copied_partition_that_is_adopted_takes_its_ids_along(tmp_path: Path) -> None:
    with DataDirectory.open(copied(written(tmp_path / "from", 4711), tmp_path / "to", "events-0")) as data:
        data.set_config("events", {"retention.ms": "-1"})
    assert next_producer_id(tmp_path / "to") == 4712


def test_a_copied_partition_of_a_known_topic_takes_its_ids_along(tmp_path: Path) -> None:
    written(tmp_path / "from", 4711)
    written(tmp_path / "to", 1)
    shutil.rmtree(tmp_path / "to" / "events-0")
    shutil.copytree(tmp_path / "from" / "events-0", tmp_path / "to" / "events-0")
    (tmp_path / "to" / "events-0" / "partition.metadata").unlink()
    handover([tmp_path / "to"])
    assert next_producer_id(tmp_path / "to") == 4712


def test_an_id_that_has_written_nothing_is_found_in_the_state_of_transactions(tmp_path: Path) -> None:
    with DataDirectory.open(written(tmp_path / "from", -1)) as data:
        assert [data.coordinator.init_producer_id(f"id {each}").producer_id for each in range(3)] == [0, 1, 2]
    data_folder = copied(tmp_path / "from", tmp_path / "to", "events-0", "__transaction_state-0")
    handover([data_folder])
    assert next_producer_id(data_folder) == 3


def test_what_the_metadata_know_already_is_not_written_again(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path) as data:
        data.create_topic("events")
        data.log("events", 0).append(of_producer(data.coordinator.init_producer_id().producer_id))
    handover([tmp_path])
    assert next_producer_id(tmp_path) == 1000
    with left_as_it_was(tmp_path / "__cluster_metadata-0"):
        handover([tmp_path])
    assert next_producer_id(tmp_path) == 1000


def test_a_damaged_header_takes_no_ids_away_and_those_behind_it_count(tmp_path: Path) -> None:
    data = copied(written(tmp_path / "from", 3), tmp_path / "to", "events-0")
    [first, *_] = sorted((data / "events-0").glob("*.log"))
    damaged = bytearray(of_producer(5))
    damaged[BATCH_HEADER.at("producer_id")] ^= 0x40
    first.write_bytes(bytes(damaged) + bytes(70) + of_producer(6))
    handover([data])
    assert next_producer_id(data) == 7


def test_where_no_ids_are_left_it_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    data = copied(written(tmp_path / "from", 2**63 - 2), tmp_path / "to", "events-0")
    (data / ".lock").touch()
    with left_as_it_was(data), pytest.raises(BadDirectory, match="none to give out"):
        handover([data])
