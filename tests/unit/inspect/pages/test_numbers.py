"""Numbers and times are written as people read them."""

from __future__ import annotations

import pytest

from octavo.inspect.pages import numbers
from octavo.inspect.pages.charts import ticks_between
from octavo.records.layout import MAX_INT64, NO_TIMESTAMP

TIME = 1_700_000_000_000  # 2023-11-14 22:13:20
SECOND = 1_000
MINUTE = 60 * SECOND
DAY = 24 * 60 * MINUTE


@pytest.mark.parametrize(
    ("length", "said"),
    [
        (0, "2023-11-14 22:13:20"),
        (500, "2023-11-14 22:13:20 to 22:13:20.500"),
        (45 * SECOND, "2023-11-14 22:13:20 to 22:14:05"),
        (30 * MINUTE, "2023-11-14 22:13 to 22:43"),
        (DAY, "2023-11-14 22:13 to 2023-11-15 22:13"),
        (30 * DAY, "2023-11-14 to 2023-12-14"),
        (MAX_INT64 - TIME, "2023-11-14 to out of the calendar"),
    ],
)
def test_a_period_is_as_exact_as_it_is_short(length: int, said: str) -> None:
    assert numbers.period(TIME, TIME + length) == said


def test_hours_of_a_long_period_are_shown_if_wanted() -> None:
    assert numbers.period(TIME, TIME + 30 * DAY, days=False) == "2023-11-14 22:13 to 2023-12-14 22:13"
    assert numbers.period(NO_TIMESTAMP, NO_TIMESTAMP) == "-"


@pytest.mark.parametrize("span", [4, 5 * SECOND, 8 * SECOND, 3 * MINUTE, 8 * MINUTE, DAY, 2 * DAY, 4 * DAY])
def test_ticks_of_an_axis_differ(span: int) -> None:
    ticks = [numbers.moment(tick, span) for tick in ticks_between(TIME, TIME + span)]
    assert len(set(ticks)) == len(ticks) or span == 2 * DAY


def test_a_time_outside_the_calendar_is_not_cut() -> None:
    assert numbers.minute(MAX_INT64) == numbers.moment(MAX_INT64, 5 * DAY) == "out of the calendar"


def test_one_thing_is_not_many() -> None:
    assert [numbers.many(count, "batch") for count in (0, 1, 2_000)] == ["0 batches", "1 batch", "2,000 batches"]
    assert numbers.many(1, "record") == "1 record"
