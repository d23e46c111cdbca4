"""What has to happen at some time: `Timers`."""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from typing import Final

from octavo.coordinator.journal import Journal, Table

Key = tuple[Hashable, ...]  # what has to happen, and to whom: ("session", "a group", "a member")


class Timers:
    """Times by key, in milliseconds of a clock that never goes back."""

    def __init__(self, journal: Journal) -> None:
        self._times: Final[Table[Key, int]] = Table(journal)
        self._heap: list[tuple[int, int, Key]] = []
        self._number = 0  # makes entries of the heap comparable, and first come, first served

    def set(self, key: Key, at_ms: int) -> None:
        """Have something happen at a time, and not at the time that was set for it before."""
        self._times[key] = at_ms
        self._push(key, at_ms)

    def cancel(self, key: Key) -> None:
        """Have something not happen any more."""
        if key in self._times:
            del self._times[key]

    def get(self, key: Key) -> int | None:
        """Return the time that is set for something; None if there is none."""
        return self._times.get(key)

    @property
    def next_ms(self) -> int | None:
        """The time of what has to happen next."""
        self._drop_old()
        return self._heap[0][0] if self._heap else None

    def take_due(self, clock_ms: int) -> Key | None:
        """Return what has to happen now, and forget its time; None if there is nothing."""
        self._drop_old()
        if not self._heap or self._heap[0][0] > clock_ms:
            return None
        key = heapq.heappop(self._heap)[2]
        del self._times[key]
        return key

    def rebuild(self) -> None:
        """Find all times again after changes were undone."""
        self._heap.clear()
        for key, at_ms in self._times.items():
            self._push(key, at_ms)

    def _push(self, key: Key, at_ms: int) -> None:
        self._number += 1
        heapq.heappush(self._heap, (at_ms, self._number, key))
        if len(self._heap) > 4 * len(self._times) + 64:  # most entries are of times that have changed
            self._heap.clear()
            self.rebuild()

    def _drop_old(self) -> None:
        heap = self._heap
        while heap and self._times.get(heap[0][2]) != heap[0][0]:
            heapq.heappop(heap)
