"""Which segments go, when, and what is left of them."""

from __future__ import annotations

import os
from random import Random
from typing import Any, Final

import pytest

from tests.batches import TIME_MS
from tests.kafka.log.conftest import OpenBoth
from tests.kafka.log.samples import batch, replicated
from tests.kafka.log.side_by_side import Refusal, SideBySide

ONE: Final = batch()
SIZE: Final = len(ONE)
DELAY_MS: Final = 60_000


def _filled(both: SideBySide, count: int = 10, step_ms: int = 0) -> SideBySide:
    for number in range(count):
        both.append(batch(timestamp_ms=TIME_MS + number * step_ms))
    return both


@pytest.mark.parametrize(
    ("retention_bytes", "gone"),
    [
        (10 * SIZE, []),
        (8 * SIZE + 1, []),
        (8 * SIZE, [0]),
        (6 * SIZE, [0, 2]),
        (1, [0, 2, 4, 6]),
        (0, [0, 2, 4, 6, 8]),
        (-1, []),
    ],
)
def test_by_size_but_never_below_it(retention_bytes: int, gone: list[int], open_both: OpenBoth) -> None:
    both = _filled(open_both(internal_segment_bytes=2 * SIZE, retention_bytes=retention_bytes))
    assert both.segments == [0, 2, 4, 6, 8]
    assert both.apply_retention() == gone
    assert both.apply_retention() == []
    both.close()


@pytest.mark.parametrize("late_ms", [0, 1])
def test_by_time_of_the_youngest_record(late_ms: int, open_both: OpenBoth) -> None:
    both = _filled(open_both(internal_segment_bytes=2 * SIZE, retention_ms=1000), step_ms=10)
    both.now_ms = TIME_MS + 30 + 1000 + late_ms
    assert both.apply_retention() == [0, 2][: 1 + late_ms]
    assert both.state.start_offset == 2 + 2 * late_ms
    both.close()


def test_a_record_from_the_future_keeps_all_behind_it(open_both: OpenBoth) -> None:
    both = open_both(internal_segment_bytes=2 * SIZE, retention_ms=1000)
    for step_ms in (0, 0, 0, 3_000_000, 0, 0):
        both.append(batch(timestamp_ms=TIME_MS - 5000 + step_ms))
    assert both.apply_retention() == [0]
    both.now_ms += 3_001_001 - 5000
    assert both.apply_retention() == [2, 4]


def test_the_active_segment_goes_too_and_a_new_one_comes(open_both: OpenBoth) -> None:
    both = _filled(open_both(internal_segment_bytes=3 * SIZE, retention_ms=1000))
    both.now_ms += 1001
    assert both.apply_retention() == [0, 3, 6, 9]
    assert both.segments == [10]
    assert (both.state.start_offset, both.state.end_offset) == (10, 10)
    assert both.apply_retention() == []
    both.append(ONE)
    both.close()
    both.open()
    both.append(ONE)
    both.close()


def test_an_empty_active_segment_stays(open_both: OpenBoth) -> None:
    both = _filled(open_both(retention_bytes=0), count=2)
    both.roll()
    assert both.apply_retention() == [0]
    assert both.segments == [2]
    assert both.apply_retention() == []
    both.close()


def test_nothing_goes_that_is_not_committed(open_both: OpenBoth) -> None:
    both = _filled(open_both(internal_segment_bytes=2 * SIZE, retention_ms=1000, follows_end=False))
    both.now_ms += 10_000
    assert both.apply_retention() == []
    for watermark, gone in ((1, []), (2, [0]), (5, [2]), (9, [4, 6]), (10, [8])):
        both.advance_high_watermark(watermark)
        assert both.apply_retention() == gone
    both.close()


def test_below_the_start_offset_whole_segments_go(open_both: OpenBoth) -> None:
    both = _filled(open_both(internal_segment_bytes=3 * SIZE, retention_ms=-1))
    for offset, gone in ((0, []), (2, []), (3, [0]), (5, []), (9, [3, 6]), (10, [])):
        both.delete_records_before(offset)
        assert both.state.start_offset == offset
        assert both.apply_retention() == gone
    assert both.segments == [9]
    both.close()
    both.open()
    assert both.state.start_offset == 10
    both.close()


def test_delete_records(open_both: OpenBoth) -> None:
    both = _filled(open_both(follows_end=False))
    both.advance_high_watermark(7)
    assert both.delete_records_before(8) == Refusal(1)
    assert both.delete_records_before(-2) == Refusal(1)
    assert both.delete_records_before(4) is None
    assert both.delete_records_before(2) is None
    assert both.state.start_offset == 4
    assert both.delete_records_before(-1) is None
    assert both.state.start_offset == 7
    both = _filled(open_both(cleanup_policy="compact"))
    assert both.delete_records_before(2) == Refusal(44)
    both = _filled(open_both(cleanup_policy="compact,delete"))
    assert both.delete_records_before(2) is None


@pytest.mark.parametrize("policy", ["compact", "compact,delete", "delete"])
def test_compacted_topics_keep_what_is_old(policy: str, open_both: OpenBoth) -> None:
    both = _filled(open_both(internal_segment_bytes=2 * SIZE, retention_ms=1000, cleanup_policy=policy))
    both.now_ms += 5000
    assert both.apply_retention() == ([] if policy == "compact" else [0, 2, 4, 6, 8])
    both.close()


def test_records_without_a_time_are_as_old_as_their_file(open_both: OpenBoth) -> None:
    both = open_both(internal_segment_bytes=2 * SIZE, retention_ms=1000)
    for _ in range(6):
        both.append(batch(timestamp_ms=-1))
    for folder in (both.kafka_folder, both.octavo_folder):
        for file, age_ms in (("0", 5000), ("2", 1001), ("4", 1000)):
            seconds = (TIME_MS - age_ms) / 1000
            os.utime(folder / f"{file:0>20}.log", (seconds, seconds))
    assert both.apply_retention() == [0, 2]


def test_files_wait_before_they_go(open_both: OpenBoth) -> None:
    both = _filled(open_both(internal_segment_bytes=2 * SIZE, retention_bytes=6 * SIZE, file_delete_delay_ms=DELAY_MS))
    both.apply_retention()
    names = [f"{base:020d}.log.deleted" for base in (0, 2)]
    assert both.deleted == names
    both.now_ms += DELAY_MS - 1
    both.delete_files()
    assert both.deleted == names
    both.now_ms += 1
    both.delete_files()
    assert both.deleted == []
    both.close()


def test_epochs_below_the_start_are_folded(open_both: OpenBoth) -> None:
    both = open_both(internal_segment_bytes=2 * SIZE, retention_bytes=4 * SIZE)
    for epoch in (0, 1, 4, 5, 9):
        both.become_leader(epoch)
        both.append(ONE)
        both.append(ONE)
    assert both.epochs == [(0, 0), (1, 2), (4, 4), (5, 6), (9, 8)]
    both.delete_records_before(3)
    assert both.epochs == [(1, 3), (4, 4), (5, 6), (9, 8)]
    both.apply_retention()
    assert both.epochs == [(5, 6), (9, 8)]
    both.close()


@pytest.mark.parametrize("seed", range(8))
def test_any_retention(seed: int, open_both: OpenBoth) -> None:
    random = Random(seed)
    settings: dict[str, Any] = {
        "internal_segment_bytes": random.choice((200, 500)),
        "retention_ms": random.choice((-1, 0, 50, 200)),
        "retention_bytes": random.choice((-1, 0, 300, 1500)),
        "cleanup_policy": random.choice(("delete", "delete", "compact,delete", "compact")),
        "index_interval_bytes": 100,
    }
    both = open_both(follows_end=random.random() < 0.5, **settings)
    follows = both.state.high_watermark == both.state.end_offset
    offset = 0
    for _ in range(40):
        both.now_ms += random.choice((0, 10, 40))
        data = batch(random.choice((1, 3)), timestamp_ms=both.now_ms + random.choice((0, 0, -30, 60)))
        if random.random() < 0.2:
            offset = both.state.end_offset + random.choice((0, 3))
            both.append_as_follower(replicated(data, offset))
        else:
            both.append(data)
        if random.random() < 0.3:
            both.apply_retention()
        if random.random() < 0.1 and follows:
            both.delete_records_before(random.randrange(both.state.start_offset, both.state.end_offset + 1))
        if random.random() < 0.1:
            both.delete_files()
            assert both.deleted is not None
    both.close()
