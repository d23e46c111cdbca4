"""`octavo serve` that tells at its end how long the longest turn of the reactor was, in seconds, on standard output.

A turn is the time between two waits for sockets. What passes in a wait is not in it: what waiting cannot end because
another thread holds Python's lock is seen from outside only.
"""

from __future__ import annotations

import select
import sys
import time
from typing import Any

from octavo import cli


class _TimedEpoll:
    """An epoll object that notes the time between two calls of `poll`."""

    def __init__(self) -> None:
        self._epoll = _EPOLL()
        self._since: float | None = None

    def poll(self, *arguments: Any) -> list[tuple[int, int]]:
        global longest
        if self._since is not None:
            longest = max(longest, time.perf_counter() - self._since)
        found: list[tuple[int, int]] = self._epoll.poll(*arguments)
        self._since = time.perf_counter()
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._epoll, name)


_EPOLL = select.epoll
longest = 0.0

if __name__ == "__main__":
    select.epoll = _TimedEpoll  # type: ignore[assignment,misc] # nobody needs its type
    code = cli.main(["serve", *sys.argv[1:]])
    print(longest, flush=True)
    sys.exit(code)
