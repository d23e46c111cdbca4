"""A client that sends frames made by hand, to see what a broker does with them."""

from __future__ import annotations

import socket
import struct
from types import TracebackType
from typing import Self

PATIENCE_S = 60


class RawClient:
    """One connection. `ask` sends a frame and returns the answer; None if the connection was closed instead."""

    def __init__(self, address: str, patience_s: float = PATIENCE_S) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=patience_s)

    def send(self, frame: bytes) -> None:
        """Send a frame, with its size before it."""
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)

    def receive(self) -> bytes | None:
        """Return the next answer; None at the end of the connection."""
        head = self._exactly(4)
        return None if head is None else self._exactly(struct.unpack(">i", head)[0])

    def ask(self, frame: bytes) -> bytes | None:
        """Send a frame, and return the answer."""
        self.send(frame)
        return self.receive()

    def _exactly(self, size: int) -> bytes | None:
        received = b""
        while len(received) < size:
            try:
                more = self.socket.recv(size - len(received))
            except ConnectionResetError:
                return None
            if not more:
                return None
            received += more
        return received

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()


def header(api_key: int, version: int, correlation_id: int = 7, client_id: str = "raw", *, flexible: bool) -> bytes:
    """The header of a request."""
    name = client_id.encode()
    tags = b"\0" if flexible else b""
    return struct.pack(">hhih", api_key, version, correlation_id, len(name)) + name + tags
