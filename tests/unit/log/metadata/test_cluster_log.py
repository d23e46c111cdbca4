"""Snapshots, segments, and what is missing between them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import pytest

from octavo.errors import BadDirectory, CorruptFile
from octavo.log.metadata.cluster_log import SnapshotId, has_cluster_log, read_cluster_log
from octavo.log.storage import DISK
from octavo.records import BatchBuilder
from octavo.records.control import SnapshotFooter, SnapshotHeader, control_batch
from octavo.schemas.metadata.nodes import FeatureLevelRecord
from octavo.schemas.metadata.record import MetadataRecord
from octavo.schemas.metadata.serde import write_metadata
from octavo.schemas.metadata.topics import TopicRecord


def topic(number: int) -> TopicRecord:
    return TopicRecord(name=f"t{number}", topic_id=UUID(int=1000 + number))


def batch(base_offset: int, *records: MetadataRecord, leader_epoch: int = 1) -> bytes:
    builder = BatchBuilder(base_offset=base_offset, leader_epoch=leader_epoch)
    for record in records:
        builder.append(None, write_metadata(record), timestamp_ms=0)
    return builder.build()


def write_snapshot(folder: Path, offset: int, records: Sequence[MetadataRecord], *, epoch: int = 1) -> Path:
    header = control_batch([SnapshotHeader(last_contained_log_timestamp_ms=0)], timestamp_ms=0, leader_epoch=epoch)
    footer = control_batch([SnapshotFooter()], base_offset=len(records) + 1, timestamp_ms=0, leader_epoch=epoch)
    path = folder / SnapshotId(offset, epoch).file_name
    path.write_bytes(header + batch(1, *records, leader_epoch=epoch) + footer)
    return path


def write_segment(folder: Path, base_offset: int, data: bytes) -> Path:
    path = folder / f"{base_offset:020d}.log"
    path.write_bytes(data)
    return path


def names(folder: Path) -> list[str]:
    return list(read_cluster_log(DISK, folder).image.topics())


def test_the_newest_snapshot_and_what_is_behind_it(tmp_path: Path) -> None:
    write_snapshot(tmp_path, 2, [topic(0)])
    write_snapshot(tmp_path, 4, [topic(1), topic(3)], epoch=3)  # topic 0 was deleted, topic 1 and 3 made
    (tmp_path / "00000000000000000009-0000000003.checkpoint.part").write_bytes(b"not yet")
    (tmp_path / "00000000000000000001-0000000001.checkpoint.deleted").write_bytes(b"no more")
    write_segment(tmp_path, 0, batch(0, topic(0), topic(2)))
    write_segment(tmp_path, 2, batch(2, topic(1)) + batch(3, topic(3), topic(4)) + batch(5, topic(5), leader_epoch=4))
    log = read_cluster_log(DISK, tmp_path)
    assert list(log.image.topics()) == ["t1", "t3", "t4", "t5"]
    assert (log.next_offset, log.leader_epoch) == (6, 4)


def test_what_is_added_goes_into_the_last_segment(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, batch(0, topic(0)))
    last = write_segment(tmp_path, 1, batch(1, topic(1), leader_epoch=5))
    log = read_cluster_log(DISK, tmp_path)
    log.append([topic(2)], timestamp_ms=7)
    assert last.read_bytes() == batch(1, topic(1), leader_epoch=5) + _at(7, batch_of=topic(2), base_offset=2)
    assert names(tmp_path) == ["t0", "t1", "t2"]


def _at(timestamp_ms: int, *, batch_of: MetadataRecord, base_offset: int) -> bytes:
    builder = BatchBuilder(base_offset=base_offset, leader_epoch=5)
    builder.append(None, write_metadata(batch_of), timestamp_ms=timestamp_ms)
    return builder.build()


def test_a_snapshot_without_a_log_is_added_to(tmp_path: Path) -> None:
    write_snapshot(tmp_path, 4, [topic(0)], epoch=2)
    log = read_cluster_log(DISK, tmp_path)
    log.append([topic(1)], timestamp_ms=0)
    assert (tmp_path / "00000000000000000004.log").read_bytes() == batch(4, topic(1), leader_epoch=2)
    assert names(tmp_path) == ["t0", "t1"]


def test_a_log_that_ends_before_its_snapshot_is_read_but_not_added_to(tmp_path: Path) -> None:
    write_snapshot(tmp_path, 9, [topic(7)])
    segment = write_segment(tmp_path, 0, batch(0, topic(0)))
    log = read_cluster_log(DISK, tmp_path)
    assert list(log.image.topics()) == ["t7"]
    with pytest.raises(BadDirectory, match="let Kafka start on it once"):
        log.append([topic(1)], timestamp_ms=0)
    assert segment.read_bytes() == batch(0, topic(0))


def test_a_log_whose_beginning_is_missing_is_told(tmp_path: Path) -> None:
    write_segment(tmp_path, 5, batch(5, topic(0)))
    with pytest.raises(BadDirectory, match="no snapshot goes as far as offset 5"):
        read_cluster_log(DISK, tmp_path)


def test_a_segment_that_is_missing_in_the_middle_is_told(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, batch(0, topic(0)))
    write_segment(tmp_path, 2, batch(2, topic(2)))
    with pytest.raises(BadDirectory, match="offsets 1 to 1 of the log are missing"):
        read_cluster_log(DISK, tmp_path)


def test_damage_in_a_segment_that_is_not_the_last_is_told(tmp_path: Path) -> None:
    first = write_segment(tmp_path, 0, batch(0, topic(0)))
    write_segment(tmp_path, 1, batch(1, topic(1)))
    first.write_bytes(first.read_bytes()[:-1])
    with pytest.raises(CorruptFile, match="the bytes end inside a batch"):
        read_cluster_log(DISK, tmp_path)


def test_a_snapshot_that_is_not_whole_is_told(tmp_path: Path) -> None:
    path = write_snapshot(tmp_path, 3, [topic(0)])
    whole = path.read_bytes()
    for size in (0, 50, len(whole) - 75, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(CorruptFile, match="no footer"):
            read_cluster_log(DISK, tmp_path)
    path.write_bytes(whole[:100] + b"\xff" + whole[101:])
    with pytest.raises(CorruptFile, match="checksum"):
        read_cluster_log(DISK, tmp_path)


def test_a_folder_that_was_only_formatted_has_no_log(tmp_path: Path) -> None:
    assert not has_cluster_log(tmp_path / "missing")
    write_snapshot(tmp_path, 0, [FeatureLevelRecord(name="a", feature_level=1)], epoch=0)
    assert not has_cluster_log(tmp_path)
    write_segment(tmp_path, 0, b"")
    assert has_cluster_log(tmp_path)
