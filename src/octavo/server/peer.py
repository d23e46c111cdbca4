"""One connection to another node: `PeerConnection` sends requests and takes the answers.

It knows nothing of pollers and of time: `PeerConnections` calls it when there is something to do.
"""

from __future__ import annotations

import socket
import struct
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from octavo.broker.member.peers import Answered, Failed
from octavo.broker.wire.api_keys import API_VERSIONS, is_flexible
from octavo.broker.wire.frames import SIZE
from octavo.broker.wire.primitives import skip_tagged
from octavo.cluster.messages import Endpoint
from octavo.errors import MalformedRequest
from octavo.records.text import write_text

_HEADER: Final = struct.Struct(">hhih")
_CORRELATION: Final = struct.Struct(">i")
_PARTS_PER_SEND: Final = 64
_SMALLEST: Final = 64 << 10  # bytes of the buffer
_KEPT: Final = 16 << 20  # a larger buffer is not kept: few answers are so large
_MAX_NUMBER: Final = 0x7FFFFFFF

Address = tuple[int, tuple[Any, ...]]  # of which family, and what `connect` takes


class Asked:
    """A request."""

    __slots__ = ("answered", "failed", "is_flexible", "is_over", "number")

    def __init__(self, number: int, is_flexible: bool, answered: Answered, failed: Failed) -> None:
        self.number: Final = number
        self.is_flexible: Final = is_flexible  # whether the header of the answer has tagged fields
        self.answered: Final = answered
        self.failed: Final = failed
        self.is_over = False


class PeerConnection:
    """The requests and answers of one connection."""

    def __init__(self, endpoint: Endpoint, channel: str, largest_answer: int) -> None:
        """There is no socket yet: what is asked waits until there is one, and it is connected."""
        self.endpoint: Final = endpoint
        self.channel: Final = channel
        self.socket: socket.socket | None = None
        self.addresses: Sequence[Address] = ()  # those that were not tried yet
        self.is_connected = False
        self.events = 0  # what the poller was last told
        self.asked: Final[deque[Asked]] = deque()
        self._largest_answer: Final = largest_answer
        self._number = 0
        self._out: Final[deque[bytes | memoryview]] = deque()
        self._buffer = bytearray()
        self._begin = 0  # where what has arrived begins
        self._end = 0

    # ------------------------------------------------------------------------------------------------------- requests

    def add(
        self, api_key: int, version: int, client_id: str, body: Sequence[bytes], answered: Answered, failed: Failed
    ) -> Asked:
        """Add a request to what has to be sent."""
        self._number = (self._number + 1) & _MAX_NUMBER
        flexible = is_flexible(api_key, version)
        name = write_text(client_id)
        head = _HEADER.pack(api_key, version, self._number, len(name)) + name + (b"\0" if flexible else b"")
        size = len(head) + sum(map(len, body))
        self._out.append(SIZE.pack(size) + head)
        self._out.extend(part for part in body if part)
        request = Asked(self._number, flexible and api_key != API_VERSIONS, answered, failed)
        self.asked.append(request)
        return request

    @property
    def has_requests(self) -> bool:
        """Whether there is something to send."""
        return bool(self._out)

    def send(self) -> None:
        """Send as much as the socket takes. Raises `OSError` if the connection is lost."""
        assert self.socket is not None
        out = self._out
        while out:
            parts = [out[index] for index in range(min(len(out), _PARTS_PER_SEND))]
            try:
                sent = self.socket.sendmsg(parts)
            except BlockingIOError:
                return
            for part in parts:
                if sent < len(part):
                    out[0] = memoryview(part)[sent:]
                    return
                sent -= len(part)
                out.popleft()

    # -------------------------------------------------------------------------------------------------------- answers

    def receive(self) -> bool:
        """Receive what is there, at most once. Returns whether the connection is still open. Raises `OSError`."""
        assert self.socket is not None
        self._make_room()
        try:
            received = self.socket.recv_into(memoryview(self._buffer)[self._end :])
        except BlockingIOError:
            return True
        self._end += received
        return received > 0

    def take_answers(self) -> None:
        """Hand out the answers that have arrived as a whole. Raises `MalformedRequest` for anything else.

        What the one who takes an answer raises is passed on, and the request counts as not answered.
        """
        while self.socket is not None and (frame := self._next_answer()) is not None:
            if not self.asked:
                raise MalformedRequest("an answer came to a request that nobody made")
            request = self.asked[0]
            (number,) = _CORRELATION.unpack_from(frame)
            if number != request.number:
                raise MalformedRequest(f"an answer is to request {number}, and that to {request.number} is next")
            begin = _CORRELATION.size
            if request.is_flexible:
                begin = skip_tagged(frame, begin)
            self.asked.popleft()
            try:
                request.answered(frame[begin:])
            except BaseException:
                self.asked.appendleft(request)
                raise
            request.is_over = True

    def _next_answer(self) -> memoryview | None:
        if self._end - self._begin < SIZE.size:
            return None
        (size,) = SIZE.unpack_from(self._buffer, self._begin)
        if not _CORRELATION.size <= size <= self._largest_answer:
            raise MalformedRequest(f"an answer cannot have {size} bytes")
        begin = self._begin + SIZE.size
        if self._end < begin + size:
            return None
        self._begin = begin + size
        return memoryview(self._buffer)[begin : self._begin]

    def _make_room(self) -> None:
        """Have room for more bytes. The buffer grows as they arrive, whatever size the other side announces."""
        rest = self._end - self._begin
        if not rest:
            self._begin = self._end = 0
            if not _SMALLEST <= len(self._buffer) <= _KEPT:
                self._buffer = bytearray(_SMALLEST)
            return
        wanted = _SMALLEST
        if rest >= SIZE.size:
            (size,) = SIZE.unpack_from(self._buffer, self._begin)
            wanted = max(_SMALLEST, min(SIZE.size + size, 2 * rest))
        if self._end < len(self._buffer) and self._begin + wanted <= len(self._buffer):
            return
        # A new one even if the old one is large enough: somebody may still hold a view of that.
        buffer = bytearray(max(wanted, _SMALLEST))
        buffer[:rest] = memoryview(self._buffer)[self._begin : self._end]
        self._buffer, self._begin, self._end = buffer, 0, rest

    # ------------------------------------------------------------------------------------------------------------ end

    def close(self) -> list[Asked]:
        """Close the socket. Returns the requests that were not answered."""
        if self.socket is not None:
            self.socket.close()
            self.socket = None
        self.is_connected = False
        self._out.clear()
        self._buffer = bytearray()
        self._begin = self._end = 0
        unanswered = list(self.asked)
        self.asked.clear()
        for request in unanswered:
            request.is_over = True
        return unanswered
