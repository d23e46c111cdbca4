"""Tell the operator that a node does not answer, and that it does again: `Silence`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

PATIENCE_MS: Final = 5000  # more than any node waits before it answers a Fetch


class Silence:
    """How long a node has not answered. Each time one sentence is said, and another when it is over."""

    def __init__(self, say: Callable[[str], object], who: str = "") -> None:
        """Nothing was asked yet. `who`: the node, in words; nothing is said while that is empty."""
        self.who = who
        self._say: Final = say
        self._since_ms: float | None = None  # the first request that was not answered
        self._is_told = False

    def asked(self, now_ms: float) -> None:
        """Note that a request was sent. One that fails is not answered, and neither is the next."""
        if self._since_ms is None:
            self._since_ms = now_ms

    def heard(self, now_ms: float) -> None:
        """Note an answer."""
        if self._is_told and self._since_ms is not None:
            self._say(f"{self.who} answers, after {(now_ms - self._since_ms) / 1000:.0f} s without an answer")
        self._since_ms, self._is_told = None, False

    def poll(self, now_ms: float) -> float:
        """Say that there is no answer, if it is time to. Returns when there is something to do again."""
        if self._since_ms is None or self._is_told or not self.who:
            return math.inf
        if now_ms >= self._since_ms + PATIENCE_MS:
            self._is_told = True
            self._say(f"{self.who} has not answered for {(now_ms - self._since_ms) / 1000:.0f} s")
            return math.inf
        return self._since_ms + PATIENCE_MS
