"""A proxy between clients and a broker, which can kill the broker at the worst moment: `Proxy`.

The worst moment for an idempotent producer is when the broker has appended a batch, and its answer is lost. So the
proxy, once told, holds back an answer to a Produce request, has the broker killed and started again, and closes the
connection. Connections are refused while no broker is there.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

_PRODUCE: Final = 0  # the key of the API


class Proxy:
    """Forwards connections to `upstream`, a `HOST:PORT`."""

    def __init__(self) -> None:
        self.upstream = ""
        self._listening: Final = socket.create_server(("127.0.0.1", 0))
        self._lock: Final = threading.Lock()
        self._sockets: Final[set[socket.socket]] = set()
        self._countdown = 0  # how many answers to Produce requests are let through before `_instead`
        self._instead: Callable[[], object] | None = None
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._listening.getsockname()[1]}"

    def lose_answer(self, after: int, then: Callable[[], object]) -> None:
        """Let `after` answers to Produce requests through; instead of the next, call `then` and disconnect."""
        with self._lock:
            self._countdown, self._instead = after, then

    @property
    def is_done(self) -> bool:
        """Whether the answer was lost that `lose_answer` asked for."""
        return self._instead is None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        with self._lock:
            _close(*self._sockets)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return  # closed
            host, _, port = self.upstream.rpartition(":")
            try:
                broker = socket.create_connection((host, int(port)))
            except OSError:
                client.close()
                continue
            with self._lock:
                self._sockets.update((client, broker))
            produces: set[int] = set()
            for pump in (self._forward_requests, self._forward_answers):
                threading.Thread(target=pump, args=(client, broker, produces), daemon=True).start()

    def _forward_requests(self, client: socket.socket, broker: socket.socket, produces: set[int]) -> None:
        try:
            while frame := _read_frame(client):
                key, _, correlation_id = struct.unpack_from(">hhi", frame, 4)
                if key == _PRODUCE:
                    produces.add(correlation_id)
                broker.sendall(frame)
        except OSError:
            pass
        finally:
            self._end(client, broker)

    def _forward_answers(self, client: socket.socket, broker: socket.socket, produces: set[int]) -> None:
        try:
            while frame := _read_frame(broker):
                (correlation_id,) = struct.unpack_from(">i", frame, 4)
                if correlation_id in produces and (instead := self._count()) is not None:
                    instead()
                    return
                client.sendall(frame)
        except OSError:
            pass
        finally:
            self._end(client, broker)

    def _count(self) -> Callable[[], object] | None:
        with self._lock:
            instead = self._instead
            if instead is None:
                return None
            if self._countdown:
                self._countdown -= 1
                return None
            self._instead = None
            return instead

    def _end(self, *sockets: socket.socket) -> None:
        with self._lock:
            self._sockets.difference_update(sockets)
            _close(*sockets)


def _close(*sockets: socket.socket) -> None:
    for each in sockets:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)  # which wakes the thread that reads from it
        each.close()


def _read_frame(source: socket.socket) -> bytes:
    """Return a size and what it is the size of; nothing at the end."""
    size = _read(source, 4)
    return size + _read(source, int.from_bytes(size, "big")) if size else b""


def _read(source: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        more = source.recv(min(size - len(data), 1 << 20))
        if not more:
            return b""
        data += more
    return bytes(data)
