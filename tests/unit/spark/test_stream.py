"""A streaming query, trigger by trigger: what Spark would ask, and what it would get."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from octavo.errors import DataLoss
from octavo.log import DataDirectory
from octavo.records import end_transaction_marker
from octavo.spark import OctavoSource
from octavo.spark.admission import limit_bytes
from octavo.spark.ranges import Logs, Sources
from octavo.spark.stream import OctavoStreamReader
from octavo.spark.versions import ReadAllAvailable, ReadLimit, ReadMaxBytes, ReadMaxRows, ReadMinRows
from tests.unit.spark.test_faults import delete_oldest
from tests.unit.spark.topics import SMALL, TIME_MS, batch, write_topic

Offsets = dict[str, dict[str, int]]


class Query:
    """A query, of which Spark keeps the offsets as JSON. A new one with `offsets` is one that was restarted."""

    def __init__(self, path: Path, offsets: Offsets | None = None, **options: str) -> None:
        source = OctavoSource({"path": str(path)} | {name.replace("_", "."): text for name, text in options.items()})
        reader = source.streamReader(source.schema())
        assert isinstance(reader, OctavoStreamReader)
        self.reader = reader
        self.offsets: Offsets = reader.initialOffset() if offsets is None else offsets
        self.limit: ReadLimit = reader.getDefaultReadLimit()

    def trigger(self, limit: ReadLimit | None = None) -> list[int]:
        """The offsets of the next micro-batch, of all partitions, in order."""
        start = json.loads(json.dumps(self.offsets))
        end = json.loads(json.dumps(self.end(start, limit or self.limit)))
        rows = self.read(start, end)
        assert self.read(start, end) == rows  # as after a restart
        self.offsets = end
        self.reader.commit(end)
        return sorted(rows)

    def end(self, start: Offsets, limit: ReadLimit) -> Offsets:
        """Where the next micro-batch ends."""
        return self.reader.latestOffset(start, limit)

    def read(self, start: Offsets, end: Offsets) -> list[int]:
        """What the tasks between two offsets read."""
        tasks = self.reader.partitions(start, end)
        reader, tasks = pickle.loads(pickle.dumps((self.reader, tasks)))
        return [offset for task in tasks for rows in reader.read(task) for offset in rows.column("offset").to_pylist()]


@pytest.fixture
def data(tmp_path: Path) -> Any:
    """A directory that is being written, with one topic."""
    with DataDirectory.open(tmp_path) as data:
        data.create_topic("events", 1, SMALL | {"file.delete.delay.ms": "0"})
        yield data


def test_what_is_appended_comes_with_the_next_trigger(tmp_path: Path, data: DataDirectory) -> None:
    log = data.log("events", 0)
    log.append(batch(0))
    latest, earliest = (Query(tmp_path, end="logEnd", startingOffsets=start) for start in ("latest", "earliest"))
    assert latest.offsets == {"events": {"0": 5}}
    assert earliest.offsets == {"events": {"0": 0}}
    assert (latest.trigger(), earliest.trigger()) == ([], [0, 1, 2, 3, 4])
    for number in range(1, 60):
        log.append(batch(number * 5))
        assert latest.trigger() == earliest.trigger() == list(range(number * 5, number * 5 + 5))
    assert len(log.segments) > 5
    assert latest.offsets == earliest.offsets == {"events": {"0": 300}}


def test_a_batch_that_is_not_complete_is_not_seen(tmp_path: Path) -> None:
    write_topic(tmp_path, batches=1)
    query = Query(tmp_path, end="logEnd", startingOffsets="earliest")
    assert query.trigger() == [0, 1, 2, 3, 4]
    path = tmp_path / "events-0" / "00000000000000000000.log"
    whole = path.read_bytes()
    following = (5).to_bytes(8, "big") + batch(5)[8:]
    for size in (1, 30, len(following) - 1):
        path.write_bytes(whole + following[:size])
        assert query.trigger() == []
    path.write_bytes(whole + following)
    assert query.trigger() == [5, 6, 7, 8, 9]


@pytest.mark.since_spark("4.2")
def test_a_trigger_takes_no_more_than_it_may(tmp_path: Path) -> None:
    write_topic(tmp_path, partitions=2, batches=20)
    query = Query(tmp_path, startingOffsets="earliest", maxOffsetsPerTrigger="30")
    assert query.limit == ReadMaxRows(30)
    assert query.trigger() == sorted([*range(15), *range(15)])
    assert query.offsets == {"events": {"0": 15, "1": 15}}
    assert len(query.trigger(ReadAllAvailable())) == 170
    query = Query(tmp_path, startingOffsets="earliest", maxBytesPerTrigger="3000")
    assert query.limit == ReadMaxBytes(3000)
    rows = []
    triggers = 0
    while found := query.trigger():
        rows += found
        triggers += 1
    assert sorted(rows) == sorted([*range(100), *range(100)])
    size = sum(path.stat().st_size for path in tmp_path.glob("events-*/*.log"))
    assert size / 6000 < triggers < size / 1500


@pytest.mark.since_spark("4.2")
def test_a_trigger_waits_for_enough_but_not_for_ever(
    tmp_path: Path, data: DataDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = [1000.0]
    monkeypatch.setattr("octavo.spark.stream.time.monotonic", lambda: now_s[0])
    log = data.log("events", 0)
    options = {"end": "logEnd", "startingOffsets": "earliest", "minOffsetsPerTrigger": "10", "maxTriggerDelay": "5m"}
    query = Query(tmp_path, None, **options)
    assert query.limit == ReadMinRows(10)
    log.append(batch(0))
    assert len(query.trigger()) == 5  # the first is never too small
    log.append(batch(5))
    assert query.trigger() == []
    log.append(batch(10))
    assert len(query.trigger()) == 10
    log.append(batch(15))
    assert query.trigger() == []
    now_s[0] += 301
    assert len(query.trigger()) == 5


@pytest.mark.since_spark("4.2")
def test_available_now_ends_with_what_was_there(tmp_path: Path, data: DataDirectory) -> None:
    log = data.log("events", 0)
    for number in range(4):
        log.append(batch(number * 5))
    options = {"end": "logEnd", "maxOffsetsPerTrigger": "8", "minOffsetsPerTrigger": "8", "startingOffsets": "earliest"}
    query = Query(tmp_path, None, **options)
    query.reader.prepareForTriggerAvailableNow()
    log.append(batch(20))
    data.create_topic("later", 1, SMALL)
    data.log("later", 0).append(batch(0))
    sizes = []
    while found := query.trigger():
        sizes.append(len(found))
    assert sizes == [8, 8, 4]
    assert Query(tmp_path, query.offsets, **options).trigger() == [0, 1, 2, 3, 20, 21, 22, 23]


def test_available_now_takes_nothing_back_that_was_read(tmp_path: Path) -> None:
    write_topic(tmp_path, batches=4)
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\nevents 0 7\n")
    query = Query(tmp_path, {"events": {"0": 18}})
    query.reader.prepareForTriggerAvailableNow()
    assert query.trigger() == []
    assert query.offsets == {"events": {"0": 18}}
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\nevents 0 20\n")
    assert query.trigger() == []  # it came later than the query began
    assert Query(tmp_path, query.offsets).trigger() == [18, 19]


def test_a_new_query_begins_where_it_first_said(tmp_path: Path, data: DataDirectory) -> None:
    log = data.log("events", 0)
    log.append(batch(0))
    query = Query(tmp_path, end="logEnd")
    log.append(batch(5))
    assert query.reader.initialOffset() == query.offsets == {"events": {"0": 5}}
    assert query.trigger() == [5, 6, 7, 8, 9]


def test_a_batch_that_ends_before_it_begins_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_topic(tmp_path, batches=4)
    query = Query(tmp_path)  # begins at the end, which was another before it was restarted
    assert query.read(query.offsets, {"events": {"0": 10}}) == []
    assert caplog.messages == ["events-0: a batch that ends at 10 begins at 20: nothing is read"]


def test_a_trigger_looks_once(tmp_path: Path, data: DataDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []
    look = Logs.look

    def count(logs: Logs, *, must_be_there: bool = True) -> Sources:
        looks.append(must_be_there)
        return look(logs, must_be_there=must_be_there)

    query = Query(tmp_path, end="logEnd")
    assert query.reader.reportLatestOffset() is None
    monkeypatch.setattr(Logs, "look", count)
    data.log("events", 0).append(batch(0))
    assert query.trigger() == [0, 1, 2, 3, 4]
    data.log("events", 0).append(batch(5))
    assert query.reader.reportLatestOffset() == {"events": {"0": 5}}
    assert len(looks) == 1


def test_new_partitions_and_topics_are_read_from_their_start(tmp_path: Path, data: DataDirectory) -> None:
    query = Query(tmp_path, end="logEnd")
    assert query.trigger() == []
    data.create_topic("more", 2, SMALL)
    data.log("more", 1).append(batch(0))
    assert query.trigger() == [0, 1, 2, 3, 4]
    assert query.offsets == {"events": {"0": 0}, "more": {"0": 0, "1": 5}}


def test_what_retention_took_before_it_was_read_is_lost_data(tmp_path: Path, data: DataDirectory) -> None:
    strict = Query(tmp_path, end="logEnd", startingOffsets="earliest")
    lenient = Query(tmp_path, end="logEnd", startingOffsets="earliest", failOnDataLoss="false")
    log = data.log("events", 0)
    for number in range(60):
        log.append(batch(number * 5))
    log.flush()  # which must not find that files are gone
    start = delete_oldest(tmp_path / "events-0", 3)
    with pytest.raises(DataLoss):
        strict.trigger()
    assert lenient.trigger() == list(range(start, 300))


def test_a_file_that_goes_between_look_and_plan_is_lost_data(tmp_path: Path) -> None:
    write_topic(tmp_path)
    strict = Query(tmp_path, {"events": {"0": 3}})
    lenient = Query(tmp_path, {"events": {"0": 3}}, failOnDataLoss="false")
    ends = [query.reader.latestOffset(query.offsets, query.limit) for query in (strict, lenient)]
    start = delete_oldest(tmp_path / "events-0", 3)
    with pytest.raises(DataLoss, match=f"offsets 3 to {start - 1} of events-0"):
        strict.read(strict.offsets, ends[0])
    assert lenient.read(lenient.offsets, ends[1]) == list(range(start, 500))


@pytest.mark.since_spark("4.2")
def test_a_file_that_goes_while_bytes_are_counted_is_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_topic(tmp_path)
    query = Query(tmp_path, {"events": {"0": 3}}, failOnDataLoss="false", maxBytesPerTrigger="1000000")
    starts = []

    def delete_first(*arguments: Any) -> Any:
        monkeypatch.undo()
        starts.append(delete_oldest(tmp_path / "events-0", 3))
        return limit_bytes(*arguments)

    monkeypatch.setattr("octavo.spark.stream.limit_bytes", delete_first)
    assert query.trigger() == list(range(starts[0], 500))


def test_a_topic_that_is_gone_is_lost_data(tmp_path: Path) -> None:
    write_topic(tmp_path, "a", batches=1)
    write_topic(tmp_path, "b", batches=1)
    options = {"startingOffsets": "earliest", "subscribe": "a,b"}
    strict = Query(tmp_path, None, **options)
    lenient = Query(tmp_path, None, failOnDataLoss="false", **options)
    assert strict.trigger() == lenient.trigger()
    before = lenient.offsets
    (tmp_path / "a-0").rename(tmp_path / "a-0.0123456789abcdef0123456789abcdef-delete")
    with pytest.raises(DataLoss, match=r"^Partitions a-0 have been deleted\. If a query should not fail for this"):
        strict.trigger()
    assert lenient.trigger() == []
    assert lenient.offsets == {"b": {"0": 5}}
    restarted = Query(tmp_path, before, failOnDataLoss="false", **options)
    assert restarted.trigger() == []
    assert restarted.offsets == {"b": {"0": 5}}


def test_a_partition_that_is_empty_for_a_moment_goes_on_where_it_was(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_topic(tmp_path, partitions=2, batches=2)
    query = Query(tmp_path, {"events": {"0": 10, "1": 5}}, failOnDataLoss="false")
    (tmp_path / "events-1").rename(tmp_path / "aside")
    (tmp_path / "events-1").mkdir()
    assert query.trigger() == []
    assert query.offsets == {"events": {"0": 10, "1": 5}}
    assert caplog.messages == ["events-1 has no segments at this moment: it stays at offset 5"]
    (tmp_path / "events-1").rmdir()
    (tmp_path / "aside").rename(tmp_path / "events-1")
    assert query.trigger() == [5, 6, 7, 8, 9]


def test_a_new_partition_that_does_not_begin_at_zero_is_lost_data(tmp_path: Path) -> None:
    write_topic(tmp_path)
    start = delete_oldest(tmp_path / "events-0", 2)
    with pytest.raises(DataLoss, match=rf"^Added partition events-0 starts from {start} instead of 0\. "):
        Query(tmp_path, {}).trigger()
    assert Query(tmp_path, {}, failOnDataLoss="false").trigger() == list(range(start, 500))


def test_a_new_partition_that_is_gone_again_is_lost_data(tmp_path: Path) -> None:
    write_topic(tmp_path, partitions=2, batches=1)
    query = Query(tmp_path, {"events": {"0": 5}})
    (tmp_path / "events-1").rename(tmp_path / "events-1.0123456789abcdef0123456789abcdef-delete")
    with pytest.raises(DataLoss, match=r"^Cannot find initial offsets for partitions events-1\. They may have been"):
        query.read(query.offsets, {"events": {"0": 5, "1": 5}})


def test_a_log_that_is_shorter_than_what_was_read_is_lost_data(tmp_path: Path) -> None:
    write_topic(tmp_path, batches=2)
    with pytest.raises(DataLoss, match=r"^Partition events-0 offset was changed from 20 to 10\. This could be either"):
        Query(tmp_path, {"events": {"0": 20}}).trigger()
    assert Query(tmp_path, {"events": {"0": 20}}, failOnDataLoss="false").trigger() == []


def test_a_log_that_is_shorter_than_what_was_read_goes_on_at_its_end(tmp_path: Path) -> None:
    write_topic(tmp_path, batches=4)
    checkpoint = tmp_path / "replication-offset-checkpoint"
    checkpoint.write_text("0\n1\nevents 0 7\n")
    query = Query(tmp_path, {"events": {"0": 23}}, failOnDataLoss="false")
    assert query.trigger() == []
    checkpoint.write_text("0\n1\nevents 0 20\n")
    assert query.trigger() == []
    assert query.offsets == {"events": {"0": 20}}


def test_a_recorded_watermark_that_is_behind_does_not_lead_back(tmp_path: Path) -> None:
    write_topic(tmp_path, batches=4)
    query = Query(tmp_path, startingOffsets="earliest")
    assert len(query.trigger()) == 20
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\nevents 0 7\n")
    assert query.trigger() == []
    assert query.offsets == {"events": {"0": 20}}


def test_a_stream_of_committed_data_waits_for_the_end_of_a_transaction(tmp_path: Path, data: DataDirectory) -> None:
    from octavo.log.origin import Origin
    from octavo.records import BatchBuilder

    def transactional(producer_id: int) -> bytes:
        builder = BatchBuilder(producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True)
        builder.append(b"k", b"v", timestamp_ms=TIME_MS)
        return builder.build()

    def marker(producer_id: int, commit: bool) -> bytes:
        return end_transaction_marker(
            commit, timestamp_ms=TIME_MS, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0
        )

    log = data.log("events", 0)
    query = Query(tmp_path, end="logEnd", startingOffsets="earliest", isolation_level="read_committed")
    log.append(transactional(1))
    log.append(batch(1))
    assert query.trigger() == []
    log.append(transactional(2))
    log.append(marker(1, False), origin=Origin.COORDINATOR)
    assert query.trigger() == [1, 2, 3, 4, 5]
    log.append(marker(2, True), origin=Origin.COORDINATOR)
    log.append(batch(9))
    assert query.trigger() == [6, 9, 10, 11, 12, 13]
