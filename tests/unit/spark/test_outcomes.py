"""`read_committed` where markers are damaged, gone or elsewhere: what is not known is never taken for committed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from octavo.errors import BadDirectory, CorruptFile, DataLoss
from octavo.log import DataDirectory, Isolation, Log
from octavo.log.names import TopicPartition
from octavo.log.storage import DISK, Storage
from octavo.log.watched.watched_log import WatchedLog
from octavo.records import read_batches
from octavo.spark import task_reader
from octavo.spark.committed import OpenTransactions, filter_for
from octavo.spark.files import Root
from octavo.spark.options import OnCorruption
from octavo.spark.partitions import Replica
from tests.unit.log.transactional import damage, end, write
from tests.unit.spark.queries import offsets, plan, read_tasks
from tests.unit.spark.topics import SMALL, batch

COMMITTED = {"isolation_level": "read_committed"}
PARTITION = TopicPartition("events", 0)
ABORTED = "producer 1 wrote in at offset 0 is not in the log"


def open_topic(data: DataDirectory) -> Log:
    data.create_topic("events", 1, {"retention.ms": "-1"})
    return data.log("events", 0)


def committed_offsets(log: Log) -> list[int]:
    return [record.offset for record in log.reader(isolation=Isolation.READ_COMMITTED).records()]


def write_aborted(folder: Path, *, rolls: bool) -> Path:
    """An aborted record at 0, others, its marker at 16, and others; the first segment."""
    with DataDirectory.open(folder) as data:
        log = open_topic(data)
        write(log, 1)
        for number in range(3):
            log.append(batch(1 + 5 * number))
        end(log, 1, commit=False)
        if rolls:
            log.roll()
        log.append(batch(17))
    return folder / "events-0" / "00000000000000000000.log"


def watch(folder: Path) -> WatchedLog:
    return Replica(PARTITION, Root(str(folder)), folder / "events-0").open()


@pytest.mark.parametrize("rolls", [False, True])
@pytest.mark.parametrize("at", [8, 11])  # of the length: it cannot be, or leads astray
def test_damage_before_a_marker_does_not_make_what_was_aborted_committed(tmp_path: Path, rolls: bool, at: int) -> None:
    path = write_aborted(tmp_path, rolls=rolls)
    position = damage(path, 6, at)
    for limits in ({}, {"endingOffsets": '{"events":{"0":3}}'}):
        with pytest.raises(CorruptFile) as failed:
            offsets(tmp_path, **COMMITTED, **limits)
        assert (failed.value.path, failed.value.position) == (path, position)
    expected = [*range(1, 6), *range(11, 16), *range(17, 22)]
    assert offsets(tmp_path, **COMMITTED, onCorruption="skip") == expected
    assert offsets(tmp_path, **COMMITTED, onCorruption="skip", maxRecordsPerPartition="2") == expected


@pytest.mark.parametrize(("at", "rolls"), [(8, True), (70, True), (70, False)])  # of the length, and in the record
def test_a_transaction_whose_marker_is_damaged_is_left_out_or_fails_a_query(
    tmp_path: Path, at: int, rolls: bool, caplog: pytest.LogCaptureFixture
) -> None:
    path = write_aborted(tmp_path, rolls=rolls)
    position = damage(path, 16, at)
    with pytest.raises(CorruptFile) as failed:
        offsets(tmp_path, **COMMITTED)
    assert (failed.value.path, failed.value.position) == (path, position)
    assert offsets(tmp_path, **COMMITTED, onCorruption="skip") == [*range(1, 16), *range(17, 22)]
    assert f"{path}: " in caplog.text
    assert "are passed over in the search for the ends of transactions" in caplog.text
    assert (f"{ABORTED}: what it wrote from there on is left out" in caplog.text) == (at == 8)


@pytest.mark.parametrize("rolls", [False, True])
def test_another_producers_id_does_not_begin_a_transaction_that_nobody_ends(tmp_path: Path, rolls: bool) -> None:
    path = write_aborted(tmp_path, rolls=rolls)
    position = damage(path, 0, 50)  # the last byte of the id
    with pytest.raises(CorruptFile) as failed:
        offsets(tmp_path, **COMMITTED)
    assert (failed.value.path, failed.value.position) == (path, position)
    assert offsets(tmp_path, **COMMITTED, onCorruption="skip") == [*range(1, 16), *range(17, 22)]


def test_a_batch_that_is_wrongly_called_transactional_begins_none(tmp_path: Path) -> None:
    path = write_aborted(tmp_path, rolls=False)
    position = damage(path, 6, 43)
    data = bytearray(path.read_bytes())
    data[position + 22] |= 0x10
    data[position + 43 : position + 51] = (7).to_bytes(8, "big")
    path.write_bytes(data)
    with pytest.raises(CorruptFile) as failed:
        offsets(tmp_path, **COMMITTED)
    assert (failed.value.path, failed.value.position) == (path, position)
    assert offsets(tmp_path, **COMMITTED, onCorruption="skip") == [*range(1, 6), *range(11, 16), *range(17, 22)]


def test_offsets_that_are_asked_for_and_not_decided_are_lost_data(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path) as data:
        log = open_topic(data)
        log.append(batch(0))
        write(log, 1)
        log.append(batch(6))
    asked = {"endingOffsets": '{"events":{"0":8}}'}
    with pytest.raises(DataLoss, match=r"Offsets 5 to 7 of events-0 are not decided: a transaction is open\."):
        offsets(tmp_path, **COMMITTED, **asked)
    assert offsets(tmp_path, **COMMITTED, **asked, failOnDataLoss="false") == list(range(5))
    assert offsets(tmp_path, **COMMITTED) == list(range(5))


def test_a_transaction_without_a_marker_is_left_out_or_fails_a_query(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write_aborted(tmp_path, rolls=True)
    data = path.read_bytes()
    marker = next(found.position for found in read_batches(data) if found.base_offset == 16)
    path.write_bytes(data[:marker])
    with pytest.raises(BadDirectory, match=ABORTED):
        offsets(tmp_path, **COMMITTED)
    assert offsets(tmp_path, **COMMITTED, onCorruption="skip") == [*range(1, 16), *range(17, 22)]
    assert ABORTED in caplog.text


def test_segments_that_compaction_left_empty_are_passed_in_search_of_a_marker(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path) as data:
        log = open_topic(data)
        write(log, 1)
        log.roll()
        log.append(batch(1))
        log.roll()
        end(log, 1, commit=False)
        log.roll()
        log.append(batch(7))
        log.roll()
    _, empty, marker, *_ = sorted((tmp_path / "events-0").glob("*.log"))
    empty.write_bytes(b"")
    assert offsets(tmp_path, **COMMITTED) == [7, 8, 9, 10, 11]
    marker.write_bytes(b"")
    with pytest.raises(BadDirectory, match=ABORTED):
        offsets(tmp_path, **COMMITTED)


def test_a_marker_is_found_where_files_are_told_apart_by_a_time_that_many_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a bucket to which a log was copied."""
    write_segments(tmp_path)
    status = Storage.status
    monkeypatch.setattr(Storage, "status", lambda storage, path: status(storage, path)._replace(identity=1))
    monkeypatch.setattr(Storage, "identity", lambda storage, file: 1)
    assert offsets(tmp_path, **COMMITTED) == [2, 3, 4, 5, 6, 7]


def write_segments(folder: Path) -> Path:
    """A segment each: an aborted record at 0, its marker, other records."""
    with DataDirectory.open(folder) as data:
        log = open_topic(data)
        write(log, 1)
        log.roll()
        end(log, 1, commit=False)
        log.roll()
        log.append(batch(2))
        log.roll()
        write(log, 1, 1)
        end(log, 1, commit=True)
    return folder / "events-0"


def after_opening(monkeypatch: pytest.MonkeyPatch, act: Any) -> None:
    """Have something happen once a task has opened its file, and before it looks any further."""

    def choose(*arguments: Any) -> Any:
        act()
        return filter_for(*arguments)

    monkeypatch.setattr(task_reader, "filter_for", choose)


@pytest.mark.parametrize("further", [False, True])
def test_segments_may_be_put_together_while_a_marker_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, further: bool
) -> None:
    folder = write_segments(tmp_path)
    files = sorted(folder.glob("*.log"))[: 3 if further else 2]

    def put_together() -> None:
        if files[1].exists():
            (folder / "new").write_bytes(b"".join(file.read_bytes() for file in files))
            (folder / "new").replace(files[0])
            for file in files[1:]:
                file.unlink()

    planned = plan(tmp_path, **COMMITTED, maxRecordsPerPartition="1")
    after_opening(monkeypatch, put_together)
    assert read_tasks(*planned).column("offset").to_pylist() == [2, 3, 4, 5, 6, 7]


def test_a_segment_may_have_its_name_of_a_swap_while_a_marker_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_segments(tmp_path)
    marker = sorted(folder.glob("*.log"))[1]
    planned = plan(tmp_path, **COMMITTED, maxRecordsPerPartition="1")

    def swap() -> None:
        if marker.exists():
            marker.rename(marker.with_name(marker.name + ".swap"))

    after_opening(monkeypatch, swap)
    assert read_tasks(*planned).column("offset").to_pylist() == [2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize("fails", [False, True])
def test_a_marker_that_is_deleted_meanwhile_is_lost_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, everything: bool, fails: bool, caplog: pytest.LogCaptureFixture
) -> None:
    folder = write_segments(tmp_path)

    def delete() -> None:
        for file in folder.iterdir():
            if everything or file.name < "00000000000000000002":
                file.unlink()

    only = {"endingOffsets": '{"events":{"0":1}}', "failOnDataLoss": str(fails), **COMMITTED}
    planned = plan(tmp_path, **only)
    after_opening(monkeypatch, delete)
    if fails:
        with pytest.raises(DataLoss, match="offsets 1 to 1 of events-0 are not in the log"):
            read_tasks(*planned)
        return
    assert read_tasks(*planned).column("offset").to_pylist() == []
    assert f"{ABORTED}: what it wrote from there on is left out" in caplog.text


@pytest.mark.parametrize("at", [50, 22])  # of the producer's id, and the attributes
@pytest.mark.parametrize("rolls", [False, True])
def test_a_wrong_header_does_not_end_the_log_where_it_would_begin_a_transaction(
    tmp_path: Path, at: int, rolls: bool
) -> None:
    path = write_aborted(tmp_path, rolls=rolls)
    data = bytearray(path.read_bytes())
    position = next(found.position for found in read_batches(bytes(data)) if found.base_offset == 6)
    data[position + 22] ^= 0x10
    data[position + 50] ^= at == 50
    data[position + 43 : position + 50] = bytes(7)
    path.write_bytes(data)
    with pytest.raises(CorruptFile) as failed:
        offsets(tmp_path, **COMMITTED)
    assert (failed.value.path, failed.value.position) == (path, position)
    assert offsets(tmp_path, **COMMITTED, onCorruption="skip") == [*range(1, 6), *range(11, 16), *range(17, 22)]


@pytest.mark.parametrize("at", [0, 7, 31])  # the slice in which it happens: of these two, segments before a marker
def test_compaction_under_a_query_shows_nothing_that_was_aborted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    config = SMALL | {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
    with DataDirectory.open(tmp_path) as data:
        data.create_topic("events", 1, config)
        log = data.log("events", 0)
        for number in range(120):
            if number % 3 == 0:
                log.roll()  # segments so small that several are put together
            for producer_id in range(1, 4):
                write(log, producer_id, number, b"%d" % (7 * number % (10 * producer_id)))
                if number % (9 * producer_id) == 8:  # of one producer in the next segments, of another soon
                    end(log, producer_id, commit=(number // 9 + number // 18) % 2 == 0)
        for producer_id in range(1, 4):
            end(log, producer_id, commit=True)
        log.roll()
        before = committed_offsets(log)
        planned = plan(tmp_path, end="logEnd", maxBytesPerPartition="600", **COMMITTED)
        slices = iter(range(10_000))

        def compact() -> None:
            if next(slices) == at:
                assert log.compact() is not None
                log.delete_files(2**62)

        after_opening(monkeypatch, compact)
        found = read_tasks(*planned).column("offset").to_pylist()
        assert next(slices) > at
        assert found == sorted(set(found))
        assert set(committed_offsets(log)) <= set(found) <= set(before)
        assert len(committed_offsets(log)) < len(before) < log.end_offset


def test_what_is_open_at_the_end_of_a_file_that_is_deleted_is_still_read_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_aborted(tmp_path, rolls=True)
    planned = plan(tmp_path, **COMMITTED, endingOffsets='{"events":{"0":3}}')
    after_opening(monkeypatch, path.unlink)
    assert read_tasks(*planned).column("offset").to_pylist() == [1, 2]


def test_planning_begins_with_the_snapshot_of_a_segment_that_is_new(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with DataDirectory.open(tmp_path) as data:
        log = open_topic(data)
        write(log, 1)
        watched, opened = watch(tmp_path), OpenTransactions()
        assert opened.last_stable_offset(DISK, watched, 1) == 0
        end(log, 1, commit=True)
        write(log, 2)
        log.roll()
        log.append(batch(3))
        path = tmp_path / "events-0" / "00000000000000000000.log"
        damage(path, 1, 8)
        watched.refresh()
        assert opened.last_stable_offset(DISK, watched, 8) == 2
        assert caplog.messages == []
        for snapshot in path.parent.glob("*.snapshot"):
            snapshot.unlink()
        with pytest.raises(CorruptFile):
            OpenTransactions().last_stable_offset(DISK, watched, 8)
        lenient = OpenTransactions(OnCorruption.SKIP)
        assert lenient.last_stable_offset(DISK, watched, 8) == 0
        assert "there is no snapshot of producers that can be used: all 2 segments are read" in caplog.text


def test_planning_looks_again_where_less_of_the_log_may_be_read_than_before(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path) as data:
        log = open_topic(data)
        log.append(batch(0))
        write(log, 1)
        log.append(batch(6))
        end(log, 1, commit=True)
        opened = OpenTransactions()
        assert opened.last_stable_offset(DISK, watch(tmp_path), 12) == 12
        assert opened.last_stable_offset(DISK, watch(tmp_path), 11) == 5
        assert opened.last_stable_offset(DISK, watch(tmp_path), 3) == 3
        assert opened.last_stable_offset(DISK, watch(tmp_path), 12) == 12
