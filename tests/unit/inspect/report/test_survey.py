"""The numbers of a partition are those of its batches."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from octavo.errors import BadDirectory, Unreadable
from octavo.inspect.kinds import open_regular
from octavo.inspect.report import survey
from octavo.inspect.report.gathering import find_partitions, gather
from octavo.inspect.report.summary import PartitionSummary, SegmentSummary, topics_of
from octavo.inspect.report.survey import _list, survey_partition
from octavo.log.names import TopicPartition, file_name
from octavo.log.storage import File
from octavo.records import BatchBuilder, Codec, read_batches
from tests.golden import files

TIME = 1_700_000_000_000


def batch(offset: int, codec: Codec = Codec.NONE, count: int = 3, magic: int = 2) -> bytes:
    builder = BatchBuilder(codec=codec, base_offset=offset, magic=magic)
    for number in range(count):
        builder.append(b"key", b"value " * 20, timestamp_ms=TIME + 1000 * (offset + number))
    return builder.build()


def write(folder: Path, segments: dict[int, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for base_offset, data in segments.items():
        (folder / file_name(base_offset, ".log")).write_bytes(data)
    return folder


def test_the_numbers_are_those_of_the_batches(tmp_path: Path) -> None:
    segments = {
        0: batch(0, Codec.ZSTD) + batch(3, Codec.LZ4, 40),
        43: batch(43) + batch(46, Codec.ZSTD, 1),
    }
    found = survey_partition(write(tmp_path / "events-0", segments), verify=False)
    batches = [each for data in segments.values() for each in read_batches(data)]
    assert found.failure is None
    assert (found.folder, found.partition) == ("events-0", TopicPartition("events", 0))
    assert (found.start_offset, found.end_offset) == (0, 47)
    assert (found.batches, found.records) == (4, 47)
    assert (found.first_ms, found.last_ms) == (TIME, TIME + 46_000)
    assert found.codec_bytes == {
        "zstd": batches[0].size + batches[3].size,
        "lz4": batches[1].size,
        "none": batches[2].size,
    }
    assert found.batch_bytes == sum(each.size for each in batches)
    assert found.outside_batches == 0
    assert sum(found.batch_sizes) == 4
    assert found.batch_records[0] == 1  # of one record
    assert found.batch_records[1] == 2  # of two or three
    assert found.batch_records[5] == 1  # of 32 to 63
    assert found.segments == [
        SegmentSummary(0, len(segments[0]), TIME, TIME + 42_000),
        SegmentSummary(43, len(segments[43]), TIME + 43_000, TIME + 46_000),
    ]
    assert found.ratio is not None
    assert found.ratio > 1


@pytest.mark.parametrize("name", files.names())
def test_batches_of_all_formats_are_counted_as_kafka_counts_them(name: str, tmp_path: Path) -> None:
    golden = files.load(name)
    found = survey_partition(write(tmp_path / "events-0", {0: golden.data}), verify=False)
    batches = list(read_batches(golden.data))
    assert found.batches == len(batches)
    assert found.batch_bytes == sum(each.size for each in batches)
    assert found.end_offset == batches[-1].last_offset + 1
    if all(each.magic == 2 or not each.is_compressed for each in batches):
        assert found.records == len(golden.records)


@pytest.mark.parametrize("magic", [0, 1])
def test_compressed_messages_are_counted_by_their_offsets(magic: int, tmp_path: Path) -> None:
    data = batch(0, Codec.GZIP, 5, magic) + batch(5, Codec.GZIP, 7, magic)
    found = survey_partition(write(tmp_path / "events-0", {0: data}), verify=False)
    assert found.records in (8, 12)  # the first offset of the first one is inside it
    assert found.ratio is not None
    assert found.ratio > 1


def test_damage_is_passed_over_and_told(tmp_path: Path) -> None:
    parts = [batch(0), batch(3), batch(6)]
    data = bytearray(b"".join(parts))
    data[len(parts[0]) + 8 : len(parts[0]) + 12] = b"\xff\xff\xff\xff"
    folder = write(tmp_path / "events-0", {0: bytes(data)})
    found = survey_partition(folder, verify=True)
    assert (found.batches, found.outside_batches) == (2, len(parts[1]))
    assert found.end_offset == 9
    assert found.problem_count == len(found.problems) > 0
    assert found.problems[0].file == "events-0/00000000000000000000.log"
    assert found.problems[0].position == len(parts[0])
    assert found.problems[0].means
    assert survey_partition(folder, verify=False).problem_count == 0


def test_a_partition_that_was_deleted_meanwhile_is_left_out(tmp_path: Path) -> None:
    for number in range(2):
        write(tmp_path / f"events-{number}", {0: batch(0)})
    partitions = find_partitions(tmp_path)
    shutil.rmtree(tmp_path / "events-0")
    for verify in (False, True):
        found = gather(tmp_path, partitions, verify=verify)
        assert [each.folder for each in found.partitions] == ["events-1"]
        assert found.partitions[0].failure is None


def test_a_segment_that_was_deleted_meanwhile_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path / "events-0", {0: batch(0), 3: batch(3)})

    def listed(path: Path, summary: PartitionSummary) -> list[tuple[Path, int]]:
        found = _list(path, summary)
        (folder / file_name(0, ".log")).unlink()
        return found

    monkeypatch.setattr(survey, "_list", listed)
    found = survey_partition(folder, verify=False)
    assert (found.failure, found.batches) == (None, 1)


def test_a_folder_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "events-0").write_bytes(b"")
    found = survey_partition(tmp_path / "events-0", verify=False)
    assert "Not a directory" in (found.failure or "")
    assert not found.is_gone


def test_what_a_segment_that_cannot_be_read_hides_is_said_and_the_others_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path / "events-0", {0: batch(0), 3: batch(3)})

    def refused(path: Path) -> File:
        if path.name == file_name(0, ".log"):
            raise Unreadable(path, "Permission denied")
        return open_regular(path)

    monkeypatch.setattr(survey, "open_regular", refused)
    found = survey_partition(folder, verify=False)
    assert found.failure == f"{folder / file_name(0, '.log')}: cannot be read: Permission denied"
    assert found.batches == 1


def test_holes_take_no_room_on_the_disk(tmp_path: Path) -> None:
    folder = write(tmp_path / "events-0", {0: batch(0)})
    full = survey_partition(folder, verify=False)
    os.truncate(folder / file_name(0, ".log"), 64 << 20)
    found = survey_partition(folder, verify=False)
    assert len(batch(0)) == full.disk_size <= found.disk_size <= 64 << 10
    assert found.outside_batches == (64 << 20) - len(batch(0))


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    folder = write(tmp_path / "events-0", {0: batch(0)})
    (folder / file_name(3, ".log")).mkdir()
    (folder / file_name(4, ".log")).symlink_to("/dev/zero")
    assert survey_partition(folder, verify=False).batches == 1


def test_many_segments_are_put_together(tmp_path: Path) -> None:
    summary = PartitionSummary("events-0", TopicPartition("events", 0))
    for number in range(5_000):
        summary.add_segment(SegmentSummary(number, 10, TIME + number, TIME + number))
    assert summary.segment_count == 5_000
    assert len(summary.segments) <= 256
    assert sum(each.segments for each in summary.segments) == 5_000
    assert sum(each.size for each in summary.segments) == 50_000
    assert (summary.segments[0].first_ms, summary.segments[-1].last_ms) == (TIME, TIME + 4_999)


@pytest.mark.parametrize("jobs", [1, 2])
def test_all_partitions_are_gathered_and_bytes_are_told(tmp_path: Path, jobs: int) -> None:
    for number in range(3):
        write(tmp_path / f"events-{number}", {0: batch(0, Codec.LZ4, 10 * (number + 1))})
    write(tmp_path / "orders-0.0123456789abcdef0123456789abcdef-delete", {0: batch(0)})
    partitions = find_partitions(tmp_path)
    told: list[int] = []
    found = gather(tmp_path, partitions, verify=False, jobs=jobs, on_bytes=told.append)
    assert [(each.folder, each.records) for each in found.partitions][:3] == [
        ("events-0", 10),
        ("events-1", 20),
        ("events-2", 30),
    ]
    assert found.partitions[3].partition is None
    assert sum(told) == sum(task.size for task in partitions)
    (topic,) = topics_of(found.partitions)
    assert (topic.name, topic.total("records")) == ("events", 60)


def test_the_folder_of_a_partition_is_a_report_of_its_own(tmp_path: Path) -> None:
    folder = write(tmp_path / "events-0", {0: batch(0)})
    assert [task.path for task in find_partitions(folder)] == [folder]


def test_what_is_no_data_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path, tmp_path / "file", tmp_path / "missing"):
        with pytest.raises(BadDirectory):
            find_partitions(path)
