"""A network without privileges: every node is behind a proxy on loopback, which knows the peers by their client ids.

A peer names itself in the first request of a connection: Kafka's brokers fetch as `broker-3-fetcher-0`, follow the
metadata as `raft-client-3`, and ask the controller as `3`; Octavo's do the same. Whoever else comes is a client.
"""

from __future__ import annotations

import re
import socket
import struct
import threading
import time
from contextlib import suppress
from typing import Final

from tests.cluster.network import CLIENTS, Place
from tests.ports import free_port

_PEER: Final = re.compile(rb"(?:broker-|raft-client-)?(\d+)(?:-[A-Za-z-]+\d*)?")
_CHUNK: Final = 1 << 16
_PAUSE_S: Final = 0.01  # between looks at what is cut


class ProxyNetwork:
    """Two threads for each connection. A delay holds up what comes after it, too."""

    description: Final = "a proxy on loopback, which tells peers by their client ids"

    def __init__(self) -> None:
        self._places: Final[dict[int, Place]] = {}
        self._cut: Final[set[tuple[int, int]]] = set()
        self._delays: Final[dict[tuple[int, int], int]] = {}
        self._lock: Final = threading.Lock()
        self._listening: Final[list[socket.socket]] = []
        self._sockets: Final[set[socket.socket]] = set()
        self._is_closed = False

    def place(self, node: int) -> Place:
        if node not in self._places:
            listening = socket.create_server(("127.0.0.1", 0))
            self._listening.append(listening)
            port = free_port()
            self._places[node] = Place(f"127.0.0.1:{port}", f"127.0.0.1:{listening.getsockname()[1]}")
            threading.Thread(target=self._accept, args=(node, listening, port), daemon=True).start()
        return self._places[node]

    def cut(self, source: int, target: int) -> None:
        self._cut.add((source, target))

    def delay(self, source: int, target: int, delay_ms: int) -> None:
        self._delays[source, target] = delay_ms

    def heal(self) -> None:
        self._cut.clear()
        self._delays.clear()

    def close(self) -> None:
        self._is_closed = True
        for each in self._listening:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        with self._lock:
            for each in self._sockets:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def _accept(self, node: int, listening: socket.socket, port: int) -> None:
        while True:
            try:
                outer, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(node, outer, port), daemon=True).start()

    def _connect(self, node: int, outer: socket.socket, port: int) -> None:
        """Forward one connection, in both directions, when its first request has told who it is."""
        with self._lock:
            self._sockets.add(outer)
        inner = socket.socket()
        try:
            first = _first_request(outer)
            peer = _peer(first)
            self._wait(peer, node)
            inner.connect(("127.0.0.1", port))
            with self._lock:
                self._sockets.add(inner)
            inner.sendall(first)
            back = threading.Thread(target=self._pump, args=(inner, outer, node, peer), daemon=True)
            back.start()
            self._pump(outer, inner, peer, node)
            back.join()
        except OSError:
            pass
        finally:
            with self._lock:
                self._sockets.difference_update((outer, inner))
            for each in (outer, inner):
                each.close()

    def _wait(self, source: int, target: int) -> None:
        while (source, target) in self._cut and not self._is_closed:
            time.sleep(_PAUSE_S)

    def _pump(self, reading: socket.socket, writing: socket.socket, source: int, target: int) -> None:
        """Forward one direction. What is cut waits, as it does in TCP."""
        try:
            while data := reading.recv(_CHUNK):
                if delay_ms := self._delays.get((source, target)):
                    time.sleep(delay_ms / 1000)
                self._wait(source, target)
                writing.sendall(data)
            self._wait(source, target)
        except OSError:
            pass
        finally:
            for each in (reading, writing):
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)


def _first_request(connection: socket.socket) -> bytes:
    """Return at least the header of a connection's first request, or all that comes."""
    data = b""
    while len(data) < 14 or len(data) < 14 + max(0, int.from_bytes(data[12:14], "big", signed=True)):
        more = connection.recv(_CHUNK)
        if not more:
            break
        data += more
    return data


def _peer(request: bytes) -> int:
    """The node that sends a request, by its client id."""
    if len(request) < 14:
        return CLIENTS
    (size,) = struct.unpack_from(">h", request, 12)
    found = _PEER.fullmatch(request[14 : 14 + max(0, size)])
    return CLIENTS if found is None else int(found[1])
