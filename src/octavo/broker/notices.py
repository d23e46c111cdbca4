"""Tell the operator what happened, and not a thousand times: `Notices`."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Final

INTERVAL_S: Final = 1.0
VARIOUS: Final = ""  # the kind of messages that have none
MOST_VARIOUS: Final = 10


class _Said:
    """What was said of one kind within a second."""

    __slots__ = ("held", "last", "number", "since")

    def __init__(self, since: float) -> None:
        self.since = since
        self.number = 1
        self.held = 0  # messages that were not said
        self.last = ""  # the last of them


class Notices:
    """Says one message of a kind per second, and how many more there were. Any thread may use it.

    Clients cause most messages. One that sends rubbish in a loop must neither fill a disk with them nor hide others.
    """

    def __init__(self, say: Callable[[str], object], clock: Callable[[], float] = time.monotonic) -> None:
        self._say: Final = say
        self._clock: Final = clock
        self._lock: Final = threading.Lock()
        self._said: Final[dict[str, _Said]] = {}

    def say(self, kind: str, message: str) -> None:
        """Say a message, unless one of its kind was said less than a second ago; of `VARIOUS`, unless ten were."""
        now = self._clock()
        with self._lock:
            said = self._said.get(kind)
            if said is None or now - said.since >= INTERVAL_S:
                self._said[kind] = _Said(now)
            elif kind == VARIOUS and said.number < MOST_VARIOUS:
                said.number += 1
                said = None
            else:
                said.held += 1
                said.last = message
                return
        if said is not None and said.held:
            message = f"{message} ({said.held} more like this before)"
        self._tell(message)

    def say_rest(self) -> None:
        """Say what was held back for a second. Call this now and then."""
        now = self._clock()
        with self._lock:
            over = {kind: said for kind, said in self._said.items() if now - said.since >= INTERVAL_S}
            for kind, said in over.items():
                if said.held:
                    self._said[kind] = _Said(now)
                else:
                    del self._said[kind]
        for said in over.values():
            if said.held:
                self._tell(said.last if said.held == 1 else f"{said.last} (and {said.held - 1} more like this)")

    def _tell(self, message: str) -> None:
        with contextlib.suppress(Exception, SystemExit):  # a closed stderr is no reason to stop serving
            self._say(message)
