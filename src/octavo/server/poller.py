"""Wait until sockets can be read or written: `make_poller`. That is epoll where there is one, as on Linux.

Elsewhere it is `SelectorsPoller`, with what the standard library's `selectors` finds: kqueue on macOS and the BSDs.
"""

from __future__ import annotations

import select
import selectors
import sys
from typing import Final, Protocol


class Poller(Protocol):
    """Tells which descriptors are ready: the part of `select.epoll` that a reactor needs."""

    def register(self, fd: int, eventmask: int, /) -> None:
        """Begin to watch a descriptor. Raises `OSError`."""

    def modify(self, fd: int, eventmask: int, /) -> None:
        """Change what a descriptor is watched for, which may be nothing: 0. Raises `OSError`."""

    def unregister(self, fd: int, /) -> None:
        """Watch a descriptor no more; call this before it is closed. Raises `OSError`."""

    def poll(self, timeout: float, /) -> list[tuple[int, int]]:
        """Wait for so many seconds at most. Returns descriptors and what they are ready for, each once."""

    def close(self) -> None:
        """Watch nothing any more."""


class SelectorsPoller:
    """A `Poller` for systems without epoll.

    It does not tell of `BROKEN`: that a connection is lost shows when it is read from, written to or looked at.
    """

    def __init__(self) -> None:
        self._selector: Final = selectors.DefaultSelector()

    def register(self, fd: int, eventmask: int, /) -> None:
        """See `Poller`."""
        if eventmask:  # selectors have no place for what is not watched
            self._selector.register(fd, eventmask)

    def modify(self, fd: int, eventmask: int, /) -> None:
        """See `Poller`."""
        if not eventmask:
            self.unregister(fd)
        elif fd in self._selector.get_map():
            self._selector.modify(fd, eventmask)
        else:
            self._selector.register(fd, eventmask)

    def unregister(self, fd: int, /) -> None:
        """See `Poller`."""
        if fd in self._selector.get_map():
            self._selector.unregister(fd)

    def poll(self, timeout: float, /) -> list[tuple[int, int]]:
        """See `Poller`."""
        ready: dict[int, int] = {}  # kqueue tells of reading and of writing one after the other
        for key, events in self._selector.select(timeout):
            ready[key.fd] = ready.get(key.fd, 0) | events
        return list(ready.items())

    def close(self) -> None:
        """See `Poller`."""
        self._selector.close()


if sys.platform == "linux" and hasattr(select, "epoll"):
    READ = select.EPOLLIN
    WRITE = select.EPOLLOUT
    BROKEN = select.EPOLLERR | select.EPOLLHUP  # is told whether it is watched or not

    def make_poller() -> Poller:
        """Return what this system waits with. Raises `OSError`."""
        return select.epoll()

else:
    READ = selectors.EVENT_READ
    WRITE = selectors.EVENT_WRITE
    BROKEN = 0  # is not told: who has to know has to look

    def make_poller() -> Poller:
        """Return what this system waits with. Raises `OSError`."""
        return SelectorsPoller()
