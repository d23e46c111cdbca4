"""A clock for tests."""

from __future__ import annotations

from typing import Final

TIME_MS: Final = 1_700_000_000_000


class Clock:
    """A clock that stands still until a test moves it."""

    def __init__(self, now_ms: int = TIME_MS) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms
