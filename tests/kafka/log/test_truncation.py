"""Truncation, and the epochs that tell followers where to truncate."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from octavo.records import read_batches
from tests.batches import TIME_MS
from tests.kafka.judge import Judge
from tests.kafka.log.conftest import OpenBoth
from tests.kafka.log.samples import batch, replicated
from tests.kafka.log.side_by_side import FOLDER, SideBySide
from tests.kafka.unified_log import Appended, UnifiedLog

CONFIG: Final = {"internal.segment.bytes": "700", "index.interval.bytes": "100"}
SETTINGS: Final = {"internal_segment_bytes": 700, "index_interval_bytes": 100}


@pytest.fixture(scope="module")
def source(kafka_broker: Judge, memory_path: Path) -> Path:
    """A log of several segments and epochs, cleanly closed."""
    folder = memory_path / "source" / FOLDER
    folder.parent.mkdir()
    log = UnifiedLog.open(kafka_broker, folder, CONFIG, clock=lambda: TIME_MS)
    for epoch, counts in ((0, (1, 5, 2, 1)), (2, (3, 1, 4)), (3, (1, 1, 6, 1)), (7, (2, 3))):
        log.become_leader(epoch)
        for number, count in enumerate(counts):
            log.append(batch(count, size=30, timestamp_ms=TIME_MS + 10 * number - epoch))
    assert len(log.segments) > 3
    log.close()
    return folder


def _opened(source: Path, open_both: OpenBoth, **more: object) -> SideBySide:
    """Copies of the source. Kafka looks for the largest timestamp that a truncation leaves only where it knew one."""
    both = open_both(source=source, **SETTINGS, **more)
    both.max_timestamp_offset()
    return both


def test_at_every_offset(source: Path, open_both: OpenBoth) -> None:
    end = open_both(source=source, **SETTINGS).state.end_offset
    for offset in range(end + 2):
        both = _opened(source, open_both)
        both.truncate_to(offset)
        assert both.state.end_offset == min(offset, end)
        both.read_everything((1, 2000))
        assert both.epochs == [entry for entry in [(0, 0), (2, 9), (3, 17), (7, 26)] if entry[1] < offset]
        both.close()


def test_and_append_again(source: Path, open_both: OpenBoth) -> None:
    end = open_both(source=source, **SETTINGS).state.end_offset
    for offset in range(0, end, 3):
        both = _opened(source, open_both)
        both.truncate_to(offset)
        both.become_leader(8)
        assert both.append(batch(2)) == Appended(offset, offset + 1, -1, 0)
        for _ in range(8):
            both.append(batch(3, size=20))
        both.truncate_to(offset + 1)
        both.append(batch(1))
        both.read_everything((1, 2000))
        both.close()
        both.open()
        both.append(batch(1))
        both.close()


def test_below_the_start_and_the_first_segment(source: Path, open_both: OpenBoth) -> None:
    for offset in (0, 3, 11, 12, 20):
        both = _opened(source, open_both, retention_ms=-1)
        both.delete_records_before(12)
        both.apply_retention()
        both.truncate_to(offset)
        both.append(batch(2))
        both.read_everything((1, 2000))
        both.close()


def test_takes_the_high_watermark_along(open_both: OpenBoth) -> None:
    both = open_both(follows_end=False)
    for _ in range(5):
        both.append(batch(2))
    both.advance_high_watermark(7)
    both.truncate_to(8)
    assert both.state.high_watermark == 7
    both.truncate_to(5)
    assert both.state.high_watermark == 5
    both.close()


def test_where_epochs_end(source: Path, open_both: OpenBoth) -> None:
    both = open_both(source=source, **SETTINGS)
    assert both.epochs == [(0, 0), (2, 9), (3, 17), (7, 26)]
    assert both.end_offset_for_epoch(1) == (0, 9)
    assert both.end_offset_for_epoch(7) == (7, 31)
    for epoch in range(-2, 10):
        both.end_offset_for_epoch(epoch)
    both.delete_records_before(20)
    for epoch in range(-2, 10):
        both.end_offset_for_epoch(epoch)
    both.truncate_to(26)
    for epoch in range(-2, 10):
        both.end_offset_for_epoch(epoch)
    both = open_both()
    for epoch in range(-2, 2):
        both.end_offset_for_epoch(epoch)


def test_a_follower_learns_epochs_from_batches(open_both: OpenBoth) -> None:
    both = open_both()
    for offset, epoch in ((0, 0), (1, 0), (2, 3), (3, 3), (10, 4), (11, 9)):
        both.append_as_follower(replicated(batch(), offset, epoch))
    assert both.epochs == [(0, 0), (3, 2), (4, 10), (9, 11)]
    both.append_as_follower(replicated(batch(), 12, 10) + replicated(batch(), 13, 10) + replicated(batch(), 14, 12))
    assert both.epochs[-2:] == [(10, 12), (12, 14)]
    both.append_as_follower(replicated(batch(), 15, 5))  # an epoch that is over
    both.close()


def test_a_leader_that_appends_nothing_has_an_epoch_nonetheless(open_both: OpenBoth) -> None:
    both = open_both()
    for epoch in (0, 1, 2):
        both.become_leader(epoch)
    assert both.epochs == [(2, 0)]
    both.append(batch(3))
    both.become_leader(5)
    both.close()
    both.open()
    assert both.epochs == [(2, 0)]  # nobody wrote in it


def test_such_an_epoch_goes_also_where_there_is_nothing_to_cut(open_both: OpenBoth) -> None:
    """Else two leaders that appended nothing, one after the other, would tell their followers different things."""
    both = open_both()
    both.append(batch(3))
    both.become_leader(5)
    assert both.epochs == [(0, 0), (5, 3)]
    both.truncate_to(3)
    assert both.epochs == [(0, 0)]
    both.become_leader(6)
    both.truncate_to(100)
    assert both.epochs == [(0, 0)]
    both.close()


def test_what_a_follower_refuses(open_both: OpenBoth) -> None:
    both = open_both(max_message_bytes=100)
    both.append_as_follower(replicated(batch(3), 0))
    both.append_as_follower(replicated(batch(3), 2))
    both.append_as_follower(replicated(batch(3), 0))
    both.append_as_follower(replicated(batch(), 9) + replicated(batch(), 8))
    both.append_as_follower(replicated(batch(), 9) + replicated(batch(), 9))
    both.append_as_follower(replicated(batch(), 9)[:-1] + b"x")
    both.append_as_follower(b"")
    both.append_as_follower(replicated(batch(), 3)[:-1])
    both.append_as_follower(replicated(batch(), 3) + replicated(batch(), 4)[:-1])
    assert isinstance(both.append_as_follower(replicated(batch(9), 4)), Appended)  # larger than a client's may be
    both.append_as_follower(replicated(batch(), 20) + replicated(batch(5), 30))
    both.append(batch())
    both.close()


def test_a_roll_after_a_cut_through_a_batch_leaves_no_hole(open_both: OpenBoth) -> None:
    """Here we differ: an empty batch takes the place of what was cut, so that no segment seems to be missing."""
    both = open_both()
    both.append(batch(3))
    both.append(batch(5))
    both.truncate_to(5)
    assert both.state.end_offset == 5
    for log in (both.kafka, both.octavo):
        log.roll()
    ours, theirs = both.octavo.state, both.kafka.state
    assert ours.end_offset == theirs.end_offset == 5
    assert [segment.base_offset for segment in ours.segments] == [segment.base_offset for segment in theirs.segments]
    assert ours.segments[0].size == theirs.segments[0].size + 61
    left = list(read_batches(both.octavo.read(3, 1)))
    assert [(each.base_offset, each.last_offset, each.count) for each in left] == [(3, 4, 0)]
