"""Limit the bytes per second that compaction reads and writes (Kafka's `log.cleaner.io.max.bytes.per.second`)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from octavo.errors import InvalidInput

_WINDOW_S: Final = 0.3  # how often the rate is checked, as in Kafka
_NAP_S: Final = 0.1  # how often a waiting thread calls `check`


class Throttle:
    """Makes its caller wait if more was read or written than the limit allows. For one thread at a time."""

    def __init__(
        self,
        bytes_per_second: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Limit the rate to `bytes_per_second`. Raises `InvalidInput` if that is not above 0."""
        if not bytes_per_second > 0:
            raise InvalidInput(f"nothing can be done at {bytes_per_second} bytes per second")
        self.bytes_per_second: Final = bytes_per_second
        self.waited_s = 0.0
        self._clock = clock
        self._sleep = sleep
        self._since = clock()
        self._size = 0

    def note(self, size: int, check: Callable[[], None] = lambda: None) -> None:
        """Count bytes read or written, and wait if that was too fast. `check` may end the wait by raising."""
        self._size += size
        now = self._clock()
        elapsed = now - self._since
        if elapsed < _WINDOW_S and self._size < self.bytes_per_second * _WINDOW_S:
            return
        early = self._size / self.bytes_per_second - elapsed
        while early > 0:
            nap = min(early, _NAP_S)
            self._sleep(nap)
            self.waited_s += nap
            early -= nap
            check()
        self._since = self._clock()
        self._size = 0
