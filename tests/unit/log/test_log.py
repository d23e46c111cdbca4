"""One partition: append, read, roll, flush, truncate, delete."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from octavo.errors import (
    AppendRefused,
    ErrorCode,
    FormatError,
    InvalidInput,
    LimitExceeded,
    LogError,
    OffsetOutOfRange,
    PolicyViolation,
)
from octavo.log import Appended, Isolation, Log, LogConfig
from octavo.log.storage import File, Storage
from octavo.records import read_batches
from tests.unit.log.logs import SMALL, TIME_MS, keys, make_batch, open_log
from tests.unit.log.waiting import until


def test_what_is_appended_is_read(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        assert log.append(make_batch(3)) == Appended(0, 2, -1, 0)
        assert log.append(make_batch(2, first=3)) == Appended(3, 4, -1, 0)
        assert (log.start_offset, log.end_offset, log.high_watermark) == (0, 5, 5)
        assert keys(log) == [0, 1, 2, 3, 4]


def test_several_batches_in_one_call_get_one_offset_after_another(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        assert log.append(make_batch(2) + make_batch(3, first=2)) == Appended(0, 4, -1, 0)
        assert [batch.base_offset for batch in log.reader()] == [0, 2]


def test_more_batches_than_a_segment_holds_go_into_several(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.append(b"".join(make_batch(first=number) for number in range(50)))
        assert len(log.segments) > 3
        assert keys(log) == list(range(50))


def test_a_batch_larger_than_a_segment_is_refused(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.append(make_batch())
        with pytest.raises(AppendRefused) as refused:
            log.append(make_batch(size=2000))
        assert refused.value.code is ErrorCode.RECORD_LIST_TOO_LARGE
        assert keys(log) == [0]


def test_nothing_is_appended_when_there_is_nothing(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.append(make_batch(2))
        assert log.append_as_follower(b"") == Appended(-1, -1, -1, 0)
        assert log.end_offset == 2


def test_the_bytes_are_in_the_file_when_append_returns(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.append(make_batch(2))
        data = (tmp_path / "topic-0" / "00000000000000000000.log").read_bytes()
        assert [batch.count for batch in read_batches(data)] == [2]


def test_the_given_buffer_is_not_changed(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.append(make_batch(4))
        batch = bytearray(make_batch(4))
        before = bytes(batch)
        log.append(batch)
        assert batch == before


# --------------------------------------------------------------------------------------------------------------- reads


def test_a_read_begins_with_the_batch_that_holds_the_offset(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        for number in range(0, 100, 5):
            log.append(make_batch(5, first=number, size=10))
        for offset in range(100):
            part = log.read(offset, 1)
            batch = next(read_batches(part.records))
            assert batch.base_offset == offset // 5 * 5
            assert part.size == len(part.records) == batch.size


def test_a_read_gives_no_more_than_was_asked_for_but_a_first_batch(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        size = len(make_batch())
        for number in range(5):
            log.append(make_batch(first=number))
        assert log.read(0, 0).size == size
        assert log.read(0, 0, at_least_one=False).size == 0
        assert log.read(0, size + 10).size == size + 10
        assert log.read(1, 1 << 20).size == 4 * size


def test_a_slice_is_of_an_open_file(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.append(make_batch() + make_batch())
        part = log.read(1, 1000)
        assert part.file_slice is not None
        slice_ = part.file_slice
        assert os.pread(slice_.descriptor, slice_.size, slice_.position) == part.records


def test_an_offset_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.append(make_batch(10))
        log.delete_records_before(4)
        assert log.read(10, 100).records == b""
        for offset in (-1, 3, 11):
            with pytest.raises(OffsetOutOfRange) as error:
                log.read(offset, 100)
            assert (error.value.offset, error.value.start, error.value.end) == (offset, 4, 10)
        with pytest.raises(InvalidInput, match="max_bytes"):
            log.read(5, -1)


def test_consumers_see_up_to_the_high_watermark(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        for number in range(30):
            log.append(make_batch(first=number))
        assert log.advance_high_watermark(17) == 17
        log.append(make_batch(first=30))
        assert keys(log) == list(range(17))
        assert keys(log, 17) == []
        everything = [batch.base_offset for batch in log.reader(isolation=Isolation.LOG_END)]
        assert everything == list(range(31))
        assert log.advance_high_watermark(1000) == 31


def test_the_readers_buffer_doubles_up_to_its_maximum(tmp_path: Path) -> None:
    with open_log(tmp_path, internal_segment_bytes="100000") as log:
        log.append(make_batch(size=10))
        log.append(make_batch(size=5000))
        reader = log.reader(buffer_size=128, max_buffer_size=8192)
        assert [batch.base_offset for batch in reader] == [0, 1]
        assert reader.buffer_size == 8192
        log.append(make_batch(size=9000))
        with pytest.raises(LimitExceeded, match="8,192"):
            next(reader)


def test_a_reader_goes_on_where_the_log_has_grown(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.append(make_batch())
        reader = log.reader()
        assert [batch.base_offset for batch in reader] == [0]
        log.append(make_batch(2))
        assert [batch.base_offset for batch in reader] == [1]


def test_records_are_found_by_their_timestamps(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        for number in range(0, 60, 3):
            log.append(make_batch(3, first=number, time_ms=TIME_MS + 10 * number, size=10))
        assert len(log.segments) > 1
        for offset in range(60):
            time_ms = TIME_MS + 10 * (offset // 3 * 3) + offset % 3
            assert log.offset_for_timestamp(time_ms) == (offset, time_ms, 0)
        assert log.offset_for_timestamp(TIME_MS + 10_000) is None
        assert log.max_timestamp_offset() == (59, TIME_MS + 572, 0)


def test_a_log_without_records_has_no_timestamps(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        assert log.max_timestamp_offset() is None
        assert log.offset_for_timestamp(2**62) is None


# ------------------------------------------------------------------------------------------------------ roll and flush


def test_a_roll_of_an_empty_segment_changes_nothing(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        assert log.roll() == 0
        log.append(make_batch(3))
        assert log.roll() == log.roll() == 3
        assert [segment.base_offset for segment in log.segments] == [0, 3]


def test_a_roll_and_a_flush_move_the_recovery_point(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.append(make_batch(3))
        assert log.recovery_point == 0
        log.roll()
        until(lambda: log.recovery_point == 3)
        log.append(make_batch(2))
        log.flush()
        assert log.recovery_point == 5


def test_a_flush_comes_after_so_many_messages(tmp_path: Path) -> None:
    with open_log(tmp_path, flush_messages="10") as log:
        points = []
        for _ in range(4):
            log.append(make_batch(4, size=10))
            points.append(log.recovery_point)
        assert points == [0, 0, 12, 12]


def test_room_made_in_advance_is_given_back(tmp_path: Path) -> None:
    path = tmp_path / "topic-0" / "00000000000000000001.log"
    with open_log(tmp_path, preallocate="true") as log:
        log.append(make_batch())
        log.roll()
        log.append(make_batch(first=1))
        assert path.stat().st_size == 1000
        assert keys(log) == [0, 1]
    assert path.stat().st_size == len(make_batch())


def test_a_wider_configuration_holds_from_the_next_append(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.config = LogConfig.from_properties({"internal.segment.bytes": "100000"})
        log.append(make_batch(size=2000))
        assert log.end_offset == 1


# ------------------------------------------------------------------------------------------------- truncate and delete


@pytest.mark.parametrize("offset", range(0, 31, 3))
def test_truncation_removes_what_reaches_to_the_offset(tmp_path: Path, offset: int) -> None:
    with open_log(tmp_path) as log:
        for number in range(0, 30, 2):
            log.append(make_batch(2, first=number, size=20))
        log.flush()
        assert log.truncate_to(offset) == (offset < 30)
        assert log.end_offset == min(offset, 30)
        assert keys(log) == list(range(min(offset, 30) // 2 * 2))
        assert log.recovery_point == min(offset, 30)
        log.append(make_batch(first=100))
        assert keys(log) == [*range(min(offset, 30) // 2 * 2), 100]
    with open_log(tmp_path) as log:
        assert keys(log) == [*range(min(offset, 30) // 2 * 2), 100]


def test_records_are_deleted_before_an_offset(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        for number in range(30):
            log.append(make_batch(first=number))
        assert log.delete_records_before(13) == 13
        assert keys(log) == list(range(13, 30))
        gone = [expired.segment.base_offset for expired in log.apply_retention(TIME_MS)]
        assert gone
        assert gone[0] == 0
        assert log.delete_records_before(5) == 13
        assert log.delete_records_before(-1) == 30
        with pytest.raises(OffsetOutOfRange):
            log.delete_records_before(31)
    with open_log(tmp_path) as log:
        assert log.start_offset == 30


def test_records_of_a_compacted_topic_are_not_deleted(tmp_path: Path) -> None:
    with open_log(tmp_path, cleanup_policy="compact") as log:
        log.append(make_batch(3))
        with pytest.raises(PolicyViolation, match=r"cleanup\.policy") as error:
            log.delete_records_before(2)
        assert error.value.code is ErrorCode.POLICY_VIOLATION


def test_deleted_files_wait_for_their_delay(tmp_path: Path) -> None:
    with open_log(tmp_path, retention_ms="1000", file_delete_delay_ms="500") as log:
        for number in range(30):
            log.append(make_batch(first=number))
        before = len(log.segments)
        assert len(log.apply_retention(TIME_MS + 1001)) == before
        assert (log.start_offset, log.end_offset) == (30, 30)
        waiting = list((tmp_path / "topic-0").glob("*.log.deleted"))
        assert len(waiting) == before
        assert log.delete_files(TIME_MS + 1500) == 0
        assert log.delete_files(TIME_MS + 1501) == before
        assert not list((tmp_path / "topic-0").glob("*.deleted"))


def test_a_reader_of_a_deleted_segment_finishes(tmp_path: Path) -> None:
    with open_log(tmp_path, retention_ms="0", file_delete_delay_ms="0") as log:
        for number in range(30):
            log.append(make_batch(first=number))
        part = log.read(0, 1 << 20)
        log.apply_retention(TIME_MS + 1)
        log.delete_files(TIME_MS + 1)
        assert not (tmp_path / "topic-0" / "00000000000000000000.log").exists()
        assert next(read_batches(part.records)).base_offset == 0


def test_nothing_is_deleted_where_the_configuration_is_not_known(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.append(make_batch(3))
    with Log.open(tmp_path / "topic-0", clock=lambda: TIME_MS) as log:
        assert not log.config_is_known
        assert log.apply_retention(2**62) == []
        log.config = LogConfig()
        assert len(log.apply_retention(2**62)) == 1


# -------------------------------------------------------------------------------------------------------------- epochs


def test_a_new_leader_starts_where_the_log_ends(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.append(make_batch(4))
        log.become_leader(3)
        log.append(make_batch(2))
        assert log.epochs == ((0, 0), (3, 4))
        assert [batch.leader_epoch for batch in log.reader()] == [0, 3]
        assert log.end_offset_for_epoch(1) == (0, 4)
        assert log.end_offset_for_epoch(3) == (3, 6)
        with pytest.raises(InvalidInput, match="is over"):
            log.become_leader(2)
    with open_log(tmp_path) as log:
        assert log.leader_epoch == 3


def test_a_follower_keeps_what_the_leader_gave(tmp_path: Path) -> None:
    (tmp_path / "leader").mkdir()
    (tmp_path / "follower").mkdir()
    with open_log(tmp_path / "leader") as leader, open_log(tmp_path / "follower") as follower:
        leader.become_leader(7)
        for number in range(20):
            leader.append(make_batch(first=number))
        while follower.end_offset < leader.end_offset:
            follower.append_as_follower(leader.read(follower.end_offset, 400, isolation=Isolation.LOG_END).records)
        assert follower.epochs == leader.epochs
        assert keys(follower) == keys(leader)


def at_offset(batch: bytes, offset: int) -> bytes:
    return offset.to_bytes(8) + batch[8:12] + bytes(4) + batch[16:]


def test_offsets_that_are_left_out_between_segments_do_not_look_like_a_missing_segment(tmp_path: Path) -> None:
    offsets = [0, 1, 50, 51, 700, 1 << 30, (1 << 31) - 1]
    for offset in offsets:
        with open_log(tmp_path, internal_segment_bytes="200") as log:
            log.append_as_follower(at_offset(make_batch(first=offset), offset), covers_gaps=True)
    with open_log(tmp_path) as log:
        assert [segment.base_offset for segment in log.segments] == [0, 1, 2, 51, 52, 701, (1 << 30) + 1]
        assert keys(log) == offsets


def test_an_empty_log_can_begin_later(tmp_path: Path) -> None:
    late = 1 << 40
    with open_log(tmp_path) as log:
        log.begin_at(0)
        log.begin_at(late)
        assert (log.start_offset, log.end_offset, log.high_watermark) == (late, late, late)
    with open_log(tmp_path) as log:
        assert (log.start_offset, log.end_offset) == (late, late)
        with pytest.raises(InvalidInput, match="cannot begin at 5"):
            log.begin_at(5)
        assert log.append(make_batch()).base_offset == late
        with pytest.raises(InvalidInput, match="cannot begin"):
            log.begin_at(late + 5)
        log.truncate_to(0)
        assert log.append(make_batch()).base_offset == 0


# --------------------------------------------------------------------------------------------------------------- close


def test_a_closed_log_does_nothing_more(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(make_batch())
    log.close()
    log.close()
    for refused in (lambda: log.append(make_batch()), log.flush, log.roll, lambda: log.truncate_to(0)):
        with pytest.raises(LogError, match="closed"):
            refused()


def test_a_log_goes_on_where_it_was_closed(tmp_path: Path) -> None:
    for round_ in range(4):
        with open_log(tmp_path) as log:
            assert log.recovery.was_clean == (round_ > 0)
            assert log.recovery.is_unremarkable
            assert keys(log) == list(range(10 * round_))
            for number in range(10):
                log.append(make_batch(first=10 * round_ + number))


# -------------------------------------------------------------------------------------------------- what cannot be done


class Faulty(Storage):
    """A disk on which some operation on files of some name fails, as long as it is told to."""

    def __init__(self) -> None:
        self.fails: tuple[str, str] | None = None

    def _check(self, what: str, path: Path) -> None:
        if self.fails is not None and what == self.fails[0] and path.name.endswith(self.fails[1]):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    def open_to_write(self, path: Path, *, create: bool = False) -> File:
        self._check("create" if create else "open", path)
        return super().open_to_write(path, create=create)

    def rename(self, source: Path, target: Path) -> None:
        self._check("rename", source)
        super().rename(source, target)

    def sync_folder(self, path: Path) -> None:
        self._check("sync", path)
        super().sync_folder(path)


def open_faulty(folder: Path) -> tuple[Log, Faulty]:
    storage = Faulty()
    config = LogConfig.from_properties(SMALL)
    return Log.open(folder / "topic-0", config, clock=lambda: TIME_MS, storage=storage), storage


@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex"])
def test_a_roll_that_fails_leaves_nothing_behind(tmp_path: Path, suffix: str) -> None:
    log, storage = open_faulty(tmp_path)
    log.append(make_batch(3, size=10))
    storage.fails = ("create", suffix)
    with pytest.raises(OSError, match="No space"):
        log.roll()
    log.append(make_batch(3, first=3, size=10))
    storage.fails = None
    log.append(make_batch(3, first=6, size=10))
    log.close()
    with open_log(tmp_path) as log:
        assert keys(log) == list(range(9))


def test_an_empty_segment_that_a_roll_left_does_not_end_the_log(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.append(make_batch(5, size=10))
    (tmp_path / "topic-0" / "00000000000000000002.log").touch()
    with open_log(tmp_path) as log:
        assert keys(log) == list(range(5))
        assert log.recovery.removed == ["00000000000000000002.log"]


def test_what_was_deleted_does_not_come_back_where_a_truncation_reaches_before_the_start(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        for first in range(0, 20, 5):
            log.append(make_batch(5, first=first))
        log.delete_records_before(8)
        log.truncate_to(8)  # the batch from 5 to 9 goes whole
        assert (log.start_offset, log.end_offset) == (8, 8)
    with open_log(tmp_path) as log:
        assert (log.start_offset, log.end_offset) == (8, 8)
        assert log.append(make_batch(first=8)).base_offset == 8
        assert keys(log) == [8]


@pytest.mark.parametrize("fails", [("rename", ".log"), ("sync", "topic-0")])
def test_a_log_that_could_not_be_truncated_takes_no_more_until_it_is_opened_again(
    tmp_path: Path, fails: tuple[str, str]
) -> None:
    log, storage = open_faulty(tmp_path)
    for number in range(30):
        log.append(make_batch(first=number))
    storage.fails = fails
    with pytest.raises(OSError, match="No space"):
        log.truncate_to(3)
    storage.fails = None
    assert log.failure is not None
    for refused in (lambda: log.append(make_batch()), log.roll, log.flush, lambda: log.truncate_to(1)):
        with pytest.raises(LogError, match="open it again"):
            refused()
    log.close()
    with open_log(tmp_path) as log:
        assert not log.recovery.was_clean
        assert keys(log) == list(range(log.end_offset))
        log.append(make_batch(first=log.end_offset))
        assert keys(log) == list(range(log.end_offset))


def test_what_could_not_be_put_away_does_not_come_back(tmp_path: Path) -> None:
    log, storage = open_faulty(tmp_path)
    for number in range(30):
        log.append(make_batch(first=number))
    storage.fails = ("rename", ".log")
    with pytest.raises(OSError, match="No space"):
        log.delete_oldest(2)
    start = log.start_offset
    assert start > 0
    log.close()
    with open_log(tmp_path) as log:
        assert log.start_offset == start
        assert keys(log) == list(range(start, 30))


def test_a_leader_that_has_followed_goes_on_with_the_epoch_it_has_seen(tmp_path: Path) -> None:
    (tmp_path / "leader").mkdir()
    (tmp_path / "follower").mkdir()
    with open_log(tmp_path / "leader") as leader, open_log(tmp_path / "follower") as follower:
        leader.become_leader(6)
        leader.append(make_batch(2))
        follower.append_as_follower(leader.read(0, 1000).records)
        follower.append(make_batch())
        assert follower.epochs == ((6, 0),)


def test_many_segments_take_few_descriptors(tmp_path: Path) -> None:
    def count() -> int:
        return len(list(Path("/dev/fd").iterdir()))

    with open_log(tmp_path, internal_segment_bytes="100") as log:
        before = count()
        for number in range(200):
            log.append(make_batch(first=number, size=0))
        assert len(log.segments) == 200
        assert keys(log) == list(range(200))
        assert count() - before < 3 * 140


def test_a_log_that_could_not_be_closed_gives_its_lock_back(tmp_path: Path) -> None:
    log, storage = open_faulty(tmp_path)
    log.append(make_batch(3))
    storage.fails = ("sync", "topic-0")
    with pytest.raises(OSError, match="No space"):
        log.close()
    with open_log(tmp_path) as log:
        assert not log.recovery.was_clean
        assert keys(log) == [0, 1, 2]


def test_a_search_by_time_looks_into_nothing_before_the_start(tmp_path: Path) -> None:
    with open_log(tmp_path, internal_segment_bytes="100000") as log:
        for number in range(10):
            log.append(make_batch(first=number, time_ms=TIME_MS + number))
        segment = log._view.segments[0]
        size = segment.size // 10
        with segment.path.open("r+b") as file:
            for number in range(7):
                file.seek(number * size + 70)
                file.write(b"damage")
        assert segment.find_timestamp(TIME_MS, 7) == (7, TIME_MS + 7, 0)
        assert segment.find_timestamp(TIME_MS + 8, 7) == (8, TIME_MS + 8, 0)
        assert segment.find_timestamp(TIME_MS, 10) is None
        with pytest.raises(FormatError):
            segment.find_timestamp(TIME_MS, 6)
