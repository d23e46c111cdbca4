"""`octavo serve` that tells at its end how long the longest turn of the reactor was, in seconds, on standard output.

A turn is the time between two waits for sockets. What passes in a wait is not in it: what waiting cannot end because
another thread holds Python's lock is seen from outside only.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from octavo import cli
from octavo.server import poller, reactor


class _TimedPoller:
    """A poller that notes the time between two calls of `poll`."""

    def __init__(self) -> None:
        self._poller = poller.make_poller()
        self._since: float | None = None

    def poll(self, *arguments: Any) -> list[tuple[int, int]]:
        global longest
        if self._since is not None:
            longest = max(longest, time.perf_counter() - self._since)
        found: list[tuple[int, int]] = self._poller.poll(*arguments)
        self._since = time.perf_counter()
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._poller, name)


longest = 0.0

if __name__ == "__main__":
    vars(reactor)["make_poller"] = _TimedPoller
    code = cli.main(["serve", *sys.argv[1:]])
    print(longest, flush=True)
    sys.exit(code)
