"""What goes wrong under a reader: damage, deletion, compaction, truncation."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from octavo.errors import BadDirectory
from octavo.log import DataDirectory
from octavo.log.small_file import CorruptFile
from octavo.records import BatchBuilder, read_batches
from octavo.spark.ranges import DataLoss
from tests.unit.spark.queries import offsets, plan, read_tasks
from tests.unit.spark.topics import SMALL, TIME_MS, batch, write_topic

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


def test_damage_on_the_way_to_an_offset_does_not_keep_a_query_from_being_planned(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path) as data:
        data.create_topic("events", 1, {"retention.ms": "-1"})
        for number in range(20):
            data.log("events", 0).append(batch(number * 5))
    for path in (tmp_path / "events-0").glob("*index"):
        path.unlink()
    damage(tmp_path / "events-0" / FIRST, 2, at=8)
    limits = {"startingOffsets": '{"events":{"0":40}}', "endingOffsets": '{"events":{"0":61}}', "end": "logEnd"}
    (tmp_path / "events-0" / FIRST.replace(".log", ".index")).write_bytes(bytes(8))
    with pytest.raises((CorruptFile, DataLoss)):
        offsets(tmp_path, **limits)


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


def test_a_file_that_is_cut_while_it_is_read_is_told(tmp_path: Path) -> None:
    write_topic(tmp_path, batches=20)
    reader, tasks, schema = plan(tmp_path)
    path = sorted(tmp_path.glob("events-0/*.log"))[1]
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises((DataLoss, BadDirectory, CorruptFile)):
        read_tasks(reader, tasks, schema)
