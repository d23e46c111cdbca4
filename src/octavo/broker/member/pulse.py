"""The heartbeat that another thread repeats while the reactor's thread is held up: `Pulse`.

The reactor's thread reads from the disk, and a slow one may hold it up for longer than a session lasts, although the
broker is well. (Apache Kafka's brokers send heartbeats from a thread of their own.) So another thread looks whether the
reactor's comes round, and repeats the last heartbeat if not. It does so for a while only: a broker that answers nobody
is to be fenced, so that others lead.

Nothing is repeated once the broker shuts down or reports a failed directory: the controller would let it in again.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Final, NamedTuple

from octavo.cluster.messages import Endpoint

LATE_MS: Final = 1500  # the reactor's thread comes round more often, if only because of the metadata
LONGEST_MS: Final = 30_000  # how long heartbeats are repeated


class Beat(NamedTuple):
    """A heartbeat, and where it was sent."""

    endpoint: Endpoint
    version: int
    body: bytes


class Pulse:
    """The last heartbeat of a broker that serves. `repeat` is for another thread than the rest."""

    def __init__(self, interval_ms: int) -> None:
        """There is nothing to repeat yet. `interval_ms`: between heartbeats."""
        self._interval_ms: Final = interval_ms
        self._lock: Final = threading.Lock()  # held while a heartbeat is repeated
        self._beat: Beat | None = None
        self._turned_ms = -math.inf  # when the reactor's thread came round
        self._sent_ms = -math.inf  # when a heartbeat was sent, by either thread

    def turn(self, now_ms: float) -> None:
        """Note that the reactor's thread has come round."""
        self._turned_ms = now_ms

    def keep(self, beat: Beat | None, now_ms: float) -> None:
        """Keep a heartbeat that was answered; None if none may be repeated."""
        self._beat, self._sent_ms = beat, now_ms

    def stop(self) -> None:
        """Repeat nothing any more. Waits for the answer to the heartbeat that is being repeated, if there is one."""
        with self._lock:
            self._beat = None

    def repeat(self, now_ms: float, send: Callable[[Beat], None]) -> bool:
        """Repeat the last heartbeat if that is due. Returns whether it was. `send` returns when it is answered."""
        with self._lock:
            beat, late_ms = self._beat, now_ms - self._turned_ms
            if beat is None or not LATE_MS <= late_ms <= LONGEST_MS or now_ms - self._sent_ms < self._interval_ms:
                return False
            self._sent_ms = now_ms
            send(beat)
            return True
