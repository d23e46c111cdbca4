"""The binding to Kafka's own log, by itself: that it asks what it means to ask, and the clock goes as it is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.records import read_batches
from tests.batches import TIME_MS
from tests.clock import Clock
from tests.kafka.judge import Judge
from tests.kafka.log.samples import batch, changed, keyed, marker, replicated, transacted
from tests.kafka.log_answers import AbortedEntry, CachedBatch, Part, ProducerState
from tests.kafka.unified_log import (
    CLEAN_SHUTDOWN,
    RECOVERY_POINTS,
    START_OFFSETS,
    Appended,
    ReadQuestion,
    Refused,
    Segment,
    TimestampOffset,
    UnifiedLog,
    read_snapshot,
)

ONE = batch()


def _open(
    judge: Judge, path: Path, *, clock: Clock | None = None, follows_end: bool = True, **config: str
) -> UnifiedLog:
    settings = {name.replace("_", "."): value for name, value in config.items()}
    return UnifiedLog.open(judge, path / "my-topic-3", settings, clock=clock or Clock(), follows_end=follows_end)


def test_what_is_appended_can_be_read(kafka_broker: Judge, tmp_path: Path) -> None:
    log = _open(kafka_broker, tmp_path)
    log.become_leader(4)
    assert log.append(batch(3)) == Appended(0, 2, -1, 0)
    assert log.append_as_follower(replicated(ONE, 10, epoch=5)) == Appended(10, 10, -1, 0)
    first, second = read_batches(log.read(0, 1000))
    assert (first.leader_epoch, second.leader_epoch) == (4, 5)
    beyond, inside = log.read_many([ReadQuestion(12, 100), ReadQuestion(5, 10)])
    assert isinstance(beyond, Refused)
    assert beyond.code == 1
    assert inside == ONE[:0] + log.read(10, 1000)
    assert log.offset_for_timestamp(TIME_MS) == TimestampOffset(0, TIME_MS, 4)
    assert log.offset_for_timestamp(TIME_MS + 1) is None
    assert log.max_timestamp_offset() == TimestampOffset(0, TIME_MS, 4)
    assert log.epochs == [(4, 0), (5, 10)]
    assert (log.end_offset_for_epoch(4), log.end_offset_for_epoch(9)) == ((4, 10), None)
    log.close()


def test_refusals_have_codes_and_records(kafka_broker: Judge, tmp_path: Path) -> None:
    log = _open(kafka_broker, tmp_path, cleanup_policy="compact")
    with pytest.raises(Refused, match="CorruptRecordException") as corrupt:
        log.append(ONE[:-1] + b"x")
    assert (corrupt.value.code, corrupt.value.records) == (2, ())
    with pytest.raises(Refused) as refused:
        log.append(keyed(b"k", None))
    assert (refused.value.code, [index for index, _ in refused.value.records]) == (87, [1])
    with pytest.raises(Refused) as epoch:
        log.append(changed(ONE, leader_epoch=3), origin="RAFT_LEADER")
    assert epoch.value.code == 87
    log.close()


def test_the_clock_is_ours(kafka_broker: Judge, tmp_path: Path) -> None:
    clock = Clock()
    small = str(2 * len(ONE))
    log = _open(kafka_broker, tmp_path, clock=clock, internal_segment_bytes=small, retention_ms="1000")
    for _ in range(4):
        log.append(ONE)
    assert log.segments == (Segment(0, 2 * len(ONE)), Segment(2, 2 * len(ONE)))
    clock.now_ms += 1000
    assert log.apply_retention() == []
    clock.now_ms += 1
    assert log.apply_retention() == [0, 2]
    assert (log.start_offset, log.end_offset) == (4, 4)
    assert len(list(log.folder.glob("*.log.deleted"))) == 2
    clock.now_ms += 60_000
    log.delete_files()
    assert not list(log.folder.glob("*.deleted"))
    log.close()


def test_the_high_watermark_goes_with_the_end_or_not(kafka_broker: Judge, tmp_path: Path) -> None:
    log = _open(kafka_broker, tmp_path, follows_end=False)
    log.append(batch(5))
    assert (log.high_watermark, log.read(0, 100), log.read(0, 1, isolation="LOG_END")[:8]) == (0, b"", bytes(8))
    log.advance_high_watermark(3)
    with pytest.raises(Refused, match="OffsetOutOfRange"):
        log.delete_records_before(4)
    log.delete_records_before(-1)
    assert log.start_offset == 3
    log.close()
    log = _open(kafka_broker, tmp_path)
    assert (log.start_offset, log.high_watermark) == (3, 5)
    log.close()


def test_what_a_shutdown_leaves_and_a_crash_does_not(kafka_broker: Judge, tmp_path: Path) -> None:
    log = _open(kafka_broker, tmp_path)
    log.append(batch(5))
    log.delete_records_before(2)
    log.close()
    assert (tmp_path / CLEAN_SHUTDOWN).exists()
    assert (tmp_path / RECOVERY_POINTS).read_text() == "0\n1\nmy-topic 3 5\n"
    assert (tmp_path / START_OFFSETS).read_text() == "0\n1\nmy-topic 3 2\n"
    log = _open(kafka_broker, tmp_path)
    assert not (tmp_path / CLEAN_SHUTDOWN).exists()
    log.append(batch(5))
    log.abandon()
    file = tmp_path / "my-topic-3" / f"{0:020d}.log"
    assert file.with_suffix(".index").stat().st_size == 10 << 20  # padded, as long as it is written to
    with file.open("ab") as tail:
        tail.write(b"torn")
    log = _open(kafka_broker, tmp_path)
    assert (log.start_offset, log.end_offset, log.recovery_point) == (2, 10, 5)
    log.flush()
    assert log.recovery_point == 10
    log.truncate_to(7)
    assert (log.end_offset, log.recovery_point) == (7, 7)
    log.roll()
    assert [segment.base_offset for segment in log.segments] == [0, 7]
    log.close()


def test_what_is_known_of_producers(kafka_broker: Judge, tmp_path: Path) -> None:
    log = _open(kafka_broker, tmp_path)
    log.append(transacted(5, 1, 0, 2))
    log.append(batch())
    assert log.append(marker(False, 5, 1, 3), origin="COORDINATOR") == Appended(3, 3, -1, 0)
    log.append(transacted(5, 1, 2))
    known = log.producers
    cached = (CachedBatch(0, 1, 0, 1, TIME_MS), CachedBatch(2, 2, 4, 4, TIME_MS))
    assert known.states == (ProducerState(5, 1, 3, TIME_MS, 4, cached),)
    assert (known.last_stable_offset, known.first_unstable_offset) == (4, 4)
    assert known.aborted == (AbortedEntry(0, 5, 0, 3, 4),)
    (part,) = log.read_parts([ReadQuestion(0, 1000, "TXN_COMMITTED")])
    assert isinstance(part, Part)
    assert part.aborted == ((5, 0),)
    assert [each.last_offset for each in read_batches(part.records)] == [1, 2, 3]
    log.close()
    (state,) = read_snapshot(kafka_broker, tmp_path / "my-topic-3" / f"{5:020d}.snapshot")
    assert state == ProducerState(5, 1, 3, TIME_MS, 4, cached[1:])


def test_the_cleaner_is_kafkas_and_the_clock_is_ours(kafka_broker: Judge, tmp_path: Path) -> None:
    clock = Clock()
    log = _open(kafka_broker, tmp_path, clock=clock, cleanup_policy="compact", min_cleanable_dirty_ratio="0.9")
    log.append(keyed(b"a", b"b"))
    log.append(keyed(b"a"))
    log.roll()
    clock.now_ms += 5000
    assert log.cleanable(None).cleanable_ratio == 1.0
    assert log.cleanable(2)[:2] == (2, 3)
    cleaned = log.compact(1000)
    assert cleaned is not None
    assert (cleaned.first_dirty_offset, cleaned.messages_read, cleaned.messages_written) == (3, 3, 2)
    assert (tmp_path / "cleaner-offset-checkpoint").read_text() == "0\n1\nmy-topic 3 3\n"
    assert log.compact(1000) is None
    log.close()
