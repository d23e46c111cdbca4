"""Which segments may go."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import pytest

from octavo.errors import BadPolicy
from octavo.log import retention
from octavo.log.config.log_config import LogConfig
from octavo.log.names import TopicPartition
from octavo.log.retention import ByTime, Expiry, LogView, SegmentView, expired_segments, policies_for

NOW_MS = 1_000_000
KEEP_ALL = {"retention.ms": "-1", "retention.bytes": "-1"}


def view(
    *, sizes: tuple[int, ...] = (100, 100, 100), ages_ms: tuple[int, ...] = (), start: int = 0, watermark: int = -1,
    **properties: str,
) -> LogView:  # fmt: skip
    """Segments of ten offsets each."""
    ages_ms = ages_ms or (0,) * len(sizes)
    names = {name.replace("_", "."): value for name, value in properties.items()}
    segments = tuple(
        SegmentView(
            base_offset=10 * index,
            next_offset=10 * index + (10 if size else 0),
            size=size,
            largest_timestamp_ms=NOW_MS - age_ms,
            last_modified_ms=NOW_MS,
        )
        for index, (size, age_ms) in enumerate(zip(sizes, ages_ms, strict=True))
    )
    end = segments[-1].next_offset
    config = LogConfig.from_properties(KEEP_ALL | names)
    return LogView(
        partition=TopicPartition("events", 0),
        config=config,
        start_offset=start,
        end_offset=end,
        high_watermark=end if watermark < 0 else watermark,
        segments=segments,
    )


def gone(log: LogView) -> list[tuple[int, str]]:
    return [(expired.segment.base_offset, expired.policy) for expired in expired_segments(log, NOW_MS)]


def test_nothing_goes_without_a_reason() -> None:
    assert gone(view()) == []


@pytest.mark.parametrize(("start", "expected"), [(9, []), (10, [0]), (19, [0]), (20, [0, 10]), (30, [0, 10])])
def test_what_lies_before_the_start_offset_goes_but_never_the_last_segment(start: int, expected: list[int]) -> None:
    assert gone(view(start=start)) == [(base, "start-offset") for base in expected]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(301, []), (300, []), (201, []), (200, [0]), (199, [0]), (1, [0, 10]), (0, [0, 10, 20]), (-7, [])],
)
def test_the_log_keeps_at_least_its_size(limit: int, expected: list[int]) -> None:
    assert gone(view(retention_bytes=str(limit))) == [(base, "size") for base in expected]


def test_what_is_too_old_goes_up_to_the_first_that_is_not() -> None:
    assert gone(view(ages_ms=(51, 50, 51), retention_ms="50")) == [(0, "time")]
    assert gone(view(ages_ms=(51, 52, 53), retention_ms="50")) == [(0, "time"), (10, "time"), (20, "time")]
    assert gone(view(ages_ms=(-5, 99, 99), retention_ms="50")) == []  # from the future


def test_without_timestamps_the_file_says_how_old_it_is() -> None:
    segment = SegmentView(base_offset=0, next_offset=5, size=1, largest_timestamp_ms=-1, last_modified_ms=7)
    assert segment.age_timestamp_ms == 7


def test_each_policy_looks_at_what_the_one_before_left() -> None:
    log = view(sizes=(100,) * 5, ages_ms=(0, 0, 99, 99, 0), start=10, retention_bytes="300", retention_ms="50")
    assert gone(log) == [(0, "start-offset"), (10, "size"), (20, "time"), (30, "time")]


def test_nothing_goes_that_is_not_below_the_high_watermark() -> None:
    assert gone(view(ages_ms=(99, 99, 99), retention_ms="50", watermark=19)) == [(0, "time")]
    assert gone(view(retention_bytes="0", watermark=29)) == [(0, "size"), (10, "size")]
    assert gone(view(start=20, watermark=15)) == [(0, "start-offset")]


def test_an_empty_last_segment_stays() -> None:
    assert gone(view(sizes=(100, 100, 0), retention_bytes="0")) == [(0, "size"), (10, "size")]
    assert gone(view(sizes=(0,), retention_bytes="0", ages_ms=(99,), retention_ms="50")) == []


@pytest.mark.parametrize("policy", ["compact", ""])
def test_where_nothing_is_deleted_only_the_start_offset_counts(policy: str) -> None:
    log = view(ages_ms=(99, 99, 99), start=10, retention_ms="50", retention_bytes="0", cleanup_policy=policy)
    assert gone(log) == [(0, "start-offset")]


def test_what_may_be_in_tiered_storage_is_not_judged_here() -> None:
    old = (99, 99, 99)
    assert gone(view(ages_ms=old, retention_ms="50", remote_storage_enable="true")) == []
    copied = view(ages_ms=old, retention_ms="50", remote_storage_enable="true", remote_log_copy_disable="true")
    assert len(gone(copied)) == 3


def test_each_segment_comes_with_a_reason_for_people() -> None:
    [expired] = expired_segments(view(ages_ms=(51, 0, 0), retention_ms="50"), NOW_MS)
    assert "retention.ms, 50" in expired.reason


# ------------------------------------------------------------------------------------------- of other packages


class Odd:
    """Lets the oldest segment go, whatever it is."""

    name = "odd"

    def expired(self, log: LogView, now_ms: int) -> Expiry:
        return Expiry(1, "odd")


class Broken:
    name = "broken"

    def __init__(self, answer: Any = None) -> None:
        self.answer = answer

    def expired(self, log: LogView, now_ms: int) -> Any:
        if self.answer is None:
            raise RuntimeError("no idea")
        return self.answer


ODD = Odd()
NOTHING = 7


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Sets which entry points there are."""

    def install(**names: str) -> None:
        found = EntryPoints(
            EntryPoint(name, value if ":" in value else f"{__name__}:{value}", retention.ENTRY_POINTS)
            for name, value in names.items()
        )
        monkeypatch.setattr("importlib.metadata.entry_points", lambda group: found.select(group=group))
        retention._installed.cache_clear()

    yield install
    retention._installed.cache_clear()


@pytest.mark.parametrize("value", ["Odd", "ODD"])
def test_a_package_can_add_a_policy_or_a_class_of_them(installed: Any, value: str) -> None:
    installed(odd=value)
    assert gone(view()) == [(0, "odd")]
    assert gone(view(watermark=9)) == []  # the watermark holds for all
    assert gone(view(cleanup_policy="compact")) == []


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("NOTHING", "cannot be loaded from .*not callable"),
        ("dict", "cannot be loaded"),
        ("builtins:dict", "has no name or no method expired"),
        ("no.such.module:Policy", "cannot be loaded from no.such.module:Policy"),
    ],
)
def test_a_policy_that_is_none_is_named(installed: Any, value: str, problem: str) -> None:
    installed(wrong=value)
    with pytest.raises(BadPolicy, match=f"'wrong'.*{problem}"):
        policies_for(LogConfig())
    assert len(policies_for(LogConfig(cleanup_policy=frozenset({"compact"})))) == 1  # is not even looked for


@pytest.mark.parametrize(
    "answer",
    [None, 5, Expiry(-1), (1, "x"), Expiry("1")],  # type: ignore[arg-type]  # what is refused is the point
)
def test_a_policy_that_fails_is_named(answer: Any) -> None:
    with pytest.raises(BadPolicy, match="'broken'"):
        expired_segments(view(), NOW_MS, [Broken(answer)])


def test_policies_can_be_given() -> None:
    log = view(ages_ms=(99, 0, 0), retention_ms="50", retention_bytes="0")
    assert [expired.policy for expired in expired_segments(log, NOW_MS, [ByTime(), Odd()])] == ["time", "odd"]
