"""Maps of the files beside a segment."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.inspect import Field, explain_file
from octavo.log import DataDirectory, Producer
from octavo.log.producer_state.snapshot import write_snapshot
from octavo.log.producer_state.states import ProducerEntry, RememberedBatch
from octavo.log.storage import DISK
from octavo.records import BatchBuilder

BASE = "00000000000000000000"


def leaves(fields: list[Field]) -> list[Field]:
    return [field for field in fields if not field.is_group]


def assert_tiles(fields: list[Field], data: bytes | bytearray) -> None:
    assert b"".join(field.data for field in leaves(fields)) == data
    at = 0
    for field in leaves(fields):
        assert field.position == at
        assert field.meaning
        at += field.size


@pytest.fixture(scope="module")
def partition(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A partition with twenty batches, an index entry for each, and an aborted transaction."""
    folder = tmp_path_factory.mktemp("data")
    with DataDirectory.open(folder) as data:
        data.create_topic(
            "events",
            1,
            {"index.interval.bytes": "0", "segment.ms": str(2**62), "message.timestamp.after.max.ms": str(2**62)},
        )
        with Producer(data, {"transactional.id": "t"}) as producer:
            producer.init_transactions()
            producer.begin_transaction()
            producer.send("events", b"v", partition=0, timestamp_ms=1_700_000_000_000 - 1)
            producer.flush()  # otherwise there would be nothing to abort
            producer.abort_transaction()
        for number in range(20):
            builder = BatchBuilder()
            builder.append(b"k", b"v", timestamp_ms=4_102_444_800_000 + number)
            data.log("events", 0).append(builder.build())
    return folder / "events-0"


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex"])
def test_every_byte_of_an_index_has_a_field(partition: Path, suffix: str) -> None:
    path = partition / (BASE + suffix)
    found = explain_file(path)
    assert found.problems == []
    assert len(found.fields) > 2
    assert_tiles(found.fields, path.read_bytes())


def test_the_checkpoints_and_properties_are_mapped_line_by_line(partition: Path) -> None:
    for path in (
        partition / "leader-epoch-checkpoint",
        partition / "partition.metadata",
        partition.parent / "recovery-point-offset-checkpoint",
        partition.parent / "meta.properties",
    ):
        found = explain_file(path)
        assert found.problems == []
        assert_tiles(found.fields, path.read_bytes())
    lines = explain_file(partition / "leader-epoch-checkpoint").fields
    assert [field.name for field in lines] == ["version", "count", "epoch 0"]
    assert lines[2].value == "0 0"


def test_an_entry_is_found_by_offset_and_by_position(partition: Path) -> None:
    index = partition / (BASE + ".index")
    found = explain_file(index, offset=12, max_records=1)
    assert [field.name for field in found.fields if field.is_group] == ["entry 11"]
    assert [field.value for field in found.fields if field.name == "relative_offset"] == ["12 (offset 12)"]
    assert_tiles(found.fields, index.read_bytes())
    at = explain_file(index, position=8 * 5 + 3, max_records=2)
    assert [field.name for field in at.fields if field.is_group] == ["entry 5", "entry 6"]
    times = explain_file(partition / (BASE + ".timeindex"), offset=12, max_records=1)
    assert "4102444800010 (2100-01-01 00:00:00.010)" in [field.value for field in times.fields]


def test_room_set_aside_and_a_torn_entry_are_told(partition: Path, tmp_path: Path) -> None:
    data = (partition / (BASE + ".index")).read_bytes()
    path = tmp_path / (BASE + ".index")
    path.write_bytes(data + bytes(80) + b"\0\0\0")
    found = explain_file(path)
    assert [(field.name, field.value, field.problem) for field in found.fields[-2:]] == [
        ("zeros", "10 entries of zeros", None),
        ("rest", "", "the file ends inside an entry of 8 bytes"),
    ]
    assert_tiles(found.fields, path.read_bytes())
    path.write_bytes(data[8:16] + data[:8])
    assert [field.name for field in explain_file(path).problems] == ["entry 1"]


def test_a_snapshot_of_producers_is_mapped_and_its_checksum_computed(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000046.snapshot"
    entries = {
        7: ProducerEntry(2, 0, 1_700_000_005_000, 44, RememberedBatch(11, 45, 1, 1_700_000_005_000)),
        8: ProducerEntry(0, 3, 1_700_000_006_000),
    }
    write_snapshot(DISK, path, entries)
    found = explain_file(path)
    assert found.problems == []
    said = {field.name: field.value for field in reversed(found.fields)}
    assert said["crc"].endswith("(right)")
    assert (said["producer_id"], said["txn_first_offset"], said["entry_count"]) == ("7", "44", "2")
    data = bytearray(path.read_bytes())
    assert_tiles(found.fields, data)
    data[-1] ^= 1
    path.write_bytes(data)
    assert [field.name for field in explain_file(path).problems] == ["crc"]
    for size in range(len(data)):
        path.write_bytes(data[:size])
        cut = explain_file(path)
        assert cut.problems
        assert_tiles(cut.fields, data[:size])


def test_a_count_that_is_not_that_of_the_lines_is_told(tmp_path: Path) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_bytes(b"0\n3\n0 0\n")
    assert [(field.name, field.problem) for field in explain_file(path).problems] == [("count", "1 lines follow")]


def test_few_of_many_lines_are_mapped(tmp_path: Path) -> None:
    path = tmp_path / "recovery-point-offset-checkpoint"
    path.write_bytes(b"0\n50\n" + b"".join(b"events %d 1\n" % number for number in range(50)))
    found = explain_file(path, max_records=4)
    assert [field.name for field in found.fields] == ["version", "count", "offset 0", "offset 1", "lines"]
    assert_tiles(found.fields, path.read_bytes())
