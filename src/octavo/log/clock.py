"""Clocks. Code that depends on the time takes a `Clock`, so that tests can set the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

Clock = Callable[[], int]  # milliseconds: since 1970, or of a monotonic clock

NS_PER_MS: Final = 1_000_000


def wall_clock_ms() -> int:
    """Return the time of day in milliseconds since 1970."""
    return time.time_ns() // NS_PER_MS


def monotonic_ms() -> int:
    """Return milliseconds of a clock that is never set back, for measuring how long something takes."""
    return time.monotonic_ns() // NS_PER_MS
