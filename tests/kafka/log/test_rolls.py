"""When a new segment begins, what it is called, and what the indexes of all segments hold."""

from __future__ import annotations

from random import Random
from typing import Final

import pytest

from tests.batches import TIME_MS
from tests.kafka.log.conftest import OpenBoth
from tests.kafka.log.samples import batch, replicated, stamped
from tests.kafka.log.side_by_side import Refusal
from tests.kafka.unified_log import Appended

ONE: Final = batch()
SIZE: Final = len(ONE)
ANY_TIME: Final = {"message_timestamp_after_max_ms": 2**63 - 1, "message_timestamp_before_max_ms": 2**63 - 1}
WEEK_MS: Final = 604_800_000


@pytest.mark.parametrize("room", [-1, 0, 1])
def test_by_size_when_the_next_batch_does_not_fit(room: int, open_both: OpenBoth) -> None:
    both = open_both(internal_segment_bytes=3 * SIZE + room)
    for _ in range(7):
        both.append(ONE)
    assert both.segments == ([0, 2, 4, 6] if room < 0 else [0, 3, 6])
    both.close()


@pytest.mark.parametrize(("later_ms", "segments"), [(999, [0]), (1000, [0]), (1001, [0, 2])])
def test_by_time_when_a_batch_is_too_much_younger_than_the_first(
    later_ms: int, segments: list[int], open_both: OpenBoth
) -> None:
    both = open_both(segment_ms=1000)
    both.append(stamped(TIME_MS - 5000, TIME_MS))  # the largest of the first batch counts
    both.append(stamped(TIME_MS + later_ms, 0))
    assert both.segments == segments
    both.close()


def test_by_time_goes_by_the_records_and_not_by_the_clock(open_both: OpenBoth) -> None:
    both = open_both(segment_ms=1000)
    both.append(ONE)
    both.now_ms += 10 * WEEK_MS
    both.append(ONE)
    assert both.segments == [0]
    both.append(batch(timestamp_ms=TIME_MS + 1001))
    assert both.segments == [0, 2]
    both.append(batch(timestamp_ms=TIME_MS - WEEK_MS))  # older: stays
    both.append(batch(timestamp_ms=TIME_MS + 1001 + 1000))
    both.append(batch(timestamp_ms=TIME_MS + 1001 + 1001))
    assert both.segments == [0, 2, 5]
    both.close()


def test_by_time_goes_by_the_clock_where_the_records_have_no_time(open_both: OpenBoth) -> None:
    both = open_both(segment_ms=1000)
    both.append(stamped(-1))
    both.now_ms += 1000
    both.append(stamped(-1))
    assert both.segments == [0]
    both.now_ms += 1
    both.append(ONE)
    assert both.segments == [0, 2]
    both.now_ms += 1000
    both.append(stamped(-1))
    assert both.segments == [0, 2]
    both.close()


def test_by_time_where_the_log_gives_the_time(open_both: OpenBoth) -> None:
    both = open_both(segment_ms=1000, message_timestamp_type="LogAppendTime")
    for step_ms in (0, 500, 500, 1, 1000, 1, 1001):
        both.now_ms += step_ms
        both.append(ONE)
    assert both.segments == [0, 3, 5, 6]
    both.close()


def test_by_time_of_compacted_topics_also_by_the_longest_lag(open_both: OpenBoth) -> None:
    both = open_both(segment_ms=5000, max_compaction_lag_ms=1000, cleanup_policy="compact")
    both.append(ONE)
    both.append(batch(timestamp_ms=TIME_MS + 1001))
    assert both.segments == [0, 1]
    both = open_both(segment_ms=5000, max_compaction_lag_ms=1000, cleanup_policy="delete")
    both.append(ONE)
    both.append(batch(timestamp_ms=TIME_MS + 1001))
    assert both.segments == [0]


def test_by_time_goes_by_the_first_of_several_batches(open_both: OpenBoth) -> None:
    both = open_both(segment_ms=1000)
    both.append_as_follower(replicated(ONE, 0) + replicated(batch(timestamp_ms=TIME_MS + 900), 1))
    both.append(batch(timestamp_ms=TIME_MS + 1000))
    assert both.segments == [0]
    both.append(batch(timestamp_ms=TIME_MS + 1001))
    assert both.segments == [0, 3]
    both.close()


def test_time_counts_again_after_a_restart(open_both: OpenBoth) -> None:
    both = open_both(segment_ms=1000)
    both.append(ONE)
    both.close()
    both.now_ms += WEEK_MS
    both.open()
    both.append(batch(timestamp_ms=TIME_MS + 1000))
    assert both.segments == [0]
    both.append(batch(timestamp_ms=TIME_MS + 1001))
    assert both.segments == [0, 2]
    both.close()


@pytest.mark.parametrize("entries", [1, 2, 5])
def test_when_the_offset_index_is_full(entries: int, open_both: OpenBoth) -> None:
    both = open_both(segment_index_bytes=entries * 12 + 12, index_interval_bytes=0)
    for _ in range(30):
        both.append(ONE)  # of one time: nothing comes into the time index
    both.close()


@pytest.mark.parametrize("entries", [2, 3, 5])
def test_when_the_time_index_is_full(entries: int, open_both: OpenBoth) -> None:
    both = open_both(segment_index_bytes=entries * 12, index_interval_bytes=0)
    for number in range(30):
        both.append(batch(timestamp_ms=TIME_MS + number))
    assert len(both.segments) > 3
    both.close()


@pytest.mark.parametrize("last", [2**31 - 2, 2**31 - 1, 2**31])
def test_when_an_offset_is_too_far_from_the_first(last: int, open_both: OpenBoth) -> None:
    both = open_both()
    both.append_as_follower(replicated(batch(2), 0))
    both.append_as_follower(replicated(batch(2), last - 1))
    assert both.segments == ([0, last - 1] if last > 2**31 - 1 else [0])
    both.close()
    both.open()
    both.append(ONE)
    both.close()


def test_a_follower_keeps_gaps_also_between_segments(open_both: OpenBoth) -> None:
    both = open_both(internal_segment_bytes=3 * SIZE)
    for offset in (5, 6, 10, 20, 21, 40, 41, 42, 43):
        assert both.append_as_follower(replicated(ONE, offset)) == Appended(offset, offset, -1, 0)
    both.append(ONE)
    both.close()


def test_a_batch_over_the_edge_of_the_offsets_of_a_segment(open_both: OpenBoth) -> None:
    both = open_both()
    both.append_as_follower(replicated(ONE, 7))
    both.append_as_follower(replicated(batch(10), 2**31 - 5))
    assert both.segments == [0, 2**31 - 5]
    both.close()


def test_on_demand_and_again_where_nothing_came_in_between(open_both: OpenBoth) -> None:
    both = open_both()
    both.roll()
    assert both.segments == [0]
    both.append(ONE)
    both.roll()
    both.roll()
    assert both.segments == [0, 1]
    both.append(ONE)
    both.roll()
    assert both.segments == [0, 1, 2]
    both.close()


def test_a_refused_append_may_have_rolled(open_both: OpenBoth) -> None:
    both = open_both(internal_segment_bytes=3 * SIZE, segment_ms=1000)
    both.append(ONE)
    assert both.append(batch(timestamp_ms=TIME_MS + 2**50)) == Refusal(32, (0,))
    assert both.append(batch(9, size=100)) == Refusal(18)
    assert both.segments == [0]
    both.close()


@pytest.mark.parametrize("interval", [0, 1, SIZE - 1, SIZE, SIZE + 1, 3 * SIZE, 4096])
def test_entries_come_after_so_many_bytes(interval: int, open_both: OpenBoth) -> None:
    both = open_both(internal_segment_bytes=20 * SIZE, index_interval_bytes=interval)
    for number in range(50):
        both.append(batch(timestamp_ms=TIME_MS + (number * 7) % 10))
    found = both.close()
    if interval < SIZE:
        assert len(found["00000000000000000000.index"]) == 19 * 8
    assert found["00000000000000000000.timeindex"]


def test_entries_of_a_follower_that_gets_many_batches_at_once(open_both: OpenBoth) -> None:
    both = open_both(internal_segment_bytes=4096, index_interval_bytes=300)
    offset = 0
    for count in (1, 2, 10, 3, 7, 12, 1, 1, 20):
        batches = [replicated(stamped(TIME_MS + offset + n, TIME_MS), offset + 2 * n) for n in range(count)]
        both.append_as_follower(b"".join(batches))
        offset += 2 * count
    both.close()


@pytest.mark.parametrize("seed", range(6))
def test_index_bytes_of_any_workload(seed: int, open_both: OpenBoth) -> None:
    random = Random(seed)
    both = open_both(
        internal_segment_bytes=random.choice((1000, 5000)),
        index_interval_bytes=random.choice((0, 100, 500)),
        segment_index_bytes=random.choice((60, 120, 1000)),
        segment_ms=random.choice((50, 10_000)),
        message_timestamp_type=random.choice(("CreateTime", "CreateTime", "LogAppendTime")),
        preallocate=random.choice(("true", "false")),
        **ANY_TIME,
    )
    for _ in range(120):
        both.now_ms += random.choice((0, 1, 30))
        time_ms = both.now_ms + random.choice((0, 0, 5, -100, 100))
        both.append(batch(random.choice((1, 2, 9)), size=random.choice((0, 50)), timestamp_ms=time_ms))
        if random.random() < 0.02:
            both.close()
            both.open()
    both.close()
