"""Tell the operator once that something fails, and once that it works again: `Troubles`.

A disk that is full fails every request that writes, many times a second. Clients try again until there is room.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from octavo.broker.notices import Notices
from octavo.errors import ErrorCode, LogError
from octavo.log.storage import is_broken

_SILENCE_S: Final = 60.0  # what fails again after so long is said again
_MOST: Final = 1000


def storage_error(error: Exception) -> ErrorCode:
    """Return the code for a change that failed: of the disk, if the operating system has refused it."""
    if isinstance(error, OSError):
        return ErrorCode.KAFKA_STORAGE_ERROR
    return error.code if isinstance(error, LogError) else ErrorCode.UNKNOWN_SERVER_ERROR


def reason(error: Exception) -> str:
    """Return why something failed, for people."""
    if isinstance(error, OSError) and error.strerror is not None:
        return error.strerror if error.filename is None else f"{error.strerror}: {error.filename}"
    return str(error)


class Troubles:
    """What fails at the moment. Any thread may use it."""

    def __init__(self, notices: Notices, clock: Callable[[], float] = time.monotonic) -> None:
        self._notices: Final = notices
        self._clock: Final = clock
        self._lock: Final = threading.Lock()
        self.disk_failed: Callable[[OSError], object] | None = None  # is told of every error of a disk that has failed
        self.present: Final[dict[str, float]] = {}  # what fails, and when it last did

    def failed(self, what: str, error: Exception) -> None:
        """Say that something failed, unless it fails all the time. `what` begins the sentence."""
        if self.disk_failed is not None and isinstance(error, OSError) and is_broken(error):
            self.disk_failed(error)
        now = self._clock()
        with self._lock:
            last = self.present.pop(what, None)
            self.present[what] = now  # at the end: the first ones are the oldest
            if len(self.present) > _MOST:
                del self.present[next(iter(self.present))]
        if last is None or now - last > _SILENCE_S:
            self._notices.say(what, f"{what}: {reason(error)}")

    def is_over(self, what: str, message: str) -> None:
        """Say a message if this has failed, and works now."""
        with self._lock:
            if self.present.pop(what, None) is None:
                return
        self._notices.say(message, message)
