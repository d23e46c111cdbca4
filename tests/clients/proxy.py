"""A proxy between clients and a broker, which finds the worst moment to kill the broker: `Proxy`.

The worst moment for an idempotent producer is when the broker has appended a batch, and its answer is lost. So the
proxy, once told, drops an answer to a Produce request, and refuses connections until the broker was killed and started
again.
"""

from __future__ import annotations

import socket
import struct
import threading
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
        self._countdown: int | None = None  # how many answers to Produce requests are let through; None: all
        self._lost: Final = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._listening.getsockname()[1]}"

    def lose_answer(self, after: int) -> None:
        """Let `after` answers to Produce requests through, and lose the next, with all connections until `resume`."""
        with self._lock:
            self._lost.clear()
            self._countdown = after

    def wait_until_lost(self, timeout_s: float) -> bool:
        """Return whether that answer was lost in time."""
        return self._lost.wait(timeout_s)

    def resume(self) -> None:
        """Forward connections again."""
        with self._lock:
            self._countdown = None
            self._lost.clear()

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
                if self._lost.is_set():
                    raise ConnectionRefusedError
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
                if correlation_id in produces and self._is_to_be_lost():
                    return
                client.sendall(frame)
        except OSError:
            pass
        finally:
            self._end(client, broker)

    def _is_to_be_lost(self) -> bool:
        with self._lock:
            if self._countdown is None:
                return False
            self._countdown -= 1
            if self._countdown >= 0:
                return False
            self._lost.set()
            return True

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
    """Return a size and what it is the size of; nothing at the end, which may come between the two."""
    size = _read(source, 4)
    content = _read(source, int.from_bytes(size, "big"))
    return size + content if content else b""


def _read(source: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        more = source.recv(min(size - len(data), 1 << 20))
        if not more:
            return b""
        data += more
    return bytes(data)
