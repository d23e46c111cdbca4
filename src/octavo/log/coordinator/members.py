"""All members of groups in this process: `Members`.

One thread sends their heartbeats: every heartbeat interval, and at once if something has changed in a group. So a
member that seldom polls stays in its group until `max.poll.interval.ms` is over, as in Kafka. It also has happen in
time what is due in their groups, where nobody serves.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final

from octavo.errors import OctavoError
from octavo.log.coordinator.member import Member
from octavo.log.ownership.fork_safe import make_rlock

if TYPE_CHECKING:
    from octavo.coordinator.groups.group_shard import GroupShard
    from octavo.log.coordinator.host import Host

_SOON_S: Final = 0.1  # until a member is looked after again whose group could not be asked
_FAILED_S: Final = 1.0  # until a coordinator is asked again whose records could not be written
_MS: Final = 1000


class Members:
    """All members of a directory in this process, and the thread that looks after them. Any thread may use it."""

    def __init__(self, is_usable: Callable[[], bool], clock_ms: Callable[[], int]) -> None:
        """Begin without members.

        is_usable: returns whether groups can still have members
        clock_ms: the clock of the coordinators
        """
        self._is_usable: Final = is_usable
        self._clock_ms: Final = clock_ms
        self._lock: Final = make_rlock()
        self._members: frozenset[Member] = frozenset()
        self._pokes: Final[SimpleQueue[None]] = SimpleQueue()  # unlike an event, one may use it in a finalizer
        self._thread: threading.Thread | None = None

    @property
    def ids(self) -> frozenset[str]:
        """The ids of all members."""
        return frozenset(member.member_id for member in self._members)

    def add(self, member: Member) -> None:
        """Look after a member from now on. Call this before it joins, since it may be interrupted anywhere."""
        with self._lock:
            if member not in self._members:
                self._members |= {member}
            if self._thread is None or not self._thread.is_alive():
                thread = threading.Thread(target=self._run, name="octavo-members", daemon=True)
                thread.start()
                self._thread = thread

    def remove(self, member: Member) -> None:
        """Look after a member no longer."""
        with self._lock:
            self._members -= {member}
        self.poke()

    def poke(self) -> None:
        """Have all members be looked after soon. Whoever holds a lock may call this, too."""
        if self._members and self._pokes.empty():
            self._pokes.put(None)

    def leave_all(self) -> None:
        """Have all members leave their groups. What fails is left to time, or to the next who opens the directory."""
        for member in self._members:
            with suppress(OctavoError, OSError):
                member.leave()

    # ------------------------------------------------------------------------------------------------------ the thread

    def _run(self) -> None:
        while True:
            try:
                pause_s = self._look_after()
            except Exception:  # nobody would notice that the thread has ended
                pause_s = _FAILED_S
            with self._lock:
                if not self._members or not self._is_usable():
                    self._members, self._thread = frozenset(), None
                    return
            with suppress(Empty):
                self._pokes.get(timeout=pause_s)

    def _look_after(self) -> float:
        """Do for all members what has to be done. Return the seconds until there is more."""
        now, hosts = time.monotonic(), set()
        due = math.inf
        for member in self._members:
            try:
                if member.is_abandoned:
                    member.leave()
                    continue
                member.look_after()
                hosts.add(member.host)
                due = min(due, member.due)
            except (OctavoError, OSError):  # its consumer finds out what is wrong, or it is tried again
                due = min(due, now + _SOON_S)
        for host in hosts:
            due = min(due, time.monotonic() + self._tick(host))
        return min(max(0.0, due - time.monotonic()), threading.TIMEOUT_MAX)

    def _tick(self, host: Host[GroupShard]) -> float:
        """Have happen what is due in the groups of a host. Return the seconds until there is more."""
        try:
            if host.next_ms is not None and host.next_ms <= self._clock_ms():
                host.tick()
        except (OctavoError, OSError):
            return _FAILED_S
        return math.inf if host.next_ms is None else (host.next_ms - self._clock_ms()) / _MS
