"""Clocks and delays. Code that depends on the time takes a `Clock`, so that tests can set the time."""

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


class Deadline:
    """The end of a delay. If the clock is set back, the rest of the delay stays as long as it was."""

    __slots__ = ("_due_ms", "_seen_ms")

    def __init__(self, now_ms: int, delay_ms: int) -> None:
        self._seen_ms = now_ms
        self._due_ms = now_ms + delay_ms

    def is_over(self, now_ms: int) -> bool:
        """Return whether the delay is over. Ask again and again: only so it is seen that the clock was set back."""
        if now_ms < self._seen_ms:
            self._due_ms -= self._seen_ms - now_ms
        self._seen_ms = now_ms
        return now_ms >= self._due_ms
