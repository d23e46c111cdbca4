"""Which offsets a batch query reads: limits by offset and by time, and what is said of those that cannot be."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from octavo.errors import BadDirectory, CorruptFile, DataLoss, InvalidInput
from octavo.log import DataDirectory
from octavo.log.checkpoints import WatchedCheckpoints
from octavo.log.watched.watched_log import WatchedLog
from octavo.records import BatchBuilder, read_batches
from octavo.spark import OctavoSource
from octavo.spark.options import read_options
from octavo.spark.partitions import Replica
from octavo.spark.ranges import Logs
from octavo.spark.threads import in_threads
from tests.unit.spark.queries import offsets, plan, read
from tests.unit.spark.test_faults import FIRST, damage, delete_oldest
from tests.unit.spark.topics import TIME_MS, batch, write_topic


def load(path: Path, **options: str) -> None:
    """What `load()` checks."""
    OctavoSource({"path": str(path)} | options).schema()


@pytest.mark.parametrize("position", ["start", "end"])
def test_a_time_of_each_partition_is_one_of_all_partitions(tmp_path: Path, position: str) -> None:
    write_topic(tmp_path, partitions=2, batches=2)
    option = f"{position}ingOffsetsByTimestamp"
    some, unknown = ({"events": {str(number): TIME_MS}} for number in (0, 7))
    sentence = (
        f"Partitions specified for Kafka timestamp based {position} offsets don't match what are assigned. Maybe topic "
        "partitions are created or deleted while the query is running, or you didn't specify all the partitions. "
    )
    with pytest.raises(InvalidInput) as refused:
        plan(tmp_path, **{option: json.dumps(some)})
    assert str(refused.value) == sentence + "Specified: events-0 Assigned: events-0, events-1"
    with pytest.raises(InvalidInput) as refused:
        load(tmp_path, **{option: json.dumps(unknown)})
    assert str(refused.value) == sentence + "Specified: events-7 Assigned: events-0, events-1"


def test_offsets_of_some_partitions_are_refused_when_it_is_loaded_if_only_a_batch_query_can_be_meant(
    tmp_path: Path,
) -> None:
    write_topic(tmp_path, partitions=2, batches=2)
    some = '{"events":{"0":1}}'
    load(tmp_path, startingOffsets=some)  # a stream that is restarted may have had no more
    sentence = (
        "Partitions specified for Kafka start offsets don't match what are assigned. Maybe topic partitions are "
        "created or deleted while the query is running. Use -1 for latest, -2 for earliest. "
        "Specified: events-0 Assigned: events-0, events-1"
    )
    with pytest.raises(InvalidInput) as refused:
        load(tmp_path, endingOffsets=some)
    assert str(refused.value) == sentence
    with pytest.raises(InvalidInput) as refused:
        plan(tmp_path, startingOffsets=some)
    assert str(refused.value) == sentence


def test_negative_times_are_those_of_list_offsets(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path) as data:
        data.create_topic("events", 1, {"retention.ms": "-1"})
        for time_ms in (5, 9, 9, 7):
            builder = BatchBuilder()
            builder.append(None, b"", timestamp_ms=TIME_MS + time_ms)
            data.log("events", 0).append(builder.build())
            data.log("events", 0).roll()
    assert offsets(tmp_path, startingTimestamp="-1") == []
    assert offsets(tmp_path, startingTimestamp="-2") == [0, 1, 2, 3]
    assert offsets(tmp_path, startingTimestamp="-3") == [1, 2, 3]
    assert offsets(tmp_path, endingTimestamp="-1") == [0, 1, 2, 3]
    assert offsets(tmp_path, endingOffsetsByTimestamp='{"events":{"0":-3}}') == [0]
    for options in ({"startingTimestamp": "-4"}, {"endingOffsetsByTimestamp": '{"events":{"0":-4}}'}):
        with pytest.raises(InvalidInput, match=r"-4 is no timestamp\. Use -1 for latest, -2 for earliest"):
            load(tmp_path, **options)


def test_a_time_that_only_deleted_records_of_its_segment_have_is_not_found(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path) as data:
        data.create_topic("events", 1, {"retention.ms": "-1"})
        log = data.log("events", 0)
        for time_ms in (9, 1, 9):
            builder = BatchBuilder()
            builder.append(None, b"", timestamp_ms=TIME_MS + time_ms)
            log.append(builder.build())
            if time_ms == 1:
                log.roll()
        log.delete_records_before(1)
    with pytest.raises(InvalidInput, match="No offset matched"):  # Kafka looks into one segment only
        plan(tmp_path, startingTimestamp=str(TIME_MS + 5))


def test_an_empty_log_has_no_latest_time(tmp_path: Path) -> None:
    write_topic(tmp_path, batches=0)
    with pytest.raises(InvalidInput, match="No offset matched from request of topic-partition events-0"):
        plan(tmp_path, startingTimestamp="-3")


def write_segment(folder: Path) -> Path:
    """A segment of 60 batches that is not the last, and has an index; its file."""
    with DataDirectory.open(folder) as data:
        data.create_topic("events", 1, {"retention.ms": "-1", "index.interval.bytes": "4000"})
        log = data.log("events", 0)
        for number in range(60):
            log.append(batch(number * 5))
        log.roll()
        log.append(batch(300))
    return folder / "events-0" / FIRST


@pytest.mark.parametrize("with_index", [True, False])
@pytest.mark.parametrize("at", [70, 8, 10, 11])  # in a record, and the length: far too large, too large, too small
def test_a_time_is_found_behind_damage(tmp_path: Path, at: int, with_index: bool) -> None:
    path = write_segment(tmp_path)
    if not with_index:
        for index in (tmp_path / "events-0").glob("*index"):
            index.unlink()
    position, _ = damage(path, 21, at=at)
    late = {"startingTimestamp": str(TIME_MS + 1140)}  # of offset 114, two batches on
    inside = {"startingTimestamp": str(TIME_MS + 1070)}  # of offset 107
    assert offsets(tmp_path, onCorruption="skip", **late) == list(range(114, 305))
    assert offsets(tmp_path, onCorruption="skip", **inside) == list(range(110, 305))
    with pytest.raises(CorruptFile) as failed:
        offsets(tmp_path, **inside)
    assert str(failed.value).startswith(f"{path}: at byte {position}: ")


def test_a_time_is_found_in_a_batch_that_a_wrong_length_leads_over(tmp_path: Path) -> None:
    path = write_segment(tmp_path)
    for index in (tmp_path / "events-0").glob("*index"):
        index.unlink()
    data = bytearray(path.read_bytes())
    wrong, *_, behind = list(read_batches(bytes(data)))[21:25]
    data[wrong.position + 8 : wrong.position + 12] = (behind.position + 7 - wrong.position).to_bytes(4, "big")
    path.write_bytes(data)
    (source,) = Logs(read_options({"path": str(tmp_path)}), decides=True).look().values()
    assert source.offset_at(TIME_MS + 1140, skips=True) == 114
    with pytest.raises(CorruptFile, match=f"at byte {wrong.position}: "):
        source.offset_at(TIME_MS + 1140, skips=False)


def test_the_latest_time_is_found_behind_damage(tmp_path: Path) -> None:
    path = write_segment(tmp_path)
    for index in (tmp_path / "events-0").glob("*.timeindex"):
        index.unlink()
    damage(path, 21, at=11)
    assert offsets(tmp_path, onCorruption="skip", startingTimestamp="-3") == [304]
    with pytest.raises(CorruptFile):
        offsets(tmp_path, startingTimestamp="-3")


def test_a_start_behind_the_latest_offset_is_an_empty_range(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_topic(tmp_path, batches=2)
    beyond = '{"events":{"0":12}}'
    assert offsets(tmp_path, startingOffsets=beyond) == []
    assert caplog.messages == ["events-0: there is nothing from offset 12 on, the log ends at 10"]
    assert offsets(tmp_path, startingOffsets=beyond, endingOffsets='{"events":{"0":-1}}') == []
    with pytest.raises(InvalidInput) as refused:
        offsets(tmp_path, startingOffsets=beyond, endingTimestamp=str(TIME_MS + 30))
    assert str(refused.value) == (
        "The resolved start offset 12 is greater than the resolved end offset 3 for topic events partition 0."
    )


def test_an_end_before_the_earliest_offset_is_an_empty_range(tmp_path: Path) -> None:
    write_topic(tmp_path)
    start = delete_oldest(tmp_path / "events-0", 2)
    assert offsets(tmp_path, endingOffsets=json.dumps({"events": {"0": start - 1}})) == []


def test_a_high_watermark_behind_the_end_of_the_log_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_topic(tmp_path, batches=2)
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\nevents 0 23\n")
    logs = Logs(read_options({"path": str(tmp_path)}), decides=True)
    with caplog.at_level(logging.WARNING, "octavo.spark"):
        for _ in range(3):
            (source,) = logs.look().values()
            assert source.end == 10
    assert caplog.messages == [
        "events-0: the directory recorded 23 as high watermark, but the log ends at 10",
    ]


def test_a_high_watermark_that_is_newer_than_the_end_that_was_seen_is_no_loss(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_topic(tmp_path, batches=2)
    logs = Logs(read_options({"path": str(tmp_path)}), decides=True)
    monkeypatch.setattr(WatchedLog, "recorded_high_watermark", 15)
    refresh = WatchedLog.refresh

    def append_and_refresh(log: WatchedLog) -> bool:
        monkeypatch.setattr(WatchedLog, "refresh", refresh)
        with DataDirectory.open(tmp_path) as data:
            data.log("events", 0).append(batch(10))
        return log.refresh()

    monkeypatch.setattr(WatchedLog, "refresh", append_and_refresh)
    (source,) = logs.look().values()
    assert source.log.end_offset == 15
    assert not caplog.messages


def test_partitions_are_looked_at_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_topic(tmp_path, partitions=4, batches=1)
    together = threading.Barrier(4, timeout=60)
    open_replica = Replica.open

    def open_with_others(replica: Replica, checkpoints: WatchedCheckpoints | None = None) -> WatchedLog:
        together.wait()
        return open_replica(replica, checkpoints)

    monkeypatch.setattr(Replica, "open", open_with_others)
    assert [row["partition"] for row in read(tmp_path)] == [number for number in range(4) for _ in range(5)]


def test_of_several_errors_the_first_in_order_is_raised() -> None:
    second_failed = threading.Event()

    def fail(number: int) -> int:
        if number == 1:
            assert second_failed.wait(60)
        if number == 2:
            second_failed.set()
        raise InvalidInput(f"{number}")

    with pytest.raises(InvalidInput, match="1"):
        in_threads(fail, [1, 2, 3])
    assert in_threads(str, range(100)) == list(map(str, range(100)))


def on_first_call(monkeypatch: pytest.MonkeyPatch, name: str, do: Callable[[], object]) -> None:
    """Do something before a function of `WatchedLog`'s segments is called for the first time."""
    from octavo.log.segment.segment import Segment

    real = getattr(Segment, name)

    def first(segment: Segment, *arguments: int) -> object:
        monkeypatch.setattr(Segment, name, real)
        do()
        return real(segment, *arguments)

    monkeypatch.setattr(Segment, name, first)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("find_past_damage", {"startingOffsets": '{"events":{"0":1}}'}),
        ("largest_timestamp_ms", {"startingTimestamp": str(TIME_MS + 10)}),
    ],
)
def test_a_file_that_goes_between_look_and_plan_is_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, options: dict[str, str]
) -> None:
    write_topic(tmp_path)
    starts = []
    on_first_call(monkeypatch, name, lambda: starts.append(delete_oldest(tmp_path / "events-0", 2)))
    assert offsets(tmp_path, failOnDataLoss="false", **options) == list(range(starts[0], 500))
    on_first_call(monkeypatch, "find_past_damage", lambda: starts.append(delete_oldest(tmp_path / "events-0", 2)))
    with pytest.raises(DataLoss):
        offsets(tmp_path, startingOffsets=json.dumps({"events": {"0": starts[0] + 1}}))


def test_files_that_go_again_and_again_are_told(tmp_path: Path) -> None:
    write_topic(tmp_path, batches=1)

    def find_none(_: object) -> None:
        raise FileNotFoundError(2, "there is no such file", "/some/file")

    logs = Logs(read_options({"path": str(tmp_path)}), decides=True)
    with pytest.raises(BadDirectory, match="/some/file: files go faster than they can be looked at"):
        logs.plan(find_none)
