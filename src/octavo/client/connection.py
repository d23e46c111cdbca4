"""One connection to a broker: `BrokerConnection`."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final, Self

from octavo.broker.wire.api_keys import API_VERSIONS, APIS
from octavo.broker.wire.frames import SIZE
from octavo.broker.wire.messages import Content, Struct, read_response, write_request
from octavo.broker.wire.primitives import skip_tagged
from octavo.errors import BrokerUnreachable, ErrorCode, MalformedRequest, RequestFailed

_HEADER: Final = struct.Struct(">hhi")
_CORRELATION: Final = struct.Struct(">i")
_LARGEST_ANSWER: Final = 1 << 30
_CLIENT_ID: Final = b"octavo"


class BrokerConnection:
    """A connection, on which requests are asked one after the other."""

    def __init__(
        self, host: str, port: int, *, patience_s: float = 30.0, largest_answer: int = _LARGEST_ANSWER
    ) -> None:
        """Connect, and ask for the versions that the broker serves. Raises `BrokerUnreachable`.

        patience_s: how long connecting may take, and each answer until all of it is there
        """
        self.address: Final = f"{host}:{port}"
        self._patience_s: Final = patience_s
        self._largest_answer: Final = largest_answer
        self._number = 0
        try:
            self._socket: Final = socket.create_connection((host, port), timeout=patience_s)
        except OSError as error:
            raise BrokerUnreachable(self.address, error.strerror or str(error)) from None
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._versions: Final = self._served()
        except BaseException:
            self.close()
            raise

    def version(self, api_key: int, newest: int | None = None) -> int:
        """Return the newest version of an API that both sides know, not above `newest`.

        Raises `RequestFailed` if there is none.
        """
        api = APIS[api_key]
        first, last = self._versions.get(api_key, (0, -1))
        version = min(last, api.last if newest is None else min(newest, api.last))
        if version < max(first, api.first):
            raise RequestFailed(
                ErrorCode.UNSUPPORTED_VERSION,
                f"the broker at {self.address} does not serve {api.name} in a version known here",
            )
        return version

    def serves(self, api_key: int) -> bool:
        """Return whether the broker serves an API."""
        return api_key in self._versions

    def ask(self, api_key: int, content: Content, *, newest: int | None = None) -> Struct:
        """Ask a request in the newest version that both sides know, and return the answer.

        Raises `BrokerUnreachable` if the connection breaks; use another one then.
        """
        return self._ask(api_key, self.version(api_key, newest), content)

    def _ask(self, api_key: int, version: int, content: Content) -> Struct:
        self._number = (self._number + 1) & 0x7FFFFFFF
        flexible = version >= APIS[api_key].flexible
        head = _HEADER.pack(api_key, version, self._number)
        client_id = len(_CLIENT_ID).to_bytes(2, "big") + _CLIENT_ID + (b"\0" if flexible else b"")
        frame = head + client_id + write_request(api_key, version, content)
        try:
            self._socket.settimeout(self._patience_s)
            self._socket.sendall(SIZE.pack(len(frame)) + frame)
            answer = self._receive()
        except OSError as error:
            raise BrokerUnreachable(self.address, error.strerror or str(error)) from None
        try:
            (number,) = _CORRELATION.unpack_from(answer)
            if number != self._number:
                raise BrokerUnreachable(self.address, f"it answered request {number} instead of {self._number}")
            position = _CORRELATION.size
            if flexible and api_key != API_VERSIONS:
                position = skip_tagged(answer, position)
            return read_response(api_key, version, answer[position:])
        except (MalformedRequest, struct.error) as error:
            raise BrokerUnreachable(self.address, f"its answer is malformed: {error}") from None

    def _receive(self) -> memoryview:
        until = time.monotonic() + self._patience_s
        (size,) = SIZE.unpack(self._exactly(SIZE.size, until))
        if not _CORRELATION.size <= size <= self._largest_answer:
            raise BrokerUnreachable(self.address, f"an answer cannot have {size} bytes: it is no Kafka broker")
        return self._exactly(size, until)

    def _exactly(self, size: int, until: float) -> memoryview:
        received = bytearray()  # grows with what arrives, not with what was announced
        while len(received) < size:
            left_s = until - time.monotonic()
            if left_s <= 0:  # the time-out of a socket begins anew with every byte
                raise BrokerUnreachable(self.address, "timed out")
            self._socket.settimeout(left_s)
            more = self._socket.recv(min(size - len(received), 1 << 20))
            if not more:
                raise BrokerUnreachable(self.address, "it closed the connection")
            received += more
        return memoryview(received).toreadonly()

    def _served(self) -> dict[int, tuple[int, int]]:
        answer = self._ask(API_VERSIONS, 0, {})
        if answer.error_code:
            raise RequestFailed(answer.error_code, f"the broker at {self.address} does not tell its versions")
        return {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def check(answer: Any, subject: str) -> None:
    """Raise `RequestFailed` if a part of an answer has an error code."""
    if answer.error_code:
        raise RequestFailed(answer.error_code, f"{subject}: {words(answer)}")


def only(told: Sequence[Any], subject: str) -> Any:
    """Return the one part of an answer about one thing. Raises `RequestFailed` if there are more, or none."""
    if len(told) != 1:
        why = f"a broker was asked about {subject} alone, and its answer has {len(told)} parts"
        raise RequestFailed(ErrorCode.UNKNOWN_SERVER_ERROR, why)
    return told[0]


def words(answer: Any) -> str:
    """Return what a part of an answer says of its error: its message, or else the name of its code."""
    message: str | None = getattr(answer, "error_message", None)
    return message or code_name(answer.error_code)


def code_name(code: int) -> str:
    """Return Kafka's name of an error code."""
    from kio.schema.errors import ErrorCode as EveryErrorCode

    try:
        return EveryErrorCode(code).name.upper()
    except ValueError:
        return f"error {code}"
