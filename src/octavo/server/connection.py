"""One connection of a client: what has arrived of the next request, and what has to be sent.

Requests are answered one after the other. While one waits for its answer, nothing more is read, as in Kafka; what has
already arrived of the following requests is kept.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from typing import Final

from octavo.broker.answers import Part, Parts, Wait
from octavo.broker.wire.frames import SIZE
from octavo.errors import MalformedRequest
from octavo.log.reading.read_view import FileSlice
from octavo.server.buffers import LARGEST, BufferPool

_SLICE_PER_TURN: Final = 4 << 20  # of a file, so that other connections get their turn
_PARTS_PER_SEND: Final = 64
_MAX_UNSENT: Final = 8 << 20  # bytes that are not files; above that no more requests are taken


class Connection:
    """The state of one connection. It knows nothing of epoll: `Reactor` calls it when there is something to do."""

    def __init__(
        self,
        client: socket.socket,
        peer: str,
        listener: tuple[str, int],
        pool: BufferPool,
        max_request_bytes: int,
        now: float,
    ) -> None:
        self.socket: Final = client
        self.descriptor: Final = client.fileno()
        self.listener: Final = listener
        self.used_at = now
        self.waits_for: Wait | None = None  # the answer that the connection waits for
        self.is_busy = False  # an answer is awaited, from a wait or from another thread
        self.is_closed = False
        self.events = 0  # what epoll was last told
        self._pool: Final = pool
        self._max_request_bytes: Final = max_request_bytes
        self._buffer: bytearray | None = None  # what arrived after the last whole request
        self._begin = 0  # where that begins in the buffer
        self._end = 0
        self._out: Final[deque[Part]] = deque()
        self._unsent = 0  # bytes in `_out` that are not files
        self.peer: Final = peer

    # ------------------------------------------------------------------------------------------------------- requests

    def receive(self, shared: bytearray, view: memoryview) -> bool:
        """Receive what is there, at most once. Returns whether the connection is still open.

        If nothing is left over from before, the bytes are received into the buffer that all connections share. After
        `next_request` has returned all requests in it, `keep_rest` saves what is left.
        """
        if self._buffer is None:
            received = self.socket.recv_into(shared)
            self._source = view
            self._begin, self._end = 0, received
        else:
            self._make_room()
            target = memoryview(self._buffer)
            received = self.socket.recv_into(target[self._end :])
            self._source = target
            self._end += received
        return received > 0

    def next_request(self) -> memoryview | None:
        """Return the next request if it has arrived as a whole. Raises `MalformedRequest` for an impossible size."""
        available = self._end - self._begin
        if available < SIZE.size:
            return None
        (size,) = SIZE.unpack_from(self._source, self._begin)
        if not 0 < size <= self._max_request_bytes:
            raise MalformedRequest(f"a request cannot have {size} bytes")
        if available < SIZE.size + size:
            return None
        begin = self._begin + SIZE.size
        self._begin = begin + size
        return self._source[begin : self._begin]

    def keep_rest(self) -> None:
        """Save what has arrived of the next request, or give the buffer back."""
        rest = self._end - self._begin
        if not rest:
            if self._buffer is not None:
                self._pool.give_back(self._buffer)
                self._buffer = None
        elif self._buffer is None:
            buffer = self._pool.take(self._wanted(rest))
            buffer[:rest] = self._source[self._begin : self._end]
            self._buffer, self._begin, self._end = buffer, 0, rest
            self._source = memoryview(buffer)

    def _wanted(self, rest: int) -> int:
        """Return the size of the buffer for the next request: all of it, but not more than a little at a time."""
        wanted = rest
        if rest >= SIZE.size:
            wanted = SIZE.size + max(0, int(SIZE.unpack_from(self._source, self._begin)[0]))
        return max(rest, min(wanted, LARGEST, SIZE.size + self._max_request_bytes)) + 1

    def _make_room(self) -> None:
        """Have room for more bytes behind those that are there."""
        buffer = self._buffer
        assert buffer is not None
        rest = self._end - self._begin
        missing = SIZE.size
        if rest >= SIZE.size:
            missing = SIZE.size + int(SIZE.unpack_from(buffer, self._begin)[0]) - rest
        if len(buffer) - self._end >= min(missing, LARGEST):
            return
        if rest + min(missing, LARGEST) <= len(buffer):
            buffer[:rest] = buffer[self._begin : self._end]
        else:
            larger = self._pool.take(max(2 * rest, rest + min(missing, LARGEST)))
            larger[:rest] = memoryview(buffer)[self._begin : self._end]
            self._pool.give_back(buffer)
            self._buffer = larger
        self._begin, self._end = 0, rest

    @property
    def has_rest(self) -> bool:
        """Whether bytes have arrived that no request was made of yet."""
        return self._end > self._begin

    # -------------------------------------------------------------------------------------------------------- answers

    def answer(self, parts: Parts) -> None:
        """Add an answer to what has to be sent."""
        sizes = [part.size if isinstance(part, FileSlice) else len(part) for part in parts]
        parts[0] = SIZE.pack(sum(sizes)) + parts[0]  # type: ignore[operator] # the first part is the header
        self._out.extend(parts)
        self._unsent += SIZE.size + sum(len(part) for part in parts if isinstance(part, bytes))

    @property
    def has_answers(self) -> bool:
        """Whether there is something to send."""
        return bool(self._out)

    @property
    def takes_requests(self) -> bool:
        """Whether the client reads its answers, and none is awaited: then more requests are taken."""
        return not self.is_busy and self._unsent < _MAX_UNSENT

    def send(self) -> None:
        """Send as much as the socket takes and is fair to others."""
        out = self._out
        budget = _SLICE_PER_TURN
        try:
            while out and budget > 0:
                if isinstance(out[0], FileSlice):
                    sent = self._send_slice(out[0], budget)
                    budget -= sent
                    if not sent:
                        return
                elif not self._send_bytes():
                    return
        except BlockingIOError:
            return

    def _send_slice(self, part: FileSlice, budget: int) -> int:
        sent = os.sendfile(self.descriptor, part.descriptor, part.position, min(part.size, budget))
        if not sent:
            raise ConnectionError("a segment is shorter than the answer that was made from it")
        if sent == part.size:
            self._out.popleft()
        else:
            self._out[0] = FileSlice(part.file, part.position + sent, part.size - sent)
        return sent

    def _send_bytes(self) -> bool:
        """Send the parts up to the next slice of a file in one call. Returns whether all of them went."""
        out = self._out
        parts: list[bytes] = []
        is_followed = False
        for part in out:
            if isinstance(part, FileSlice) or len(parts) == _PARTS_PER_SEND:
                is_followed = True
                break
            parts.append(part)
        flags = socket.MSG_MORE if is_followed else 0
        sent = self.socket.sendmsg(parts, (), flags) if len(parts) > 1 else self.socket.send(parts[0], flags)
        self._unsent -= sent
        for part in parts:
            if sent < len(part):
                out[0] = part[sent:]
                return False
            sent -= len(part)
            out.popleft()
        return True

    def close(self) -> None:
        """Close the socket, and give everything back."""
        self.is_closed = True
        self._out.clear()
        if self._buffer is not None:
            self._pool.give_back(self._buffer)
            self._buffer = None
        self.socket.close()
