"""Reads by offset and look-ups by time."""

from __future__ import annotations

from random import Random
from typing import Final

import pytest

from octavo.records import read_batches
from tests.batches import TIME_MS
from tests.kafka.log.conftest import OpenBoth
from tests.kafka.log.samples import batch, replicated, stamped
from tests.kafka.log.side_by_side import Refusal, SideBySide
from tests.kafka.unified_log import Isolation, TimestampOffset

ISOLATIONS: Final[tuple[Isolation, ...]] = ("LOG_END", "HIGH_WATERMARK")
SIZES: Final = (0, 1, 60, 61, 80, 200, 500, 2**31 - 1)
LATEST: Final = 2**63 - 1


def _filled(both: SideBySide, seed: int = 1, count: int = 40) -> SideBySide:
    random = Random(seed)
    for _ in range(count):
        time_ms = TIME_MS + random.randrange(-50, 50)
        codec = random.choice(("none", "none", "gzip"))
        both.append(batch(random.choice((1, 2, 7)), size=random.choice((0, 9, 60)), timestamp_ms=time_ms, codec=codec))
    return both


def test_at_every_offset_with_every_size(open_both: OpenBoth) -> None:
    both = _filled(open_both(internal_segment_bytes=1500, index_interval_bytes=200))
    assert len(both.segments) > 3
    both.read_everything(SIZES, ISOLATIONS)
    both.close()
    both.open()
    both.read_everything((1, 500), ISOLATIONS)


def test_up_to_the_high_watermark(open_both: OpenBoth) -> None:
    both = _filled(open_both(internal_segment_bytes=700, index_interval_bytes=100, follows_end=False), count=12)
    state = both.state
    assert state.high_watermark == 0
    assert both.read(0, 1000, "HIGH_WATERMARK") == b""
    for watermark in range(state.end_offset + 1):
        both.advance_high_watermark(watermark)
        both.read_everything((1, 150, 2**31 - 1), ["HIGH_WATERMARK"])
    both.read_everything((1, 150), ISOLATIONS)


def test_an_empty_log(open_both: OpenBoth) -> None:
    both = open_both()
    assert both.read(0, 100) == b""
    assert both.read(1, 100) == Refusal(1)
    assert both.read(-1, 100) == Refusal(1)
    both.read_everything(SIZES, ISOLATIONS)
    assert both.offset_for_timestamp(0) is None
    assert both.max_timestamp_offset() is None


def test_from_where_the_log_starts(open_both: OpenBoth) -> None:
    both = _filled(open_both(internal_segment_bytes=1000, index_interval_bytes=100), count=20)
    end = both.state.end_offset
    for start in (1, 3, end // 2, end - 1, end):
        both.delete_records_before(start)
        assert both.read(start - 1, 100) == Refusal(1)
        both.read_everything((1, 300), ISOLATIONS)
        both.offsets_for_timestamps(range(TIME_MS - 52, TIME_MS + 52))
        both.max_timestamp_offset()


def test_offsets_that_nobody_has(open_both: OpenBoth) -> None:
    """Gaps, as compaction leaves them and a follower gets them."""
    both = open_both(internal_segment_bytes=400, index_interval_bytes=0)
    for offset in (3, 4, 10, 30, 31, 50, 90, 91, 92, 120):
        both.append_as_follower(replicated(batch(2), 2 * offset))
    both.read_everything((1, 100, 1000), ISOLATIONS)
    both.offsets_for_timestamps([0, TIME_MS, TIME_MS + 1])
    both.close()


def test_what_a_client_gets_is_batches(open_both: OpenBoth) -> None:
    both = _filled(open_both(), count=10)
    data = both.read(3, 2**20)
    assert isinstance(data, bytes)
    assert next(read_batches(data)).base_offset <= 3


def test_by_time(open_both: OpenBoth) -> None:
    both = open_both(internal_segment_bytes=250, index_interval_bytes=0)
    both.become_leader(4)
    for times in ((5, 3, 9), (9, 10), (2,), (20, 15), (12, 11), (20,), (18, 25, 25)):
        both.append(stamped(*times))
    found = both.offsets_for_timestamps([*range(30), TIME_MS, LATEST])
    assert found[10] == TimestampOffset(4, 10, 4)
    assert found[26] is None
    assert both.max_timestamp_offset() == TimestampOffset(12, 25, 4)


@pytest.mark.parametrize("kind", ["CreateTime", "LogAppendTime"])
@pytest.mark.parametrize("codec", ["none", "lz4"])
@pytest.mark.parametrize("seed", [1, 2])
def test_by_any_time(seed: int, codec: str, kind: str, open_both: OpenBoth) -> None:
    random = Random(seed)
    both = open_both(internal_segment_bytes=800, index_interval_bytes=150, message_timestamp_type=kind)
    for _ in range(50):
        both.now_ms += random.randrange(3)
        times = [max(random.choice((-1, random.randrange(200))), -1) for _ in range(random.choice((1, 2, 5)))]
        both.append(stamped(*times, codec=codec))
    times_ms = [*range(202), *range(TIME_MS - 1, both.now_ms + 2)]
    both.offsets_for_timestamps(times_ms)
    both.max_timestamp_offset()
    both.close()
    both.open()
    both.offsets_for_timestamps(times_ms)
    both.max_timestamp_offset()


def test_records_without_a_time_are_not_found(open_both: OpenBoth) -> None:
    both = open_both(internal_segment_bytes=150)
    for data in (stamped(-1), batch(magic=0), stamped(7), stamped(-1)):
        both.append(data)
    both.offsets_for_timestamps(range(10))
    both.max_timestamp_offset()
