"""What goes wrong under a reader: damage, deletion, compaction, truncation."""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path

import pyarrow as pa
import pytest

from octavo.errors import BadDirectory, CorruptFile, DataLoss
from octavo.log import DataDirectory
from octavo.log.watched.watched_log import WatchedLog
from octavo.records import BatchBuilder, read_batches
from octavo.spark.partitions import Replica
from tests.unit.spark.queries import offsets, plan, read_tasks
from tests.unit.spark.topics import SMALL, TIME_MS, batch, write_segment, write_topic

FIRST = "00000000000000000000.log"


def damage(path: Path, number: int, *, at: int = 70) -> tuple[int, int]:
    """Change a byte of the batch of that number; its position and size."""
    data = bytearray(path.read_bytes())
    found = list(read_batches(bytes(data)))[number]
    data[found.position + at] ^= 0xFF
    path.write_bytes(data)
    return found.position, found.size


def test_damage_fails_a_query_and_says_where(tmp_path: Path) -> None:
    write_topic(tmp_path, batches=20)
    position, _ = damage(tmp_path / "events-0" / FIRST, 3)
    with pytest.raises(CorruptFile) as failed:
        offsets(tmp_path)
    assert str(failed.value).startswith(f"{tmp_path}/events-0/{FIRST}: at byte {position}: checksum is ")


@pytest.mark.parametrize("at", [70, 17, 8, 11])  # in a record, the checksum, the length: small, and large
@pytest.mark.parametrize("size", ["600", "1000000"])
def test_damage_can_be_skipped_or_put_aside(
    tmp_path: Path, at: int, size: str, caplog: pytest.LogCaptureFixture
) -> None:
    log, aside = tmp_path / "log", tmp_path / "aside"
    log.mkdir()
    write_topic(log, batches=20)
    path = log / "events-0" / FIRST
    position, batch_size = damage(path, 2, at=at)
    expected = [offset for offset in range(100) if not 10 <= offset < 15]
    assert offsets(log, onCorruption="skip", maxBytesPerPartition=size) == expected
    (warning, total) = caplog.messages
    assert warning.startswith(f"{path}: {batch_size} bytes at byte {position} are left out: ")
    assert total == f"1 damaged places were left out, {batch_size} bytes in all"
    options = {"onCorruption": "quarantine", "quarantinePath": str(aside), "maxBytesPerPartition": size}
    assert offsets(log, **options) == offsets(log, **options) == expected
    (told,) = aside.glob("*.json")
    account = json.loads(told.read_text())
    assert (account["topic"], account["partition"], account["file"]) == ("events", 0, str(path))
    assert (account["position"], account["size"]) == (position, batch_size)
    kept = (aside / account["bytes"]).read_bytes()
    assert kept == path.read_bytes()[position : position + batch_size]


LENGTH = [8, 9, 10, 11]  # bytes of it: negative, beyond the file, and into another batch


@pytest.mark.parametrize("at", LENGTH)
@pytest.mark.parametrize("size", ["1500", "1000000"])
def test_damage_before_a_range_of_offsets_is_no_matter_to_it(tmp_path: Path, at: int, size: str) -> None:
    write_segment(tmp_path, batches=200)
    without_index(tmp_path)
    damage(tmp_path / "events-0" / FIRST, 20, at=at)
    for first in (105, 140):
        limits = {
            "startingOffsets": json.dumps({"events": {"0": first}}),
            "endingOffsets": '{"events":{"0":261}}',
        }
        assert offsets(tmp_path, maxBytesPerPartition=size, **limits) == list(range(first, 261))


@pytest.mark.parametrize("at", LENGTH)
@pytest.mark.parametrize("size", ["1500", "1000000"])
@pytest.mark.parametrize("index", [True, False])
def test_damage_in_a_range_of_offsets_hides_nothing_and_brings_nothing_from_beyond_it(
    tmp_path: Path, at: int, size: str, index: bool
) -> None:
    write_segment(tmp_path)
    if not index:
        without_index(tmp_path)
    position, _ = damage(tmp_path / "events-0" / FIRST, 20, at=at)
    for first, end in ((0, 102), (0, 106), (102, 131), (98, 131), (0, 305)):
        options = {
            "startingOffsets": json.dumps({"events": {"0": first}}),
            "endingOffsets": json.dumps({"events": {"0": end}}),
            "maxBytesPerPartition": size,
        }
        left = [offset for offset in range(first, end) if not 100 <= offset < 105]
        assert offsets(tmp_path, onCorruption="skip", **options) == left
        with pytest.raises(CorruptFile, match=f": at byte {position}: "):
            offsets(tmp_path, **options)


def test_a_wrong_length_that_leads_into_a_later_batch_hides_nothing(tmp_path: Path) -> None:
    write_segment(tmp_path)
    without_index(tmp_path)
    path = tmp_path / "events-0" / FIRST
    data = bytearray(path.read_bytes())
    wrong, *_, later = list(read_batches(bytes(data)))[21:25]
    data[wrong.position + 8 : wrong.position + 12] = (later.position + 7 - wrong.position).to_bytes(4, "big")
    path.write_bytes(data)
    limits = {"startingOffsets": '{"events":{"0":112}}', "endingOffsets": '{"events":{"0":131}}'}
    assert offsets(tmp_path, **limits) == list(range(112, 131))


def test_damage_is_told_once_however_many_tasks_are_asked_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_segment(tmp_path)
    position, size = damage(tmp_path / "events-0" / FIRST, 20)
    options = {"onCorruption": "skip", "minPartitions": "17"}
    assert offsets(tmp_path, **options) == [offset for offset in range(305) if not 100 <= offset < 105]
    (warning,) = [message for message in caplog.messages if "are left out: " in message]
    assert f"{size} bytes at byte {position} are left out: checksum is " in warning


def test_what_was_left_out_is_counted_also_where_nobody_reads_to_the_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_topic(tmp_path, batches=20)
    _, size = damage(tmp_path / "events-0" / FIRST, 0)
    reader, (task,), _ = plan(tmp_path, onCorruption="skip")
    rows = reader.read(task)
    assert isinstance(rows, Generator)
    next(rows)
    rows.close()
    assert caplog.messages[-1] == f"1 damaged places were left out, {size} bytes in all"


def without_index(folder: Path) -> None:
    """Remove the indexes of a log."""
    for path in (folder / "events-0").glob("*index"):
        path.unlink()


def test_records_that_break_rules_under_a_right_checksum_are_skipped_too(tmp_path: Path) -> None:
    write_topic(tmp_path, batches=1)
    path = tmp_path / "events-0" / FIRST
    good = path.read_bytes()
    bad = bytearray(good)
    bad[61] = 0x7F  # the first record's length
    from octavo.records.checksum import crc32c

    bad[17:21] = crc32c(bytes(bad[21:])).to_bytes(4, "big")
    path.write_bytes(bytes(bad))
    with (tmp_path / "events-0" / FIRST).open("ab") as file:
        following = bytearray(batch(5))
        following[:8] = (5).to_bytes(8, "big")
        file.write(following)
    (tmp_path / "replication-offset-checkpoint").unlink()
    with pytest.raises(CorruptFile):
        offsets(tmp_path)
    assert offsets(tmp_path, onCorruption="skip") == [5, 6, 7, 8, 9]


def delete_oldest(folder: Path, count: int) -> int:
    """What retention does; where the log begins then."""
    paths = sorted(folder.glob("*.log"))
    for path in paths[:count]:
        for file in folder.glob(f"{path.stem}.*"):
            file.unlink()
    return int(paths[count].stem)


def test_a_segment_deleted_under_a_query_is_lost_data(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_topic(tmp_path)
    strict = plan(tmp_path, maxBytesPerPartition="600")
    lenient = plan(tmp_path, maxBytesPerPartition="600", failOnDataLoss="false")
    start = delete_oldest(tmp_path / "events-0", 3)
    with pytest.raises(DataLoss) as failed:
        read_tasks(*strict)
    assert "set the option failOnDataLoss to false" in str(failed.value)
    assert read_tasks(*lenient).column("offset").to_pylist() == list(range(start, 500))
    assert "are not in the log, or no longer: going on" in caplog.text


def test_a_segment_that_is_open_can_be_read_to_its_end_though_it_is_deleted(tmp_path: Path) -> None:
    write_topic(tmp_path)
    reader, tasks, _ = plan(tmp_path, columns="offset", maxRecordsPerPartition="20")
    batches = reader.read(tasks[0])
    first: pa.RecordBatch = next(batches)
    delete_oldest(tmp_path / "events-0", 1)
    rest: list[pa.RecordBatch] = list(batches)
    assert [offset for each in (first, *rest) for offset in each.column(0).to_pylist()] == list(range(20))


def test_the_whole_partition_deleted_under_a_query_is_lost_data(tmp_path: Path) -> None:
    write_topic(tmp_path, partitions=2, batches=2)
    strict, lenient = plan(tmp_path), plan(tmp_path, failOnDataLoss="false")
    (tmp_path / "events-0").rename(tmp_path / "events-0.0123456789abcdef0123456789abcdef-delete")
    with pytest.raises(DataLoss):
        read_tasks(*strict)
    assert read_tasks(*lenient).column("partition").to_pylist() == [1] * 10


def test_offsets_below_the_log_are_lost_data(tmp_path: Path) -> None:
    write_topic(tmp_path)
    start = delete_oldest(tmp_path / "events-0", 2)
    below = '{"events":{"0":3}}'
    with pytest.raises(DataLoss, match=f"offsets 3 to {start - 1} of events-0 are not in the log"):
        offsets(tmp_path, startingOffsets=below)
    assert offsets(tmp_path, startingOffsets=below, failOnDataLoss="false") == list(range(start, 500))
    assert offsets(tmp_path, startingOffsets='{"events":{"0":-2}}') == list(range(start, 500))
    with pytest.raises(DataLoss, match="offsets 500 to 599 of events-0"):
        offsets(tmp_path, endingOffsets='{"events":{"0":600}}')


def test_compaction_under_a_query_loses_nothing_that_is_in_the_log(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path) as data:
        data.create_topic("events", 1, SMALL | {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"})
        log = data.log("events", 0)
        for number in range(300):
            builder = BatchBuilder()
            builder.append(b"%d" % (number % 10), b"%d" % number * 20, timestamp_ms=TIME_MS + number)
            log.append(builder.build())
        before = plan(tmp_path, end="logEnd", maxBytesPerPartition="600")
        size = log.size
        assert log.compact() is not None
        log.delete_files(2**62)
        assert log.size < size
        table = read_tasks(*before)
        assert table.column("offset").to_pylist() == [record.offset for record in log.reader().records()]
        assert offsets(tmp_path, end="logEnd") == table.column("offset").to_pylist()


@pytest.mark.parametrize("number", [0, 2])
def test_a_segment_whose_compaction_was_not_finished_is_read_by_the_name_it_has(tmp_path: Path, number: int) -> None:
    write_topic(tmp_path)
    before = plan(tmp_path, maxBytesPerPartition="600")
    path = sorted((tmp_path / "events-0").glob("*.log"))[number]
    path.rename(path.with_name(path.name + ".swap"))
    assert read_tasks(*before).column("offset").to_pylist() == list(range(500))
    assert offsets(tmp_path, startingOffsets="earliest") == list(range(500))


def test_another_file_of_the_same_inode_number_is_not_read_by_the_positions_of_the_first(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for folder, size in ((old, 40), (new, 60)):
        folder.mkdir()
        write_segment(folder, size=size)
    before = plan(old, maxBytesPerPartition="600")
    path = old / "events-0" / FIRST
    inode = path.stat().st_ino
    path.write_bytes((new / "events-0" / FIRST).read_bytes())
    assert path.stat().st_ino == inode
    table = read_tasks(*before)
    assert table.column("offset").to_pylist() == list(range(305))
    assert table.column("value")[1].as_py() == b"1" * 60


def test_a_segment_deleted_while_it_is_looked_for_anew_is_lost_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_topic(tmp_path)
    planned = plan(tmp_path, failOnDataLoss="false", startingOffsets='{"events":{"0":3}}')
    path = tmp_path / "events-0" / FIRST
    path.rename(path.with_name("aside"))  # so that it is looked for anew,
    opened = Replica.open

    def open_and_delete(replica: Replica) -> WatchedLog:
        path.with_name("aside").rename(path)
        log = opened(replica)
        delete_oldest(tmp_path / "events-0", 1)  # and gone when its offsets are
        monkeypatch.setattr(Replica, "open", opened)
        return log

    monkeypatch.setattr(Replica, "open", open_and_delete)
    start = int(sorted(tmp_path.glob("events-0/*.log"))[0].stem)
    assert start > 3
    assert read_tasks(*planned).column("offset").to_pylist() == list(range(start, 500))


def test_a_folder_that_cannot_be_read_is_not_taken_for_one_that_is_gone(tmp_path: Path) -> None:
    write_topic(tmp_path)
    planned = plan(tmp_path, failOnDataLoss="false")
    delete_oldest(tmp_path / "events-0", 1)
    (tmp_path / "replication-offset-checkpoint").write_text("x")
    with pytest.raises(BadDirectory, match="replication-offset-checkpoint"):
        read_tasks(*planned)


def test_a_file_that_was_cut_since_a_query_was_planned_is_lost_data(tmp_path: Path) -> None:
    write_topic(tmp_path, batches=20)
    planned = plan(tmp_path)
    path = sorted(tmp_path.glob("events-0/*.log"))[-1]
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataLoss, match="offsets 95 to 99 of events-0"):
        read_tasks(*planned)


def test_a_file_that_is_cut_while_it_is_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("octavo.spark.task_reader._WINDOW", 1024)
    monkeypatch.setattr("octavo.spark.joined._FEW_ROWS", 1)
    write_segment(tmp_path)
    reader, tasks, _ = plan(tmp_path)
    rows = iter(reader.read(tasks[0]))
    next(rows)
    os.truncate(tmp_path / "events-0" / FIRST, 1024)
    with pytest.raises((BadDirectory, CorruptFile), match=FIRST):
        list(rows)
