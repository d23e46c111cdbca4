"""Tell the operator what happened, and not a thousand times: `Notices`."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Final

INTERVAL_S: Final = 1.0


class Notices:
    """Says one message of a kind per second, and how many more there were. Any thread may use it.

    Clients cause most messages. One that sends rubbish in a loop must neither fill a disk with them nor hide others.
    """

    def __init__(self, say: Callable[[str], object], clock: Callable[[], float] = time.monotonic) -> None:
        self._say: Final = say
        self._clock: Final = clock
        self._lock: Final = threading.Lock()
        self._said: Final[dict[str, tuple[float, int, str]]] = {}  # when last, how often since, and the last of those

    def say(self, kind: str, message: str) -> None:
        """Say a message, unless one of its kind was said less than a second ago."""
        now = self._clock()
        with self._lock:
            before = self._said.get(kind)
            if before is not None and now - before[0] < INTERVAL_S:
                self._said[kind] = (before[0], before[1] + 1, message)
                return
            self._said[kind] = (now, 0, "")
        if before is not None and before[1]:
            message = f"{message} ({before[1]} more like this before)"
        self._tell(message)

    def say_rest(self) -> None:
        """Say what was held back for a second. Call this now and then."""
        now = self._clock()
        with self._lock:
            over = [(kind, each) for kind, each in self._said.items() if now - each[0] >= INTERVAL_S]
            for kind, (_, held, _) in over:
                if held:
                    self._said[kind] = (now, 0, "")
                else:
                    del self._said[kind]
        for _, (_, held, message) in over:
            if held:
                self._tell(message if held == 1 else f"{message} (and {held - 1} more like this)")

    def _tell(self, message: str) -> None:
        with contextlib.suppress(Exception):  # a closed stderr is no reason to stop serving
            self._say(message)
