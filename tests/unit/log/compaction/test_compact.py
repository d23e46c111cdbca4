"""What a clean keeps, and how it writes that."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from octavo.errors import LogError, PolicyViolation
from octavo.log import Log, LogConfig
from octavo.log.compaction import CompactionProgress
from octavo.log.origin import Origin
from octavo.records import BatchBuilder, Codec, end_transaction_marker
from octavo.records.layout import Attributes, TimestampType
from tests.clock import Clock
from tests.unit.log.compaction.logs import (
    RETENTION_MS,
    TIME_MS,
    append,
    bases,
    batch_of,
    batches,
    headers,
    held,
    open_log,
    told,
)

pytestmark = pytest.mark.usefixtures("each_kind_of_kernel")


def test_the_last_record_of_each_key_stays_at_its_offset(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        append(log, "a", "b", "a")
        append(log, "c", "b")
        log.roll()
        stats = log.compact()
        assert told(log) == "2a 3c 4b"
        assert stats is not None
        assert (stats.first_dirty_offset, stats.end_offset, stats.map_keys) == (0, 5, 3)
        assert (stats.records_read, stats.records_written, stats.map_records_read) == (5, 3, 5)
        assert stats.is_complete
        assert log.compact() is None


def test_the_active_segment_stays_as_it_is(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        append(log, "a", "a")
        assert log.compact() is None
        log.roll()
        append(log, "a", "a")
        log.compact()
        assert told(log) == "1a 2a 3a"


def test_a_later_clean_looks_at_what_is_clean_too(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        append(log, "a", "b")
        log.roll()
        log.compact()
        append(log, "a")
        log.roll()
        log.compact()
        assert told(log) == "1b 2a"
        assert bases(log) == [0, 3]


@pytest.mark.parametrize("codec", list(Codec))
def test_what_stays_of_a_batch_has_its_offsets_and_sequences(tmp_path: Path, codec: Codec) -> None:
    with open_log(tmp_path) as log:
        pairs = [(b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"c", b"4"), (b"b", b"5"), (b"c", b"6")]
        log.append(batch_of(pairs[:4], codec=codec, producer_id=7, producer_epoch=2, base_sequence=10))
        log.append(batch_of(pairs[4:], codec=codec))
        log.roll()
        before = headers(log)[0]
        log.compact()
        assert told(log) == "2a 4b 5c"
        after = headers(log)[0]
        kept = before._replace(
            length=after.length,
            crc=after.crc,
            base_timestamp_ms=TIME_MS + 2,
            max_timestamp_ms=TIME_MS + 2,
            record_count=1,
        )
        assert after == kept
        assert batches(log)[0].codec is codec


def test_a_batch_that_loses_nothing_is_copied_byte_for_byte(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        builder = BatchBuilder(codec=Codec.LZ4, level=12)
        builder.append(b"a", b"1" * 100, timestamp_ms=TIME_MS, headers=[("h", None)])
        log.append(builder.build())
        log.roll()
        before = log.segments[0].path.read_bytes()
        log.compact()
        assert log.segments[0].path.read_bytes() == before


def test_headers_and_timestamps_stay(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        builder = BatchBuilder()
        builder.append(b"a", b"1", timestamp_ms=TIME_MS + 50)
        builder.append(b"b", b"2", timestamp_ms=TIME_MS - 70, headers=[("x", b"y"), ("", None)])
        builder.append(b"c", b"", timestamp_ms=TIME_MS - 80)
        builder.append(b"a", b"3", timestamp_ms=TIME_MS - 90)
        log.append(builder.build())
        log.roll()
        before = list(batches(log)[0])
        log.compact()
        assert list(batches(log)[0]) == before[1:]
        assert (headers(log)[0].base_timestamp_ms, headers(log)[0].max_timestamp_ms) == (TIME_MS - 70, TIME_MS - 70)


def test_append_times_stay(tmp_path: Path) -> None:
    with open_log(tmp_path, message_timestamp_type="LogAppendTime") as log:
        log.append(batch_of([(b"a", b"1"), (b"a", b"2"), (b"b", b"3")], time_ms=5))
        log.roll()
        log.compact()
        header = headers(log)[0]
        assert (header.base_timestamp_ms, header.max_timestamp_ms) == (TIME_MS, TIME_MS)
        assert batches(log)[0].timestamp_type is TimestampType.LOG_APPEND_TIME
        assert [record.timestamp_ms for record in batches(log)[0]] == [TIME_MS, TIME_MS]


def test_records_without_a_key_go(tmp_path: Path) -> None:
    folder = tmp_path / "topic-0"
    with Log.open(folder, LogConfig(), clock=Clock()) as log:
        log.append(batch_of([(None, b"1"), (b"", b"2"), (b"a", b"3")]))
        log.roll()
    with open_log(tmp_path) as log:
        stats = log.compact()
        assert [record.key for record in held(log)] == [b"", b"a"]
        assert stats is not None
        assert stats.records_without_key == 1


# Tombstones


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_a_tombstone_goes_in_the_second_clean_after_its_horizon(tmp_path: Path, codec: Codec) -> None:
    clock = Clock()
    with open_log(tmp_path, clock=clock) as log:
        append(log, "a", "b", codec=codec)
        append(log, "-a", "c", codec=codec)
        log.roll()
        log.compact()
        assert told(log) == "1b 2-a 3c"
        header = headers(log)[1]
        assert header.attributes & Attributes.DELETE_HORIZON
        assert header.base_timestamp_ms == TIME_MS + RETENTION_MS
        assert [record.timestamp_ms for record in batches(log)[1]] == [TIME_MS, TIME_MS + 1]
        for now_ms, left in ((TIME_MS + RETENTION_MS - 1, "1b 2-a 3c"), (TIME_MS + RETENTION_MS, "1b 3c")):
            clock.now_ms = now_ms
            append(log, "d")
            log.roll()
            log.compact()
            assert told(log).startswith(left + " ")
        assert headers(log)[1].base_timestamp_ms == TIME_MS + RETENTION_MS  # once set it stays


def test_an_empty_value_is_no_tombstone(tmp_path: Path) -> None:
    with open_log(tmp_path, delete_retention_ms="0") as log:
        log.append(batch_of([(b"a", b"")]))
        for _ in range(3):
            append(log, "b")
            log.roll()
            log.compact()
        assert told(log) == "0a 3b"
        assert not headers(log)[0].attributes & Attributes.DELETE_HORIZON


# Headers that stay by themselves


def test_the_last_batch_of_a_producer_stays_empty(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.append(batch_of([(b"a", b"1")], producer_id=7, producer_epoch=0, base_sequence=0))
        log.append(batch_of([(b"a", b"2"), (b"b", b"2")], producer_id=7, producer_epoch=0, base_sequence=1))
        append(log, "a", "b", codec=Codec.GZIP)
        log.roll()
        log.compact()
        assert told(log) == "3a 4b"
        empty = headers(log)[0]
        assert (empty.base_offset, empty.last_offset_delta, empty.record_count) == (1, 1, 0)
        assert (empty.producer_id, empty.producer_epoch, empty.base_sequence) == (7, 0, 1)
        assert (empty.base_timestamp_ms, empty.max_timestamp_ms) == (-1, TIME_MS + 1)
        assert len(headers(log)) == 2
    with open_log(tmp_path) as log:
        again = log.append(batch_of([(b"a", b"2"), (b"b", b"2")], producer_id=7, producer_epoch=0, base_sequence=1))
        assert again.is_duplicate
        assert again.base_offset == 1


def test_the_last_offset_of_a_clean_is_not_forgotten(tmp_path: Path) -> None:
    clock = Clock()
    with open_log(tmp_path, clock=clock, delete_retention_ms="0") as log:
        append(log, "a")
        append(log, "-a")
        log.roll()
        log.compact()
        assert told(log) == "1-a"
        append(log, "-b")
        log.roll()
        log.compact()
        assert told(log) == "2-b"
    with open_log(tmp_path) as log:
        assert log.end_offset == 3


# Transactions


def transact(log: Log, producer_id: int, *keys: str) -> None:
    """A batch of a transaction."""
    sequence = log.producers.entries[producer_id].last_sequence + 1 if producer_id in log.producers.entries else 0
    pairs = [(key.encode(), b"%d" % log.end_offset) for key in keys]
    batch = batch_of(pairs, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, transactional=True)
    log.append(batch)


def end(log: Log, producer_id: int, *, commit: bool) -> None:
    """The end of a transaction."""
    marker = end_transaction_marker(
        commit, timestamp_ms=TIME_MS, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0
    )
    log.append(marker, origin=Origin.COORDINATOR)


def offsets(log: Log) -> list[int]:
    """Of all records, markers too."""
    return [record.offset for record in held(log)]


def test_aborted_data_go_and_hide_nothing(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        append(log, "a")
        transact(log, 1, "a", "b")
        end(log, 1, commit=False)
        append(log, "c")
        log.roll()
        log.compact()
        assert offsets(log) == [0, 3, 4]
        assert [entry[:3] for entry in log._view.segments[0].txn_index.entries()] == [(1, 1, 3)]


def test_a_marker_goes_once_nothing_is_left_of_its_transaction(tmp_path: Path) -> None:
    clock = Clock()
    with open_log(tmp_path, clock=clock) as log:
        transact(log, 1, "a")
        end(log, 1, commit=False)  # at 1
        transact(log, 2, "b")
        end(log, 2, commit=True)  # at 3
        transact(log, 1, "c")
        transact(log, 2, "c")
        end(log, 1, commit=True)
        end(log, 2, commit=True)
        found = []
        for number in range(4):
            log.roll()
            log.compact()
            found.append((offsets(log)[:3], sum(1 for header in headers(log) if header.attributes & 0x40)))
            append(log, f"n{number}", "b" if number == 0 else "x")
            clock.now_ms += RETENTION_MS
        # The abort marker has lost its data in the first clean, gets its horizon in the second, and goes in the third.
        assert [first for first, _ in found] == [[1, 2, 3], [1, 3, 5], [3, 5, 6], [5, 6, 7]]


def test_what_is_not_decided_is_not_cleaned(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        append(log, "a", "a")
        log.roll()
        transact(log, 1, "b")
        append(log, "a")
        log.roll()
        append(log, "a")
        log.roll()
        assert log.compaction_plan().first_uncleanable_offset == 2
        log.compact()
        assert told(log) == "1a 2b 3a 4a"
        end(log, 1, commit=True)
        log.roll()
        log.compact()
        assert offsets(log) == [2, 4, 5]


# Maps that are too small


def test_a_full_map_ends_a_clean_at_the_last_key_that_it_took(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        append(log, "a", "b", "a", "c", "d", "a", "b", "c", "d")
        log.roll()
        found = []
        while stats := log.compact(map_memory=4 * 24):  # for three keys
            found.append((stats.end_offset, stats.is_complete, told(log)))
        assert found[0] == (4, False, "1b 2a 3c 4d 5a 6b 7c 8d")
        assert found[-1][2] == "5a 6b 7c 8d"
        assert [end_offset for end_offset, _, _ in found] == [4, 7, 9]


# Segments, indexes, files


def test_segments_become_one_as_long_as_they_fit(tmp_path: Path) -> None:
    with open_log(tmp_path, internal_segment_bytes="1000") as log:
        for number in range(60):
            append(log, f"{number % 3}", f"k{number % 30}")
        for _ in range(2):  # sizes are those before a clean
            log.roll()
            before = len(log.segments)
            log.compact()
            append(log, "new")
        assert len(log.segments) < before
        assert all(segment.size <= 1000 for segment in log.segments)
        assert sorted(record.offset for record in held(log)) == [record.offset for record in held(log)]
        for segment in log._view.segments[:-1]:
            entries = [segment.offset_index.lookup(offset) for offset in range(log.end_offset)]
            found = {entry for entry in entries if entry is not None}
            assert all(segment.has_batch_at(entry) for entry in found)
            assert segment.has_largest()


def test_the_output_is_as_old_as_what_it_came_from(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        append(log, "a", "a")
        log.roll()
        append(log, "a", "b")
        log.roll()
        for number, segment in enumerate(log.segments[:2]):
            os.utime(segment.path, (1000 + number, 1000 + number))
        log.compact()
        assert bases(log) == [0, 4]
        assert log._view.segments[0].modified_ms() == 1_001_000
        names = {path.name.partition(".")[2] for path in log.folder.glob("00000000000000000000.*")}
        assert names >= {"log", "index", "timeindex", "log.deleted"}
        assert not list(log.folder.glob("*.cleaned")) + list(log.folder.glob("*.swap"))


def test_old_messages_become_batches_of_today(tmp_path: Path) -> None:
    folder = tmp_path / "topic-0"
    folder.mkdir()
    data = b""
    for magic, codec, offset in ((0, Codec.NONE, 0), (1, Codec.GZIP, 2), (1, Codec.NONE, 5)):
        builder = BatchBuilder(magic, codec=codec, base_offset=offset)
        builder.append(b"a", b"%d" % offset, timestamp_ms=TIME_MS + offset)
        builder.append(b"b%d" % offset, b"x", timestamp_ms=TIME_MS + offset + 1)
        data += builder.build()
    (folder / "00000000000000000000.log").write_bytes(data)
    with open_log(tmp_path) as log:
        log.roll()
        log.compact()
        assert told(log) == "1b0 3b2 5a 6b5"
        found = [(header.base_offset, header.last_offset_delta, header.max_timestamp_ms) for header in headers(log)]
        assert found == [(1, 0, -1), (3, 0, TIME_MS + 3), (5, 0, TIME_MS + 5), (6, 0, TIME_MS + 6)]
        assert [batch.codec for batch in batches(log)] == [Codec.NONE, Codec.GZIP, Codec.NONE, Codec.NONE]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_batches_larger_than_any_block_are_cleaned(tmp_path: Path, codec: Codec) -> None:
    with open_log(tmp_path, max_message_bytes=str(64 << 20)) as log:
        large = os.urandom(9 << 20)
        append(log, "a", "b")
        log.append(batch_of([(b"a", b"1"), (b"c", large), (b"a", None)], codec=codec))
        append(log, "b")
        log.append(batch_of([(b"d", large), (b"b", large)], codec=codec))
        log.roll()
        log.compact()
        assert [(record.offset, record.key) for record in held(log)] == [(3, b"c"), (4, b"a"), (6, b"d"), (7, b"b")]
        assert [record.value for record in held(log) if record.key in (b"b", b"c", b"d")] == [large] * 3


def test_a_horizon_that_no_time_can_be_is_none(tmp_path: Path) -> None:
    with open_log(tmp_path, delete_retention_ms=str(2**63 - 1)) as log:
        append(log, "-a")
        for _ in range(2):
            append(log, "b")
            log.roll()
            log.compact()
        assert told(log) == "0-a 2b"
        assert not headers(log)[0].attributes & Attributes.DELETE_HORIZON


# What may come between


def test_only_compacted_topics_are_compacted(tmp_path: Path) -> None:
    with Log.open(tmp_path / "topic-0", LogConfig()) as log, pytest.raises(PolicyViolation):
        log.compact()


def test_progress_is_told(tmp_path: Path) -> None:
    told_of: list[CompactionProgress] = []
    with open_log(tmp_path) as log:
        append(log, "a", "a")
        log.roll()
        size = log.segments[0].size
        log.compact(on_progress=told_of.append)
    assert [(progress.bytes_done, progress.bytes_total) for progress in told_of] == [(size, 2 * size), (2 * size,) * 2]


def test_a_log_is_compacted_once_at_a_time(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        append(log, "a", "a")
        log.roll()
        with pytest.raises(LogError, match="already"):
            log.compact(on_progress=lambda _: log.compact() and None)
        assert told(log) == "0a 1a"
        assert log.compact() is not None
