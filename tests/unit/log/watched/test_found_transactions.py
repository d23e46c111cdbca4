"""Transactions as they are found in the data: what is open, what was aborted, and what cannot be told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from octavo.errors import CorruptFile, FormatError
from octavo.log import DataDirectory, Isolation
from octavo.log.producer_state.aborted import ABORT, COMMIT, DATA, AbortedRanges, TransactionScan
from octavo.log.segment.damage import refuse
from octavo.log.segment.header_scan import scan_headers
from octavo.log.storage import DISK, File
from octavo.log.watched.found_transactions import FoundTransactions
from tests.unit.log.logs import make_batch
from tests.unit.log.transactional import damage, end, position_of, write

FIRST = "00000000000000000000.log"


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """The folder of a partition: 0 aborted at 3, 2 open; 4 is of nobody, and 5 committed at 6."""
    with DataDirectory.open(tmp_path) as data:
        data.create_topic("events", config={"retention.ms": "-1"})
        log = data.log("events", 0)
        write(log, 1)
        log.append(make_batch())
        write(log, 2)
        end(log, 1, commit=False)
        log.append(make_batch())
        write(log, 1, 1)
        end(log, 1, commit=True)
    return tmp_path / "events-0"


def test_events_are_taken_up_to_a_bound_that_rises(partition: Path) -> None:
    with DataDirectory.open(partition.parent, read_only=True) as data:
        view = data.log("events", 0).view
    found = FoundTransactions()
    expected = {1: 0, 2: 0, 3: 0, 4: 2, 6: 2, 7: 2}
    for bound, stable in expected.items():
        assert found.decided_below(view, bound) == stable
        assert found.offset == bound
        assert FoundTransactions().decided_below(view, bound) == stable
    assert [entry[:3] for entry in found.between(0, 7, 2)] == [(1, 0, 3)]
    found.forget_aborted()
    assert found.between(0, 7, 2) == []
    assert FoundTransactions(offset=4, opened={2: 2}).decided_below(view, 7) == 2
    assert FoundTransactions(offset=4).decided_below(view, 7) == 7


def test_damage_below_the_bound_is_told_and_none_behind_it(partition: Path) -> None:
    position = damage(partition / FIRST, 4, 8)
    with DataDirectory.open(partition.parent, read_only=True) as data:
        view = data.log("events", 0).view
        found = FoundTransactions()
        assert found.decided_below(view, 4) == 2
        for _ in range(2):
            with pytest.raises(CorruptFile) as failed:
                found.decided_below(view, 5)
            assert (failed.value.path, failed.value.position) == (partition / FIRST, position)


def test_a_marker_whose_checksum_is_wrong_is_never_a_commit(partition: Path) -> None:
    position = damage(partition / FIRST, 3, 70)
    with DataDirectory.open(partition.parent, read_only=True) as data:
        view = data.log("events", 0).view
    with pytest.raises(CorruptFile, match=f"{FIRST}: at byte {position}: checksum is "):
        FoundTransactions().decided_below(view, 7)
    told: list[int] = []

    def pass_over(file: File, error: FormatError, end: int) -> int:
        told.append(error.position)
        return end

    found = FoundTransactions(on_damage=pass_over)
    assert found.decided_below(view, 4) == 2
    assert told == [position]
    assert [entry[:3] for entry in found.between(0, 4, 2)] == [(1, 0, 3)]


def test_who_has_asked_once_what_is_decided_knows_it_after_every_look(partition: Path) -> None:
    with (
        DataDirectory.open(partition.parent) as data,
        DataDirectory.open(partition.parent, read_only=True) as watched,
    ):
        seen = watched.log("events", 0)
        assert seen.last_stable_offset == 2
        end(data.log("events", 0), 2, commit=True)
        write(data.log("events", 0), 1, 2)
        data.write_checkpoints()
        assert seen.refresh()
        assert (seen.view.high_watermark, seen.view.last_stable_offset) == (9, 8)


def test_a_file_that_was_replaced_since_the_look_is_not_taken_for_a_damaged_one(partition: Path) -> None:
    with DataDirectory.open(partition.parent, read_only=True) as data:
        log = data.log("events", 0)
        path = partition / FIRST
        shorter = path.read_bytes()[position_of(path, 1) :]  # as if all before had been cleaned away
        path.unlink()
        for index in partition.glob("*index"):
            index.unlink()
        path.write_bytes(shorter)
        assert log.last_stable_offset == 2


def test_committed_data_of_a_watched_log_are_not_told_from_others_behind_damage(partition: Path) -> None:
    damage(partition / FIRST, 1, 8)
    with DataDirectory.open(partition.parent, read_only=True) as data:
        log = data.log("events", 0)
        with pytest.raises(CorruptFile):
            log.read(0, 1000, isolation=Isolation.READ_COMMITTED)


def test_a_scan_for_some_data_notes_nothing_else(partition: Path) -> None:
    file = DISK.open(partition / FIRST)

    def events(data_before: int | None) -> list[int]:
        taken = TransactionScan(data_before=data_before, on_damage=refuse)
        for table, shift in scan_headers(file, 0, file.size()):
            for row in range(len(table)):
                taken.note_table(file, table[row : row + 1], shift)
        return taken.events.tolist()

    first = [0, 1, DATA, 3, 1, ABORT]
    assert events(1) == first
    assert events(0) == []
    assert events(3) == [0, 1, DATA, 2, 2, DATA, 3, 1, ABORT]
    assert events(None) == [0, 1, DATA, 2, 2, DATA, 3, 1, ABORT, 5, 1, DATA, 6, 1, COMMIT]


def test_many_offsets_are_looked_up_as_one_is() -> None:
    ranges = AbortedRanges([(1, 5, 8), (1, 9, 9), (1, 20, 30), (2, 0, 100)])
    offsets = np.arange(40)
    for producer_id in (1, 2, 3):
        assert ranges.holds_of(producer_id, offsets).tolist() == [
            ranges.holds(producer_id, offset) for offset in offsets.tolist()
        ]
