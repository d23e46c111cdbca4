"""Write numbers as people read them: sizes, counts, ratios, times."""

from __future__ import annotations

from typing import Final

from octavo.inspect.descriptions import time_of

_UNITS: Final = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
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


def day(timestamp_ms: int) -> str:
    """Format a timestamp as a day; a dash if there is none."""
    return "-" if timestamp_ms < 0 else time_of(timestamp_ms)[:10]


def minute(timestamp_ms: int) -> str:
    """Format a timestamp as date, hour and minute; a dash if there is none."""
    return "-" if timestamp_ms < 0 else time_of(timestamp_ms)[:16]
