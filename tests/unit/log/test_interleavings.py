"""A reader and a writer, each of which does something just when the other is in the middle of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from octavo.log import Isolation, Log, LogConfig
from octavo.log.names import LOG, TXN_INDEX
from octavo.log.producer_state.aborted import AbortedRanges
from octavo.log.segment.segment import Segment
from octavo.log.segment.transaction_index import AbortedEntry
from octavo.log.storage import File, Storage
from octavo.records import Batch, read_batches
from tests.unit.log.logs import SMALL, TIME_MS, make_batch
from tests.unit.log.producer_state.test_states import DAY_MS, batch_of, committed, end

COMMITTED = Isolation.READ_COMMITTED


class Interrupted(Storage):
    """A disk on which something happens, once, before an operation is over."""

    def __init__(self) -> None:
        self.before_open: tuple[str, Callable[[], object]] | None = None  # of a file whose name ends so
        self.on_open: Callable[[], object] | None = None
        self.on_sync_folder: Callable[[], object] | None = None

    def open(self, path: Path) -> File:
        if self.before_open is not None and path.name.endswith(self.before_open[0]):
            (_, happens_before), self.before_open = self.before_open, None
            happens_before()
        try:
            return super().open(path)
        finally:
            happens, self.on_open = self.on_open, None
            if happens is not None:
                happens()

    def sync_folder(self, path: Path) -> None:
        super().sync_folder(path)
        happens, self.on_sync_folder = self.on_sync_folder, None
        if happens is not None:
            happens()


@pytest.fixture
def disk() -> Interrupted:
    return Interrupted()


def opened(folder: Path, disk: Interrupted) -> Log:
    return Log.open(folder / "t-0", LogConfig.from_properties(SMALL), clock=lambda: TIME_MS, storage=disk)


def shown(batches: list[Batch], aborted: AbortedRanges) -> list[int]:
    return [record.offset for batch in batches if aborted.shows(batch) for record in batch]


def test_a_file_that_a_reader_opens_while_a_writer_does_is_still_written(tmp_path: Path, disk: Interrupted) -> None:
    opened(tmp_path, disk).close()
    with opened(tmp_path, disk) as log:
        log.append(make_batch(1))
        log._state.forget_files()
        disk.on_open = lambda: log.append(make_batch(1))
        assert log.read(0, 1000).size
        assert log.append(make_batch(1)).base_offset == 2


def test_an_index_entry_that_is_written_while_a_reader_looks_for_the_first_stays(
    tmp_path: Path, disk: Interrupted
) -> None:
    with opened(tmp_path, disk) as log:
        log.append(make_batch(1))
    with opened(tmp_path, disk) as log:
        log.append(batch_of(1, 0, transactional=True))
        log.append(batch_of(2, 0, transactional=True))
        log.read(0, 1000)  # the data are open then, and the next to be looked for is the transaction index
        disk.on_open = lambda: end(log, 1, commit=False)
        assert log.read(0, 1000, isolation=COMMITTED).size
        end(log, 2, commit=False)
        assert committed(log) == [0]


def test_what_is_read_again_after_a_truncation_has_its_own_aborted_transactions(tmp_path: Path) -> None:
    with opened(tmp_path, Interrupted()) as log:
        log.append(make_batch(2))
        log.append(batch_of(1, 0, transactional=True))
        end(log, 1, commit=True)
        part = log.read(0, 1000, isolation=COMMITTED)
        log.truncate_to(2)
        log.append(batch_of(3, 0, transactional=True))
        end(log, 3, commit=False)
        assert shown(list(read_batches(part.records)), part.aborted_ranges) == [0, 1]


def test_while_a_marker_is_truncated_nothing_that_it_decided_is_seen(tmp_path: Path, disk: Interrupted) -> None:
    with opened(tmp_path, disk) as log:
        log.append(make_batch(2))
        log.append(batch_of(1, 0, transactional=True))
        end(log, 1, commit=False)
        seen: list[list[int]] = []
        disk.on_sync_folder = lambda: seen.append(committed(log))
        log.truncate_to(3)
        assert seen == [[]]
        assert committed(log) == [0, 1]


def test_a_truncation_finds_transactions_of_producers_that_are_forgotten(tmp_path: Path) -> None:
    with opened(tmp_path, Interrupted()) as log:
        log.append(make_batch(2))
        log.append(batch_of(1, 0, transactional=True))
        end(log, 1, commit=False)
        assert log.expire_producers(TIME_MS + DAY_MS) == [1]
        log.truncate_to(3)
        assert committed(log) == [0, 1]
        assert log.last_stable_offset == 2


def test_when_a_segment_was_written_is_known_to_who_has_it_in_view(tmp_path: Path) -> None:
    with opened(tmp_path, Interrupted()) as log:
        log.append(make_batch(1))
        log.roll()
        segment = log._view.segments[0]
        before = segment.modified_ms()
        segment.put_away()
        assert segment.modified_ms() == before


def replaced(segment: Segment) -> None:
    """What compaction does with a segment of which nothing stays."""
    segment.put_away()
    segment.path.write_bytes(b"")
    segment.txn_index.path.write_bytes(b"")


@pytest.mark.parametrize("suffix", [LOG, TXN_INDEX])
def test_a_segment_that_is_replaced_while_it_is_opened_is_the_old_one_to_who_has_it_in_view(
    tmp_path: Path, disk: Interrupted, suffix: str
) -> None:
    with opened(tmp_path, disk) as log:
        log.append(batch_of(1, 0, transactional=True))
        end(log, 1, commit=False)
        log.roll()
        log._state.forget_files()
        segment = log._view.segments[0]
        before = segment.path.read_bytes()
        disk.before_open = suffix, lambda: replaced(segment)
        for _ in range(2):
            aborted: list[AbortedEntry] = []
            segment.txn_index.collect(0, 3, aborted)
            assert [entry[:3] for entry in aborted] == [(1, 0, 1)]
            assert segment.file.read_at(segment.size, 0) == before
            segment.sync()  # by somebody who has begun to flush before
            segment.forget()  # by somebody who has too many files open, and has looked before
