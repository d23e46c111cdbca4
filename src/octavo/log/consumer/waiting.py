"""Wait until a partition has records, a time-out ends, or another thread calls `wakeup`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from octavo.errors import BadDirectory, UnknownPartition, WokenUp
from octavo.log.clients.arguments import FOREVER
from octavo.log.consumer.assignment import Assigned, Assignment
from octavo.log.consumer.config import ConsumerConfig
from octavo.log.consumer.consumed_logs import ConsumedLogs
from octavo.log.consumer.fetcher import Fetcher
from octavo.log.consumer.membership import Membership

AT_ONCE: Final = -FOREVER  # a deadline: do not wait, and leave `wakeup` to the next poll


class Waiting:
    """Finds the partition to read next, and waits for one that has records."""

    def __init__(
        self,
        assignment: Assignment,
        membership: Membership | None,
        logs: ConsumedLogs,
        fetcher: Fetcher,
        config: ConsumerConfig,
    ) -> None:
        self._assignment: Final = assignment
        self._membership: Final = membership
        self._look: Final = assignment.look if membership is None else membership.look
        self._logs: Final = logs
        self._fetcher: Final = fetcher
        self._min_bytes: Final = config.fetch_min_bytes
        self._max_wait_s: Final = config.fetch_max_wait_ms / 1000
        self._woken: Final = threading.Event()
        self.is_woken: Final = self._woken.is_set  # whether the next wait raises `WokenUp`
        self.wake: Final = self._woken.set

    def next_partition(self, has: Callable[[Assigned], bool], deadline: float) -> Assigned | None:
        """Wait for a partition for which `has` is true. Return None after the deadline. Raises `WokenUp`."""
        patience: float | None = None  # until when to wait for `fetch.min.bytes`
        while True:
            self._logs.check_open()
            if deadline != AT_ONCE and self._woken.is_set():
                self._woken.clear()
                raise WokenUp("wakeup was called")
            if deadline != AT_ONCE:  # otherwise records were taken, and only these are returned
                self._look()
            now = time.monotonic()
            if self._min_bytes > 1:
                patience = now + self._max_wait_s if patience is None else patience
            if patience is None or now >= patience or self._fetcher.has_enough(self._assignment):
                found = self._find(has)
                if found is not None:
                    return found
            if now >= deadline:
                return None
            self._woken.wait(min(self._logs.pause_s, deadline - now))

    def _find(self, has: Callable[[Assigned], bool]) -> Assigned | None:
        for state in self._assignment.turns():
            try:
                if not state.is_paused and has(state):
                    return state
            except (UnknownPartition, BadDirectory, FileNotFoundError):
                self._look(now=True)
                if state.partition not in self._assignment:
                    return None  # its topic was deleted
                if self._membership is None or not self._membership.is_deleted(state.partition):
                    raise
        return None
