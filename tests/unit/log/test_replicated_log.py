"""What a replica does to its log: follow a leader, be cut by its epochs, begin anew where the leader has more."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.errors import AppendRefused, InvalidInput
from octavo.log import Appended, Log
from tests.unit.log.logs import keys, make_batch, open_log


def led(count: int, *, first: int, epoch: int) -> bytes:
    """A batch of a leader, with its offsets and its epoch."""
    batch = make_batch(count, first=first)
    return first.to_bytes(8) + batch[8:12] + epoch.to_bytes(4) + batch[16:]


def fill(log: Log) -> None:
    """Epoch 0 from 0 to 3, epoch 2 from 4 to 9, epoch 5 from 10 to 11."""
    log.append_as_follower(led(4, first=0, epoch=0) + led(6, first=4, epoch=2) + led(2, first=10, epoch=5))
    assert log.epochs == ((0, 0), (2, 4), (5, 10))


# ------------------------------------------------------------------------------------------------------------ following


def test_batches_of_a_leader_that_is_not_known_yet_are_left_out(tmp_path: Path) -> None:
    batches = led(2, first=0, epoch=3) + led(2, first=2, epoch=4) + led(2, first=4, epoch=3)
    with open_log(tmp_path) as log:
        assert log.append_as_follower(batches, leader_epoch=2) == Appended(-1, -1, -1, 0)
        assert log.append_as_follower(batches, leader_epoch=3) == Appended(0, 1, -1, 0)
        assert log.epochs == ((3, 0),)
        with pytest.raises(AppendRefused):
            log.append_as_follower(batches, leader_epoch=4)
        assert log.append_as_follower(led(2, first=2, epoch=4), leader_epoch=4) == Appended(2, 3, -1, 0)


def test_the_high_watermark_of_a_replica_is_told_and_not_found(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        assert log.advance_high_watermark(0) == 0
        fill(log)
        assert log.high_watermark == 0
        assert log.advance_high_watermark(5) == 5
        assert keys(log) == [0, 1, 2, 3]  # whole batches only
        assert log.truncate_to(3)
        assert (log.high_watermark, log.end_offset) == (3, 3)


def test_a_log_starts_where_the_leaders_starts_whatever_its_policy(tmp_path: Path) -> None:
    with open_log(tmp_path, cleanup_policy="compact") as log:
        log.advance_high_watermark(0)
        fill(log)
        assert log.follow_start(5) == 0
        log.advance_high_watermark(6)
        assert log.follow_start(5) == 5
        assert log.follow_start(3) == 5
        assert log.follow_start(30) == 6
        assert (log.start_offset, log.high_watermark, log.end_offset) == (6, 6, 12)


# ---------------------------------------------------------------------------------------------------------- truncation


@pytest.mark.parametrize(
    ("epoch", "end_offset", "left"),
    [
        (5, 12, 12),  # nothing is different
        (5, 11, 11),  # the leader has less of the epoch
        (5, 40, 12),  # it has more
        (2, 10, 10),  # it has no epoch 5
        (2, 7, 7),
        (2, 9, 9),
        (2, 30, 10),  # its epoch 2 is longer, and this log's ends at 10
        (4, 30, 10),  # it has an epoch that is not here: the one before stays, and has to be asked for
        (1, 2, 4),
        (0, 2, 2),
        (9, 3, 3),  # cannot be, for nobody asked
    ],
)
def test_a_leader_says_where_its_epoch_ends(tmp_path: Path, epoch: int, end_offset: int, left: int) -> None:
    with open_log(tmp_path) as log:
        fill(log)
        assert log.truncate_to_epoch(epoch, end_offset) == left
        assert log.end_offset == left
        assert all(entry.start_offset < left for entry in log.epochs)


def test_a_log_without_epochs_is_cut_where_the_leaders_ends(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.restart_at(50)
        assert log.truncate_to_epoch(3, 70) == 50
        assert log.truncate_to_epoch(3, 40) == 40
        with pytest.raises(InvalidInput):
            log.truncate_to_epoch(3, -1)


def test_the_epoch_of_a_leader_that_appended_nothing_is_on_the_disk_and_goes_with_a_truncation(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        fill(log)
        assert log.become_leader(7) == 12
        assert "7 12" in (log.folder / "leader-epoch-checkpoint").read_text()
        assert log.end_offset_for_epoch(7) == (7, 12)
        assert log.truncate_to_epoch(6, 40) == 12
        assert log.epochs == ((0, 0), (2, 4), (5, 10))


# ------------------------------------------------------------------------------------------------------ beginning anew


@pytest.mark.parametrize("offset", [0, 3, 10, 12, 13, 5000])
def test_a_log_begins_anew_at_any_offset(tmp_path: Path, offset: int) -> None:
    with open_log(tmp_path) as log:
        fill(log)
        log.flush()
        log.advance_high_watermark(6)
        log.restart_at(offset)
        assert (log.start_offset, log.high_watermark, log.end_offset) == (offset, offset, offset)
        assert log.epochs == ()
        assert log.recovery_point <= offset
        log.append_as_follower(led(2, first=offset, epoch=6), leader_epoch=6)
        assert log.high_watermark == offset
    with open_log(tmp_path) as log:
        assert (log.start_offset, log.end_offset) == (offset, offset + 2)
        assert keys(log) == [offset, offset + 1]
        assert log.epochs == ((6, offset),)
        assert log.recovery.is_unremarkable


def test_a_log_cannot_begin_before_offset_0(tmp_path: Path) -> None:
    with open_log(tmp_path) as log, pytest.raises(InvalidInput):
        log.restart_at(-1)


def test_an_empty_log_follows_a_leader_whose_log_begins_inside_a_batch(tmp_path: Path) -> None:
    """After records were deleted there: the batch begins before the start of the log."""
    with open_log(tmp_path) as log:
        log.restart_at(7)
        batch = led(6, first=4, epoch=2)
        with pytest.raises(AppendRefused):
            log.append_as_follower(batch, leader_epoch=2)
        log.restart_at(4)
        log.append_as_follower(batch, leader_epoch=2)
        log.advance_high_watermark(10)
        log.delete_records_before(7)
        assert (log.start_offset, log.end_offset) == (7, 10)
