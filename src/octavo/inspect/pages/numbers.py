"""Write numbers as people read them: sizes, counts, ratios, times."""

from __future__ import annotations

from math import inf
from typing import Final

from octavo.inspect.descriptions import time_of

_UNITS: Final = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
_TO_DAY: Final = len("1970-01-01")
_TO_MINUTE: Final = len("1970-01-01 00:00")
_TO_SECOND: Final = len("1970-01-01 00:00:00")
_MINUTE_MS: Final = 60_000
_ENDS: Final = (  # milliseconds of a time, and how exactly it is divided
    (8_000, None),
    (8 * _MINUTE_MS, _TO_SECOND),
    (48 * 60 * _MINUTE_MS, _TO_MINUTE),
    (inf, _TO_DAY),
)
_SHORT: Final = ("", "K", "M", "G", "T")


def size(count: int) -> str:
    """Format a number of bytes with three digits or so: `1.5 MiB`."""
    if count < 1024:
        return "1 byte" if count == 1 else f"{count:,} bytes"
    number, unit = float(count), 0
    while number >= 1024 and unit < len(_UNITS) - 1:
        number, unit = number / 1024, unit + 1
    return f"{number:.0f} {_UNITS[unit]}" if number >= 100 else f"{number:.1f} {_UNITS[unit]}"


def power_of_two(power: int) -> str:
    """Format 2 to a power in as few characters as possible: `64K`."""
    return f"{1 << power % 10}{_SHORT[min(power // 10, len(_SHORT) - 1)]}"


def many(number: int, what: str) -> str:
    """Format a number of things: `1 batch`, `2 batches`."""
    plural = f"{what}es" if what.endswith("ch") else f"{what}s"
    return f"{number:,} {what if number == 1 else plural}"


def count(number: int) -> str:
    """Format a number with commas."""
    return f"{number:,}"


def ratio(number: float | None) -> str:
    """Format a compression ratio; a dash if it is not known."""
    return "-" if number is None else f"{number:.1f} times"


def share(part: float, whole: float) -> str:
    """Format a part of something in percent."""
    percent = 100 * part / whole if whole else 0.0
    return f"{percent:.0f} %" if percent >= 10 or percent == 0 else f"{percent:.1f} %"


def minute(timestamp_ms: int) -> str:
    """Format a timestamp as date, hour and minute; a dash if there is none."""
    return _time(timestamp_ms, _TO_MINUTE)


def moment(timestamp_ms: int, span_ms: int) -> str:
    """Format one of a few timestamps within a time of `span_ms`, as exactly as is needed to tell them apart."""
    return _time(timestamp_ms, next(end for longest_ms, end in _ENDS if span_ms < longest_ms))


def period(first_ms: int, last_ms: int, *, days: bool = True) -> str:
    """Format the time between two timestamps; a dash if there are none. `days`: a long one needs no hours."""
    span_ms = last_ms - first_ms
    if not days and moment(last_ms, span_ms) == _time(last_ms, _TO_DAY):
        return f"{minute(first_ms)} to {minute(last_ms)}"
    first, last = moment(first_ms, span_ms), moment(last_ms, span_ms)
    if first == last:
        return first
    is_one_day = first[:_TO_DAY] == last[:_TO_DAY]
    return f"{first} to {last[_TO_DAY + 1 :] if is_one_day else last}"


def _time(timestamp_ms: int, end: int | None) -> str:
    """Format a timestamp up to a character of date and time; a dash if there is none."""
    said = "-" if timestamp_ms < 0 else time_of(timestamp_ms)
    return said[:end] if said[0].isdigit() else said  # some are not in the calendar
