"""End the wait of a `Poller` from another thread: `make_wakeup`. By an eventfd where there are any, as on Linux.

Elsewhere it is a pair of sockets.
"""

from __future__ import annotations

import os
import socket
import sys
from contextlib import suppress
from typing import Final, Protocol


class Wakeup(Protocol):
    """A descriptor that can be read from the call of `wake` until that of `clear`."""

    @property
    def descriptor(self) -> int:
        """What the poller watches; -1 once it is closed."""

    def wake(self) -> None:
        """Make the descriptor readable. Any thread may call this, also when it is closed: then nothing happens."""

    def clear(self) -> None:
        """Make the descriptor unreadable until the next `wake`."""

    def close(self) -> None:
        """Close the descriptor."""


class SocketWakeup:
    """A `Wakeup` for systems without eventfd."""

    def __init__(self) -> None:
        self._reading, self._writing = socket.socketpair()
        self._reading.setblocking(False)
        self._writing.setblocking(False)

    @property
    def descriptor(self) -> int:
        """See `Wakeup`."""
        return self._reading.fileno()

    def wake(self) -> None:
        """See `Wakeup`."""
        with suppress(OSError):  # it is closed; or it is full, and so readable
            self._writing.send(b"!")

    def clear(self) -> None:
        """See `Wakeup`."""
        with suppress(BlockingIOError):
            while len(self._reading.recv(_MOST)) == _MOST:
                pass

    def close(self) -> None:
        """See `Wakeup`."""
        self._reading.close()
        self._writing.close()


_MOST: Final = 4096  # bytes that are read at a time

if sys.platform == "linux" and hasattr(os, "eventfd"):

    class _EventWakeup:
        """A `Wakeup` that is a counter in the kernel."""

        def __init__(self) -> None:
            self.descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

        def wake(self) -> None:
            with suppress(OSError, ValueError):  # it is closed
                os.eventfd_write(self.descriptor, 1)

        def clear(self) -> None:
            with suppress(BlockingIOError):
                os.eventfd_read(self.descriptor)

        def close(self) -> None:
            descriptor, self.descriptor = self.descriptor, -1  # another file may get this number
            os.close(descriptor)

    def make_wakeup() -> Wakeup:
        """Return what this system has. Raises `OSError`."""
        return _EventWakeup()

else:

    def make_wakeup() -> Wakeup:
        """Return what this system has. Raises `OSError`."""
        return SocketWakeup()
