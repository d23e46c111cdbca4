"""Time passes for the coordinators of a broker: `PassingTime`.

The thread of the handlers calls `tick`. What would make that thread pause is undone, and another thread does it again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from octavo.broker.at_once import is_done_at_once
from octavo.broker.troubles import Troubles
from octavo.errors import BadDirectory, OctavoError
from octavo.log.directory.data_directory import DataDirectory

if TYPE_CHECKING:
    from octavo.log.coordinator.host import Host
    from octavo.log.coordinator.hosts import Hosts

_DAMAGE: Final = "the state of groups and transactions could not be read"

_MS: Final = 1000
_FAILED_MS: Final = 1_000  # until a coordinator is asked again whose records could not be written


class PassingTime:
    """What has to happen at some time, in all coordinators that run."""

    def __init__(
        self, directory: DataDirectory, groups: Hosts[Any], transactions: Hosts[Any], troubles: Troubles
    ) -> None:
        self._directory: Final = directory
        self._groups: Final = groups
        self._transactions: Final = transactions
        self._troubles: Final = troubles
        self._has_topics_changed = False
        self._late: Final[set[Host[Any]]] = set()  # those for which another thread has time pass
        self._not_before_ms = 0  # `tick` has nothing to do until then, by the clock of the directory

    def topics_changed(self) -> None:
        """Have `tick` see whether an internal topic was deleted. Any thread may call this."""
        self._has_topics_changed = True

    @property
    def _running(self) -> tuple[Host[Any], ...]:
        return self._groups.running + self._transactions.running

    @property
    def next_deadline(self) -> float:
        """When `tick` has something to do, by `time.monotonic`."""
        return self.next_ms / _MS

    @property
    def next_ms(self) -> float:
        """When `tick` has something to do, in milliseconds of the clock of the directory."""
        next_ms = math.inf
        for host in self._running:
            if host.next_ms is not None and host.next_ms < next_ms and host not in self._late:
                next_ms = host.next_ms
        return max(next_ms, self._not_before_ms)

    def tick(self) -> list[Callable[[], None]]:
        """Have everything happen whose time has come. Return what other threads have to do."""
        left: list[Callable[[], None]] = []
        if self._has_topics_changed:
            self._has_topics_changed = False
            if not is_done_at_once(self._drop_old):
                left.append(self._drop_old)
        now_ms = self._directory.monotonic_ms()
        if now_ms < self.next_ms:
            return left
        self._not_before_ms = 0
        for host in self._running:
            if host.next_ms is None or host.next_ms > now_ms or host in self._late:
                continue
            if not is_done_at_once(partial(self._tick, host)):
                self._late.add(host)
                left.append(partial(self._catch_up, host))
        return left

    def _drop_old(self) -> None:
        self._groups.drop_old()
        self._transactions.drop_old()

    def _tick(self, host: Host[Any]) -> None:
        try:
            host.tick()
        except (OctavoError, OSError) as error:
            self._troubles.failed(trouble(host, error), error)
            now_ms = self._directory.monotonic_ms()
            if host.next_ms is not None and host.next_ms <= now_ms:  # it would be tried again at once
                self._not_before_ms = now_ms + _FAILED_MS

    def _catch_up(self, host: Host[Any]) -> None:
        try:
            self._tick(host)
        except Exception:
            self._not_before_ms = self._directory.monotonic_ms() + _FAILED_MS
            raise
        finally:
            self._late.discard(host)


def trouble(host: Host[Any], error: Exception | None = None) -> str:
    """Return what a coordinator could not do when this was raised, for the operator."""
    return _DAMAGE if isinstance(error, BadDirectory) else f"the state in {host.log.partition} could not be written"
