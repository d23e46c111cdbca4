"""Connections of a broker to other nodes of its cluster, on the reactor's poller: `PeerConnections`.

A connection is made when something is asked, and stays open. When it is lost, or an answer does not come in time or is
none, everything that was asked on it fails; the next request makes a new one. Functions that were given with a request
are never called by the one who asks: `ask` only notes what has failed, and the reactor's next turn tells.
"""

from __future__ import annotations

import contextlib
import heapq
import math
import os
import socket
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from octavo.broker.member.peers import Answered, Failed
from octavo.broker.notices import Notices
from octavo.cluster.messages import Endpoint
from octavo.errors import MalformedRequest
from octavo.server.peer import Address, Asked, PeerConnection
from octavo.server.poller import BROKEN, READ, WRITE, Poller

_FEW: Final = 64
_KEPT_MS: Final = 60_000  # how long addresses of a host are kept that were found too late, or not tried
_CLOSED: Final = "the other side closed the connection"

_Key = tuple[Endpoint, str]


class PeerConnections:
    """Implements `octavo.broker.member.peers.Peers`."""

    def __init__(
        self,
        poller: Poller,
        notices: Notices,
        *,
        largest_answer: int,
        do_elsewhere: Callable[[Callable[[], None]], object],
        call: Callable[[Callable[[], None]], None],
        clock_ms: Callable[[], float],
    ) -> None:
        """Connect to nobody yet.

        do_elsewhere: has another thread do something; names of hosts are looked up there
        call: has the reactor's thread call a function
        """
        self._poller: Final = poller
        self._notices: Final = notices
        self._largest_answer: Final = largest_answer
        self._do_elsewhere: Final = do_elsewhere
        self._call: Final = call
        self._clock_ms: Final = clock_ms
        self._connections: Final[dict[_Key, PeerConnection]] = {}
        self._by_descriptor: Final[dict[int, PeerConnection]] = {}
        self._looking: Final[set[Endpoint]] = set()  # their names are being looked up
        self._found: Final[dict[Endpoint, tuple[float, Sequence[Address]]]] = {}  # to be tried next, and since when
        self._deadlines: Final[list[tuple[float, int, PeerConnection, Asked]]] = []
        self._number = 0  # makes entries of the heap comparable
        self._to_tell: Final[deque[Callable[[], None]]] = deque()
        self._is_closed = False

    # ------------------------------------------------------------------------------------------------------- requests

    def ask(
        self,
        endpoint: Endpoint,
        channel: str,
        api_key: int,
        version: int,
        body: Sequence[bytes],
        *,
        timeout_ms: int,
        client_id: str,
        answered: Answered,
        failed: Failed,
    ) -> None:
        """Send a request; see `Peers.ask`."""
        if self._is_closed:
            return
        connection = self._connections.get((endpoint, channel))
        is_new = connection is None
        if connection is None:
            connection = PeerConnection(endpoint, channel, self._largest_answer)
            self._connections[endpoint, channel] = connection
        asked = connection.add(api_key, version, client_id, body, answered, failed)
        self._number += 1
        heapq.heappush(self._deadlines, (self._clock_ms() + timeout_ms, self._number, connection, asked))
        if is_new:
            self._look_up(connection)
        elif connection.is_connected:
            self._guard(connection, self._flush)

    def disconnect(self, endpoint: Endpoint, channel: str, reason: str) -> None:
        """Close a connection; see `Peers.disconnect`."""
        connection = self._connections.get((endpoint, channel))
        if connection is not None:
            self._drop(connection, reason)

    # ----------------------------------------------------------------------------------------------------- connecting

    def _look_up(self, connection: PeerConnection) -> None:
        """Find the address of a host: at once if it is one, otherwise in another thread.

        That may take longer than the request waits, if a name server is down. Then the next one has the addresses.
        """
        endpoint = connection.endpoint
        found_ms, addresses = self._found.pop(endpoint, (-math.inf, ()))
        if self._clock_ms() - found_ms <= _KEPT_MS:
            self._connect(connection, addresses)
            return
        try:
            addresses = _addresses(endpoint, socket.AI_NUMERICHOST)
        except (OSError, UnicodeError):
            if endpoint not in self._looking:
                self._looking.add(endpoint)
                self._do_elsewhere(partial(self._look_up_elsewhere, endpoint))
        else:
            self._connect(connection, addresses)

    def _look_up_elsewhere(self, endpoint: Endpoint) -> None:
        addresses: Sequence[Address] = ()
        reason = ""
        try:
            addresses = _addresses(endpoint)
        except (OSError, UnicodeError) as error:
            reason = f"the host {endpoint.host!r} is not known: {error}"
        self._call(partial(self._looked_up, endpoint, addresses, reason))

    def _looked_up(self, endpoint: Endpoint, addresses: Sequence[Address], reason: str) -> None:
        """Connect those who wait for the addresses of a host, or keep them if nobody does any more."""
        self._looking.discard(endpoint)
        waiting = [each for each in self._connections.values() if each.endpoint == endpoint and each.socket is None]
        for connection in waiting:
            if addresses:
                self._connect(connection, addresses)
            else:
                self._drop(connection, reason)
        if addresses and not waiting:
            self._found[endpoint] = self._clock_ms(), addresses

    def _connect(self, connection: PeerConnection, addresses: Sequence[Address]) -> None:
        """Begin to connect to the first of some addresses; if that fails, the next one is tried."""
        if self._is_closed or self._connections.get((connection.endpoint, connection.channel)) is not connection:
            return  # given up meanwhile
        (family, address), *connection.addresses = addresses
        try:
            connection.socket = client = socket.socket(family, socket.SOCK_STREAM)
            client.setblocking(False)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with contextlib.suppress(BlockingIOError):
                client.connect(address)
            connection.events = WRITE
            self._poller.register(client.fileno(), connection.events)
        except (OSError, OverflowError) as error:
            self._connect_elsewhere(connection, error)
        else:
            self._by_descriptor[client.fileno()] = connection

    def _connect_elsewhere(self, connection: PeerConnection, error: Exception) -> None:
        """Try the next address of a node, if there is one."""
        if not connection.addresses:
            self._drop(connection, f"no connection could be made: {_words(error)}")
            return
        self._unregister(connection)
        if connection.socket is not None:
            connection.socket.close()
            connection.socket = None
        self._connect(connection, connection.addresses)

    # ------------------------------------------------------------------------------------------------------ the loop

    def handle(self, descriptor: int, event: int) -> bool:
        """Do what a socket is ready for. Returns False if it is not one of ours."""
        connection = self._by_descriptor.get(descriptor)
        if connection is None:
            return False
        if not connection.is_connected:
            self._guard(connection, self._finish_connect)
            return True
        if event & READ:
            self._guard(connection, self._receive)
        elif event & BROKEN:
            self._drop(connection, _CLOSED)
        if event & WRITE and connection.is_connected:
            self._guard(connection, self._flush)
        return True

    def _finish_connect(self, connection: PeerConnection) -> None:
        assert connection.socket is not None
        error = connection.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            self._connect_elsewhere(connection, OSError(error, os.strerror(error)))
            return
        connection.is_connected = True
        self._flush(connection)

    def _receive(self, connection: PeerConnection) -> None:
        if connection.receive():
            connection.take_answers()
        else:
            self._drop(connection, _CLOSED)

    def _flush(self, connection: PeerConnection) -> None:
        connection.send()
        events = READ | (WRITE if connection.has_requests else 0)
        if events != connection.events:
            assert connection.socket is not None
            connection.events = events
            self._poller.modify(connection.socket.fileno(), events)

    def _guard(self, connection: PeerConnection, do: Callable[[PeerConnection], None]) -> None:
        """Do something for a connection, and close it if that fails."""
        try:
            do(connection)
        except (OSError, MalformedRequest) as error:
            self._drop(connection, _words(error))
        except Exception as error:  # a mistake of ours: the one who asked must not wait for ever
            self._notices.say("peer", f"an answer of {connection.endpoint} was not dealt with: {error!r}")
            self._drop(connection, "the answer was not dealt with")

    @property
    def next_ms(self) -> float:
        """When `tick` has something to do."""
        if self._to_tell:
            return -math.inf
        return self._deadlines[0][0] if self._deadlines else math.inf

    def tick(self) -> None:
        """Tell what has failed, and give up what takes too long."""
        deadlines = self._deadlines
        now_ms = self._clock_ms() if deadlines else 0.0
        while deadlines and (deadlines[0][0] <= now_ms or deadlines[0][3].is_over):
            _, _, connection, asked = heapq.heappop(deadlines)
            if not asked.is_over:
                if connection.addresses and not connection.is_connected:
                    self._found[connection.endpoint] = now_ms, connection.addresses  # the first one leads nowhere
                self._drop(connection, "there was no answer in time")
        if len(deadlines) > _FEW and len(deadlines) > 2 * sum(len(each.asked) for each in self._connections.values()):
            deadlines[:] = [each for each in deadlines if not each[3].is_over]
            heapq.heapify(deadlines)
        for _ in range(len(self._to_tell)):  # who is told may ask again, and fail again
            self._tell(self._to_tell.popleft())

    # ------------------------------------------------------------------------------------------------------------ end

    def _drop(self, connection: PeerConnection, reason: str) -> None:
        """Close a connection, and have everybody told who waits for an answer on it."""
        key = (connection.endpoint, connection.channel)
        if self._connections.get(key) is connection:
            del self._connections[key]
        self._unregister(connection)
        host, port = connection.endpoint
        for asked in connection.close():
            self._to_tell.append(partial(asked.failed, f"{host}:{port}: {reason}"))

    def _unregister(self, connection: PeerConnection) -> None:
        if connection.socket is not None and self._by_descriptor.pop(connection.socket.fileno(), None) is not None:
            with contextlib.suppress(OSError):
                self._poller.unregister(connection.socket.fileno())

    def _tell(self, function: Callable[[], None]) -> None:
        try:
            function()
        except Exception as error:  # a mistake of ours must not end the rest
            self._notices.say("peer", f"the failure of a request was not dealt with: {error!r}")

    def close(self) -> None:
        """Close all connections. Nobody is told any more."""
        self._is_closed = True
        for connection in self._connections.values():
            self._unregister(connection)
            connection.close()
        self._connections.clear()
        self._deadlines.clear()
        self._to_tell.clear()

    def abandon(self) -> None:
        """Close the sockets in a child process; those of the parent stay open."""
        self._is_closed = True
        for connection in self._connections.values():
            if connection.socket is not None:
                connection.socket.close()


def _addresses(endpoint: Endpoint, flags: int = 0) -> Sequence[Address]:
    found = socket.getaddrinfo(*endpoint, type=socket.SOCK_STREAM, flags=flags)
    return [(family, address) for family, _, _, _, address in found]


def _words(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
