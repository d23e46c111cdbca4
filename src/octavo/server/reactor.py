"""One thread that serves all connections: `Reactor`.

It waits with epoll for sockets that can be read or written, for the next deadline, and for calls from other threads. It
never waits for anything else: what takes long is given to other threads, which call back.
"""

from __future__ import annotations

import contextlib
import heapq
import os
import select
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Final

from octavo.broker.answers import Answer, Later, Parts, Wait
from octavo.broker.broker import Broker
from octavo.errors import ConnectionRefused
from octavo.server.buffers import BufferPool
from octavo.server.connection import Connection
from octavo.server.statistics import ServerStatistics

_SHARED_BUFFER: Final = 256 << 10
_IDLE_CHECK_S: Final = 1.0
_ACCEPTS_PER_TURN: Final = 64


class Listener:
    """A socket that accepts connections, and the address that clients are told."""

    def __init__(self, accepting: socket.socket, advertised: tuple[str, int]) -> None:
        self.socket: Final = accepting
        self.advertised: Final = advertised


class Reactor:
    """Serves the connections of some listeners. Call `run` in a thread of its own, and `stop` from any other."""

    def __init__(self, broker: Broker, listeners: Sequence[Listener], workers: Executor) -> None:
        self._broker: Final = broker
        self._config: Final = broker.config
        self._workers: Final = workers
        self._listeners: Final = {each.socket.fileno(): each for each in listeners}
        self._connections: Final[dict[int, Connection]] = {}
        self._peers: Final[Counter[str]] = Counter()
        self._pool: Final = BufferPool()
        self._shared: Final = bytearray(_SHARED_BUFFER)
        self._shared_view: Final = memoryview(self._shared)
        self._deadlines: Final[list[tuple[float, int, Wait, Connection]]] = []
        self._number = 0  # makes entries of the heap comparable
        self._waiting: Final[dict[Wait, Connection]] = {}
        self._calls: Final[deque[Callable[[], None]]] = deque()
        self._epoll: Final = select.epoll()
        self._wakeup: Final = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll.register(self._wakeup, select.EPOLLIN)
        self._longest_turn_s = self._longest_request_s = 0.0
        self._longest_api_key = -1
        self._is_stopping = False
        self._next_idle_check = time.monotonic() + _IDLE_CHECK_S
        for descriptor in self._listeners:
            self._epoll.register(descriptor, select.EPOLLIN)

    # ------------------------------------------------------------------------------------------------- other threads

    def call(self, function: Callable[[], None]) -> None:
        """Have the reactor's thread call a function soon. Any thread may call this."""
        self._calls.append(function)
        self._poke()

    def _poke(self) -> None:
        """Have the reactor's thread take a turn. Any thread may call this."""
        with contextlib.suppress(OSError):  # the reactor is gone
            os.eventfd_write(self._wakeup, 1)

    def stop(self) -> None:
        """Have `run` return soon. Any thread may call this."""

        def stop() -> None:
            self._is_stopping = True

        self.call(stop)

    def statistics(self) -> ServerStatistics:
        """Return the state of the server, and begin anew to measure its longest pauses. Any thread may call this."""
        found = ServerStatistics(
            len(self._connections),
            len(self._waiting),
            self._longest_turn_s,
            self._longest_request_s,
            self._longest_api_key,
        )
        self._longest_turn_s, self._longest_request_s, self._longest_api_key = 0.0, 0.0, -1
        return found

    # ------------------------------------------------------------------------------------------------------ the loop

    def run(self) -> None:
        """Serve until `stop`; then close all connections and listeners."""
        self._broker.run_here(self._poke)
        try:
            while not self._is_stopping:
                self._turn()
        finally:
            for connection in list(self._connections.values()):
                self._close(connection)
            for listener in self._listeners.values():
                listener.socket.close()
            self._epoll.close()
            os.close(self._wakeup)

    def _turn(self) -> None:
        events = self._epoll.poll(self._patience())
        begin = time.monotonic()
        for descriptor, event in events:
            connection = self._connections.get(descriptor)
            if connection is not None:
                self._serve(connection, event)
            elif descriptor in self._listeners:
                self._accept(self._listeners[descriptor])
            elif descriptor == self._wakeup:
                with contextlib.suppress(BlockingIOError):
                    os.eventfd_read(self._wakeup)
        while self._calls:
            self._calls.popleft()()
        now = time.monotonic()
        self._expire(now)
        self._retry_woken()  # last: requests that were answered until now may have appended
        if now >= self._next_idle_check:
            self._close_idle(now)
        self._longest_turn_s = max(self._longest_turn_s, time.monotonic() - begin)

    def _patience(self) -> float:
        now = time.monotonic()
        until = self._next_idle_check
        if self._deadlines:
            until = min(until, self._deadlines[0][0])
        return max(0.0, until - now)

    # -------------------------------------------------------------------------------------------------- connections

    def _accept(self, listener: Listener) -> None:
        for _ in range(_ACCEPTS_PER_TURN):
            try:
                client, address = listener.socket.accept()
            except BlockingIOError:
                return
            except OSError as error:  # too many open files: others are served on
                self._broker.say(f"a connection could not be accepted: {error}")
                return
            peer = str(address[0])
            if (
                self._peers[peer] >= self._config.max_connections_per_ip
                or len(self._connections) >= self._config.max_connections
            ):
                client.close()
                continue
            client.setblocking(False)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = Connection(
                client, peer, listener.advertised, self._pool, self._config.socket_request_max_bytes, time.monotonic()
            )
            self._connections[connection.descriptor] = connection
            self._peers[peer] += 1
            connection.events = select.EPOLLIN | select.EPOLLRDHUP
            self._epoll.register(connection.descriptor, connection.events)

    def _serve(self, connection: Connection, event: int) -> None:
        try:
            if event & (select.EPOLLERR | select.EPOLLHUP):
                self._close(connection)
                return
            connection.used_at = time.monotonic()
            if event & select.EPOLLIN and connection.takes_requests:
                if not connection.receive(self._shared, self._shared_view):
                    self._close(connection)
                    return
                self._take_requests(connection)
                connection.keep_rest()
            elif event & select.EPOLLRDHUP:
                self._close(connection)
                return
            self._flush(connection)
        except BlockingIOError:
            pass
        except (ConnectionRefused, OSError):
            self._close(connection)

    def _take_requests(self, connection: Connection) -> None:
        """Answer the requests that have arrived, until one has to wait."""
        begin = time.monotonic()
        while connection.takes_requests:
            frame = connection.next_request()
            if frame is None:
                return
            try:
                answer = self._broker.handle(frame, connection)
            except (ConnectionRefused, OSError):
                raise
            except Exception as error:  # a mistake of ours must not end the service for the others
                self._broker.say(f"a request from {connection.peer} failed: {error!r}")
                raise ConnectionRefused("the request failed") from error
            self._answer(connection, answer)
            end = time.monotonic()
            if end - begin > self._longest_request_s:
                self._longest_request_s, self._longest_api_key = end - begin, int.from_bytes(frame[:2], "big")
            begin = end

    def _answer(self, connection: Connection, answer: Answer) -> None:
        if answer is None:
            return
        if isinstance(answer, list):
            connection.answer(answer)
        elif isinstance(answer, Wait):
            connection.is_busy, connection.waits_for = True, answer
            self._number += 1
            heapq.heappush(self._deadlines, (answer.deadline, self._number, answer, connection))
            self._waiting[answer] = connection
            self._broker.watch(answer)
        else:
            connection.is_busy = True
            self._work(connection, answer)

    def _work(self, connection: Connection, later: Later) -> None:
        def work() -> None:
            try:
                parts = later.work()
            except Exception as error:  # the client would wait for ever
                self._broker.say(f"a request failed: {error!r}")
                self.call(lambda: self._close(connection))
            else:
                self.call(lambda: self._finish(connection, parts))

        self._workers.submit(work)

    def _finish(self, connection: Connection, parts: Parts) -> None:
        """Send an answer that was awaited, and go on with the requests that have arrived meanwhile."""
        if connection.is_closed:
            return
        connection.is_busy, connection.waits_for = False, None
        try:
            connection.answer(parts)
            if connection.has_rest:
                self._take_requests(connection)
                connection.keep_rest()
            self._flush(connection)
        except (ConnectionRefused, OSError):
            self._close(connection)

    def _flush(self, connection: Connection) -> None:
        """Send what can be sent, and have epoll tell what the connection waits for now."""
        connection.send()
        if connection.has_rest and connection.takes_requests:  # it had too many answers before
            self._take_requests(connection)
            connection.keep_rest()
        events = select.EPOLLRDHUP
        if connection.takes_requests:
            events |= select.EPOLLIN
        if connection.has_answers:
            events |= select.EPOLLOUT
        if events != connection.events:
            connection.events = events
            self._epoll.modify(connection.descriptor, events)

    def _close(self, connection: Connection) -> None:
        if connection.is_closed:
            return
        if connection.waits_for is not None:
            self._waiting.pop(connection.waits_for, None)
            self._broker.forget(connection.waits_for)
        del self._connections[connection.descriptor]
        self._peers[connection.peer] -= 1
        if not self._peers[connection.peer]:
            del self._peers[connection.peer]
        with contextlib.suppress(OSError):
            self._epoll.unregister(connection.descriptor)
        connection.close()

    def _close_idle(self, now: float) -> None:
        self._next_idle_check = now + _IDLE_CHECK_S
        limit_s = self._config.connections_max_idle_ms / 1000
        idle = [each for each in self._connections.values() if 0 <= limit_s < now - each.used_at]
        for connection in idle:
            self._close(connection)

    # --------------------------------------------------------------------------------------------------------- waits

    def _retry_woken(self) -> None:
        while True:
            woken = self._broker.take_woken()
            if not woken:
                return
            for wait in woken:
                self._retry(wait, is_over=False)

    def _retry(self, wait: Wait, *, is_over: bool) -> None:
        connection = self._waiting.get(wait)
        if connection is None:
            return
        try:
            parts = wait.retry(is_over)
        except (ConnectionRefused, OSError):
            self._close(connection)
            return
        if parts is not None:
            del self._waiting[wait]
            self._broker.forget(wait)
            self._finish(connection, parts)

    def _expire(self, now: float) -> None:
        deadlines = self._deadlines
        while deadlines and (deadlines[0][0] <= now or deadlines[0][2].is_over):
            _, _, wait, _ = heapq.heappop(deadlines)
            if not wait.is_over:
                self._retry(wait, is_over=True)


def run_in_thread(reactor: Reactor) -> threading.Thread:
    """Start a thread that runs the reactor."""
    thread = threading.Thread(target=reactor.run, name="octavo-reactor", daemon=True)
    thread.start()
    return thread
