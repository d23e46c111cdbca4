"""What a log knows of its producers: duplicates, order, fencing, transactions, and how it comes back."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.errors import AppendRefused, ErrorCode
from octavo.log import Isolation, Log, Origin
from octavo.log.producer_state.states import RememberedBatch
from octavo.log.reading.readable_log import ReadableLog
from octavo.records import BatchBuilder
from octavo.records.control import end_transaction_marker
from octavo.records.layout import BATCH_HEADER, MAX_SEQUENCE, Attributes
from octavo.records.v2 import write_batch
from tests.unit.log.logs import TIME_MS, make_batch, open_log

DAY_MS = 86_400_000


def batch_of(
    producer_id: int, sequence: int, count: int = 1, *, epoch: int = 0, transactional: bool = False, size: int = 60
) -> bytes:
    builder = BatchBuilder(
        producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, transactional=transactional
    )
    for number in range(count):
        builder.append(b"%d" % (sequence + number), bytes(size), timestamp_ms=TIME_MS)
    return builder.build()


def end(log: Log, producer_id: int, *, commit: bool, epoch: int = 0, coordinator_epoch: int = 0) -> int:
    marker = end_transaction_marker(
        commit,
        timestamp_ms=TIME_MS,
        producer_id=producer_id,
        producer_epoch=epoch,
        coordinator_epoch=coordinator_epoch,
    )
    return log.append(marker, origin=Origin.COORDINATOR).base_offset


def refusal(log: Log, batch: bytes) -> ErrorCode:
    before = log.end_offset
    with pytest.raises(AppendRefused) as refused:
        log.append(batch)
    assert log.end_offset == before
    return refused.value.code


def committed(log: ReadableLog, offset: int | None = None) -> list[int]:
    return [record.offset for record in log.reader(offset, isolation=Isolation.READ_COMMITTED).records()]


# ------------------------------------------------------------------------------------------------------- idempotence


def test_one_of_the_last_five_batches_is_answered_with_its_first_offsets(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        batches = [batch_of(7, 3 * number, 3) for number in range(6)]
        first = [log.append(batch) for batch in batches]
        for batch, before in zip(batches[1:], first[1:], strict=True):
            again = log.append(batch)
            assert again.is_duplicate
            assert again[:2] == before[:2]
            assert again.append_time_ms == TIME_MS
        assert log.end_offset == 18
        assert refusal(log, batches[0]) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_gap_and_an_overlap_are_refused(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.append(batch_of(7, 0, 3))
        assert refusal(log, batch_of(7, 4)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert refusal(log, batch_of(7, 2, 2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        log.append(batch_of(7, 3))


def test_an_unknown_producer_may_begin_anywhere(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.append(batch_of(7, 1000))
        assert log.producers.entries[7].last_sequence == 1000


def test_zero_follows_the_largest_sequence(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.append(batch_of(7, MAX_SEQUENCE - 1, 2))
        log.append(batch_of(7, 0))
        log.append(batch_of(8, MAX_SEQUENCE, 3))  # goes over
        assert log.producers.entries[8].last_sequence == 1
        assert log.append(batch_of(8, MAX_SEQUENCE, 3)).is_duplicate
        log.append(batch_of(8, 2))


def test_an_earlier_epoch_is_fenced_off_and_a_new_one_begins_with_zero(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.append(batch_of(7, 0, 5, epoch=2))
        assert refusal(log, batch_of(7, 5, epoch=1)) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert refusal(log, batch_of(7, 5, epoch=3)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        log.append(batch_of(7, 0, epoch=3))
        assert log.producers.entries[7].batches == [RememberedBatch(0, 5, 0, TIME_MS)]


def test_several_batches_of_one_call_are_checked_one_after_the_other(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        both = batch_of(7, 0, 2) + batch_of(7, 2, 2)
        assert log.append(both)[:2] == (0, 3)
        again = log.append(both)
        assert again.is_duplicate
        assert again[:2] == (0, 3)
        assert refusal(log, batch_of(7, 4) + batch_of(7, 6)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert refusal(log, batch_of(7, 2, 2) + batch_of(7, 4)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        log.append(batch_of(7, 4))


def test_a_producer_that_writes_nothing_for_a_day_is_forgotten(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.append(batch_of(7, 0))
        log.append(batch_of(8, 0, transactional=True))
        assert log.expire_producers(TIME_MS + DAY_MS - 1) == []
        assert log.expire_producers(TIME_MS + DAY_MS) == [7]  # the other has something open
        log.append(batch_of(7, 500))


# ------------------------------------------------------------------------------------------------------ transactions


def test_committed_data_are_seen_and_aborted_are_not(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.append(batch_of(1, 0, 2, transactional=True))
        log.append(batch_of(2, 0, 2, transactional=True))
        assert (log.last_stable_offset, log.first_unstable_offset) == (0, 0)
        assert committed(log) == []
        end(log, 1, commit=True)
        assert log.last_stable_offset == 2  # the other began there
        assert committed(log) == [0, 1]
        end(log, 2, commit=False)
        assert (log.last_stable_offset, log.first_unstable_offset) == (6, None)
        log.append(batch_of(2, 2, 1, transactional=True))
        log.append(make_batch(1))
        assert committed(log) == [0, 1]
        end(log, 2, commit=True)
        assert committed(log) == [0, 1, 6, 7]


def test_the_aborted_transactions_of_a_read_are_told(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        for number in range(30):
            log.append(batch_of(1, 2 * number, 2, transactional=True))
            end(log, 1, commit=number % 2 == 0)
        assert len(log.segments) > 3
        part = log.read(3, 1 << 20, isolation=Isolation.READ_COMMITTED)
        assert part.aborted_transactions is not None
        assert part.aborted_transactions[0] == (1, 3)
        assert log.read(3, 1 << 20).aborted_transactions is None
        assert log.read(log.end_offset, 100, isolation=Isolation.READ_COMMITTED).aborted_transactions == []
        expected = [offset for offset in range(90) if offset % 3 != 2 and offset // 3 % 2 == 0]
        for start in range(0, 90, 7):
            assert committed(log, start) == [offset for offset in expected if offset >= start]


def test_the_end_of_a_transaction_is_stable_once_consumers_may_see_it(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.advance_high_watermark(0)
        log.append(batch_of(1, 0, transactional=True))
        end(log, 1, commit=True)
        log.advance_high_watermark(1)
        assert log.last_stable_offset == 0
        log.advance_high_watermark(2)
        assert log.last_stable_offset == 2


def test_other_data_and_deposed_coordinators_are_refused_in_a_transaction(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.append(batch_of(1, 0, transactional=True))
        assert refusal(log, batch_of(1, 1)) is ErrorCode.INVALID_TXN_STATE
        end(log, 1, commit=True, coordinator_epoch=4)
        with pytest.raises(AppendRefused) as refused:
            end(log, 1, commit=True, coordinator_epoch=3)
        assert refused.value.code is ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_a_marker_without_data_leaves_no_trace_in_the_index(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        end(log, 1, commit=False)
        assert not list((tmp_path / "topic-0").glob("*.txnindex"))
        assert log.last_stable_offset == 1


# --------------------------------------------------------------------------------------------------- how it comes back


def fill(log: Log) -> None:
    """Some of everything, over several segments."""
    for number in range(12):
        log.append(batch_of(1, number))
        log.append(batch_of(2, number, transactional=True))
        log.append(batch_of(3 + number, 0))
        if number % 3:
            end(log, 2, commit=number % 2 == 0)
    log.append(batch_of(99, 0, transactional=True))


def known(log: Log) -> dict[int, tuple[object, ...]]:
    """Of each producer what outlasts the log's closing."""
    return {
        producer_id: (entry.epoch, entry.coordinator_epoch, entry.txn_first_offset, entry.batches[-1:])
        for producer_id, entry in log.producers.entries.items()
    }


def indexes(log: Log) -> list[object]:
    return [list(segment.txn_index.entries()) for segment in log._view.segments]


@pytest.mark.parametrize("damage", ["none", "unclean", "no snapshots", "bad snapshots", "bad indexes"])
def test_what_was_known_is_known_after_opening_again(tmp_path: Path, damage: str) -> None:
    with open_log(tmp_path) as log:
        fill(log)
        expected, entries, stable, seen = known(log), indexes(log), log.last_stable_offset, committed(log)
        assert len(log.segments) > 3
    folder = tmp_path / "topic-0"
    snapshots = sorted(folder.glob("*.snapshot"))
    if damage == "unclean":
        (tmp_path / ".kafka_cleanshutdown").unlink()
        (tmp_path / "recovery-point-offset-checkpoint").unlink()
    for path in snapshots if damage == "no snapshots" else ():
        path.unlink()
    for path in snapshots if damage == "bad snapshots" else ():
        path.write_bytes(path.read_bytes()[:-1])
    for path in folder.glob("*.txnindex") if damage == "bad indexes" else ():
        path.write_bytes(path.read_bytes() + b"\0")
    with open_log(tmp_path) as log:
        assert known(log) == expected
        assert indexes(log) == entries
        assert (log.last_stable_offset, committed(log)) == (stable, seen)
        named = {ignored.file for ignored in log.recovery.ignored}
        if damage == "bad snapshots":
            assert named == {path.name for path in snapshots}
        elif damage == "bad indexes":
            assert named == {segment.txn_index.path.name for segment in log._view.segments if segment.txn_index.count}
        else:
            assert named == set()
        assert log.append(batch_of(1, 11)).is_duplicate
        assert refusal(log, batch_of(1, 13)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.parametrize("position", range(34))
def test_a_transaction_index_that_lies_is_named_and_built_anew(tmp_path: Path, position: int) -> None:
    with open_log(tmp_path) as log:
        fill(log)
        expected, seen = indexes(log), committed(log)
        index = next(segment.txn_index.path for segment in log._view.segments if segment.txn_index.count)
    data = bytearray(index.read_bytes())
    data[position] ^= 0x40
    index.write_bytes(data)
    with open_log(tmp_path) as log:
        assert [ignored.file for ignored in log.recovery.ignored] == [index.name]
        assert (indexes(log), committed(log)) == (expected, seen)


@pytest.mark.parametrize("offset", range(0, 38, 3))
def test_after_a_truncation_only_what_is_left_is_known(tmp_path: Path, offset: int) -> None:
    with open_log(tmp_path) as log:
        fill(log)
        log.truncate_to(offset)
        expected = (known(log), indexes(log), log.last_stable_offset)
        log.close()
        for path in (tmp_path / "topic-0").glob("*.snapshot"):
            path.unlink()
    with open_log(tmp_path) as log:
        assert (known(log), indexes(log), log.last_stable_offset) == expected


def test_a_watched_log_finds_transactions_without_an_index(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        fill(log)
        expected = committed(log)
        for path in (tmp_path / "topic-0").glob("*.txnindex"):
            path.unlink()
        watched = Log.open(tmp_path / "topic-0", read_only=True)
        assert watched.last_stable_offset == log.last_stable_offset
        assert committed(watched) == expected
        end(log, 99, commit=True)
        end(log, 2, commit=False)
        watched.refresh()
        assert watched.last_stable_offset == log.end_offset


def test_a_transactional_batch_without_a_producer_keeps_nobody_waiting(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        batch = make_batch(1)
        header = BATCH_HEADER.read(batch)
        attributes = header.attributes | Attributes.TRANSACTIONAL
        log.append(write_batch(header._replace(attributes=attributes), memoryview(batch)[BATCH_HEADER.size :]))
        log.append(make_batch(1))
        with Log.open(log.folder, read_only=True) as watched:
            assert watched.last_stable_offset == log.last_stable_offset == 2


def test_an_offset_index_that_lies_hides_no_aborted_transaction(tmp_path: Path) -> None:
    with open_log(tmp_path, internal_segment_bytes="100000") as log:
        for number in range(10):
            log.append(batch_of(1, number, transactional=True))
        end(log, 1, commit=False)
        log.append(make_batch(1))
        index = log._view.segments[0].offset_index
        assert index.count > 3
        index.complete()
        name = log.segments[0].path.with_suffix(".index")
        data = bytearray(name.read_bytes())
        data[8 * 2 : 8 * 2 + 4] = (0).to_bytes(4, "big")  # at the third position, and too small an offset
        name.write_bytes(data)
        index.refresh()
        reach = index.behind(300)
        assert reach is not None
        part = log.read(0, reach.position, isolation=Isolation.READ_COMMITTED)
        assert part.aborted_transactions == [(1, 0)]
        assert committed(log) == [11]
