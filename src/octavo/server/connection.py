"""One connection of a client: what has arrived of the next request, and what has to be sent.

Requests are answered one after the other. While one waits for its answer, nothing more is read, as in Kafka; what has
already arrived of the following requests is kept. Nor is more read while the client does not read its answers. So the
memory that a connection takes is that of one request, one answer and little more.

A client may shut down its side after its last request: it gets the answers to all that it sent, and then the connection
is closed.
"""

from __future__ import annotations

import mmap
import socket
from collections import deque
from typing import Final

from octavo.broker.answers import Part, Parts, Wait
from octavo.broker.wire.frames import SIZE
from octavo.errors import ConnectionRefused, MalformedRequest
from octavo.log.reading.read_view import FileSlice
from octavo.server.buffers import LARGEST, SMALLEST, BufferPool, RequestMemory
from octavo.server.sending import MORE_FOLLOWS, send_file

_SLICE_PER_TURN: Final = 4 << 20  # of a file, so that other connections get their turn
_PARTS_PER_SEND: Final = 64
_NOTHING: Final = memoryview(b"")
_COPIED: Final = 64 << 10  # so few bytes are sent in one call. With a slice of a file between two parts it is three
_TOO_SHORT: Final = "a segment is shorter than the answer that was made from it"
_MAX_UNSENT: Final = 256 << 10  # bytes; above that no more requests are taken. Files count: answers keep them open
_UNCOUNTED: Final = 2 * SMALLEST  # bytes of a request that may arrive before it is counted
_SPARE: Final = 4  # a buffer that is so many times larger than needed is exchanged


class Connection:
    """The state of one connection. It knows nothing of pollers: `Reactor` calls it when there is something to do."""

    __slots__ = (
        "_begin",
        "_buffer",
        "_end",
        "_max_request_bytes",
        "_memory",
        "_out",
        "_pool",
        "_reserved",
        "_source",
        "_unsent",
        "descriptor",
        "events",
        "has_ended",
        "has_turn",
        "held",
        "is_busy",
        "is_closed",
        "lacks_memory",
        "listener",
        "listener_name",
        "peer",
        "received",
        "socket",
        "used_at",
        "waits_for",
    )

    def __init__(
        self,
        client: socket.socket,
        peer: str,
        listener: tuple[str, int],
        listener_name: str,
        pool: BufferPool,
        memory: RequestMemory,
        max_request_bytes: int,
        now: float,
    ) -> None:
        self.socket: Final = client
        self.descriptor: Final = client.fileno()
        self.peer: Final = peer
        self.listener: Final = listener
        self.listener_name: Final = listener_name
        self.used_at = now  # when bytes were last received or sent
        self.waits_for: Wait | None = None  # the answer that the connection waits for
        self.is_busy = False  # an answer is awaited, from a wait or from another thread
        self.has_turn = False  # requests have arrived that are taken in the next turn
        self.has_ended = False  # the client sends nothing more
        self.lacks_memory = False  # the next request has to wait until others have arrived as a whole
        self.held = 0  # bytes of a large request whose answer is awaited
        self.received = 0  # bytes in all, which tells how fast a client sends
        self.is_closed = False
        self.events = 0  # what the poller was last told
        self._pool: Final = pool
        self._memory: Final = memory
        self._max_request_bytes: Final = max_request_bytes
        self._buffer: mmap.mmap | None = None  # what arrived after the last whole request
        self._source: memoryview = _NOTHING
        self._begin = 0  # where that begins in the buffer
        self._end = 0
        self._reserved = 0
        self._out: Final[deque[Part]] = deque()
        self._unsent = 0  # bytes in `_out`

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
            most = max(self._begin + max(self._reserved, _UNCOUNTED) - self._end, SMALLEST)
            received = self.socket.recv_into(self._source[self._end : self._end + most])
            self._end += received
        self.received += received
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
        if self._reserved:
            self._memory.give_back(self._reserved)
            self._reserved = 0
        begin = self._begin + SIZE.size
        self._begin = begin + size
        return self._source[begin : self._begin]

    def keep_rest(self) -> None:
        """Save what has arrived of the next request, or give the buffer back."""
        rest = self._end - self._begin
        buffer = self._buffer
        if not rest:
            if buffer is not None:
                self._pool.give_back(buffer)
                self._buffer = None
            self._source = _NOTHING
        elif buffer is None or len(buffer) > SMALLEST:
            wanted = self._wanted(rest)
            if buffer is None or len(buffer) > _SPARE * wanted:
                self._move_to(self._pool.take(wanted))
        self.reserve()

    def reserve(self, *, all_of_it: bool = False) -> None:
        """Count the memory for what may arrive next of a large request; if there is none, the connection has to wait.

        all_of_it: count all of the request, whether there is room or not
        """
        self.lacks_memory = False
        arrived = self._end - self._begin
        size = self._next_size(arrived)
        if all_of_it:
            self._memory.hold(size - self._reserved)
            self._reserved = size
        elif arrived > SMALLEST and size > SMALLEST and arrived >= self._reserved:
            wanted = min(size, 2 * arrived)
            if self._memory.take(wanted - self._reserved):
                self._reserved = wanted
            else:
                self.lacks_memory = True

    @property
    def announced(self) -> int:
        """The bytes of the request that is arriving."""
        return self._next_size(self._end - self._begin)

    @property
    def reserved(self) -> int:
        """The bytes that are counted for a request that has not arrived as a whole."""
        return self._reserved

    def _next_size(self, rest: int) -> int:
        """Return the size of the next frame, as far as it is known."""
        if rest < SIZE.size:
            return rest
        return SIZE.size + max(0, int(SIZE.unpack_from(self._source, self._begin)[0]))

    def _wanted(self, rest: int) -> int:
        """Return the size of the buffer for the next request: all of it, but not more than a little at a time."""
        return max(rest, min(self._next_size(rest), LARGEST, SIZE.size + self._max_request_bytes)) + 1

    def _move_to(self, buffer: mmap.mmap) -> None:
        """Go on with another buffer."""
        rest, target = self._end - self._begin, memoryview(buffer)
        target[:rest] = self._source[self._begin : self._end]
        if self._buffer is not None:
            self._pool.give_back(self._buffer)
        self._buffer, self._source, self._begin, self._end = buffer, target, 0, rest

    def _make_room(self) -> None:
        """Have room for more bytes behind those that are there."""
        buffer = self._buffer
        assert buffer is not None
        rest = self._end - self._begin
        missing = min(max(SIZE.size, self._next_size(rest) - rest), LARGEST)
        if len(buffer) - self._end >= missing:
            return
        if rest + missing <= len(buffer):
            buffer.move(0, self._begin, rest)
            self._begin, self._end = 0, rest
        else:
            self._move_to(self._pool.take(max(2 * rest, rest + missing)))

    @property
    def has_rest(self) -> bool:
        """Whether bytes have arrived that no request was made of yet."""
        return self._end > self._begin

    # -------------------------------------------------------------------------------------------------------- answers

    def answer(self, parts: Parts) -> None:
        """Add an answer to what has to be sent."""
        if len(parts) == 2 and isinstance(parts[1], bytes):  # nearly always: a header and a body
            head, body = parts
            size = len(head) + len(body)
            self._out.append(SIZE.pack(size) + head + body)  # type: ignore[operator] # the first part is the header
        else:
            size = sum([part.size if isinstance(part, FileSlice) else len(part) for part in parts])
            parts[0] = SIZE.pack(size) + parts[0]  # type: ignore[operator]
            if size <= _COPIED:
                self._out.append(b"".join([_bytes_of(part) if isinstance(part, FileSlice) else part for part in parts]))
            else:
                self._out.extend(parts)
        self._unsent += SIZE.size + size

    @property
    def has_answers(self) -> bool:
        """Whether there is something to send."""
        return bool(self._out)

    @property
    def takes_requests(self) -> bool:
        """Whether the client reads its answers, and none is awaited: then more requests are taken."""
        return not self.is_busy and self._unsent < _MAX_UNSENT

    @property
    def takes_bytes(self) -> bool:
        """Whether more may be received."""
        return not (self.has_turn or self.lacks_memory or self.has_ended) and self.takes_requests

    def send(self) -> None:
        """Send as much as the socket takes and is fair to others."""
        out = self._out
        budget = _SLICE_PER_TURN
        try:
            while out and budget > 0:
                first = out[0]
                if isinstance(first, FileSlice):
                    wanted = min(first.size, budget)
                    budget -= wanted
                    if self._send_slice(first, wanted) < wanted:
                        return  # no more fits: trying once more would only tell the same
                elif not (self._send_one(first) if len(out) == 1 else self._send_bytes()):
                    return
        except BlockingIOError:
            return

    def _send_slice(self, part: FileSlice, wanted: int) -> int:
        """Send so many bytes of a file, or as many as the socket takes. Returns their number."""
        sent = send_file(self.descriptor, part.descriptor, part.position, wanted)
        if not sent:
            raise ConnectionRefused(_TOO_SHORT)
        self._unsent -= sent
        if sent == part.size:
            self._out.popleft()
        else:
            self._out[0] = FileSlice(part.file, part.position + sent, part.size - sent)
        return sent

    def _send_one(self, part: bytes) -> bool:
        """Send the only part. Returns whether all of it went."""
        sent = self.socket.send(part)
        self._unsent -= sent
        if sent < len(part):
            self._out[0] = part[sent:]
            return False
        self._out.clear()
        return True

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
        flags = MORE_FOLLOWS if is_followed else 0
        sent = self.socket.sendmsg(parts, (), flags) if len(parts) > 1 else self.socket.send(parts[0], flags)
        self._unsent -= sent
        for part in parts:
            if sent < len(part):
                out[0] = part[sent:]
                return False
            sent -= len(part)
            out.popleft()
        return True

    @property
    def is_lost(self) -> bool:
        """Whether the client has ended the connection without a word. May tell it only once."""
        return self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0

    def close(self) -> None:
        """Close the socket, and give everything back."""
        self.is_closed = True
        self._out.clear()
        self._memory.give_back(self._reserved)
        self._reserved = 0
        if self._buffer is not None:
            self._pool.give_back(self._buffer)
            self._buffer = None
        self._source = _NOTHING
        self._begin = self._end = 0
        self.socket.close()


def _bytes_of(part: FileSlice) -> bytes:
    """Read a slice of a file. Raises `ConnectionRefused` if the file is too short."""
    data = part.file.read_at(part.size, part.position)
    if len(data) < part.size:
        raise ConnectionRefused(_TOO_SHORT)
    return data
