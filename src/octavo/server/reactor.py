"""One thread that serves all connections: `Reactor`.

It waits with a `Poller` for sockets that can be read or written, for the next deadline, and for calls from other
threads. It never waits for anything else: what takes long is given to other threads, which call back.
"""

from __future__ import annotations

import contextlib
import heapq
import math
import os
import signal
import socket
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Final, NamedTuple

from octavo.broker.answers import Answer, Later, Parts, Wait, Work
from octavo.broker.broker import Broker
from octavo.errors import ConnectionRefused
from octavo.server.acceptor import Acceptor, Listener
from octavo.server.buffers import SMALLEST, BufferPool, RequestMemory
from octavo.server.connection import Connection
from octavo.server.peers import PeerConnections
from octavo.server.poller import BROKEN, READ, WRITE, make_poller
from octavo.server.statistics import ServerStatistics
from octavo.server.wakeup import make_wakeup

_SHARED_BUFFER: Final = 256 << 10
_CHECK_S: Final = 1.0
_LAST_WORK_S: Final = 4.0  # how long a stop waits for requests that other threads work on
_LAST_ANSWERS_S: Final = 1.0  # and for clients to take their answers
_LAST_TURN_S: Final = 0.05
_TURN_S: Final = 0.002  # for the requests of one connection, before others get their turn
_SLOW_S: Final = 30  # a request has to arrive as if it took no longer, while others wait for memory
_SLOW_CHECKS: Final = 3  # in a row at which it was slower
_MAX_FAILURES: Final = 100  # turns that fail one after the other
_PAUSE_AFTER_FAILURE_S: Final = 0.05
_FEW: Final = 64
# The largest answer of another node has one batch, which a request brought it, and what comes before that.
_REQUESTS_IN_ANSWER: Final = 2


class _Pace(NamedTuple):
    """How far a connection was when that was last looked at."""

    at: float
    received: int
    times: int  # that it was too slow, in a row


class Reactor:
    """Serves the connections of some listeners. Call `run` in a thread of its own, and `stop` from any other."""

    def __init__(self, broker: Broker, listeners: Sequence[Listener], workers: Mapping[Work, Executor]) -> None:
        config = broker.config
        self._broker: Final = broker
        self._workers: Final = workers
        self._notices: Final = broker.notices
        self._connections: Final[dict[int, Connection]] = {}
        self._pool: Final = BufferPool()
        self._memory: Final = RequestMemory(config.queued_max_request_bytes, config.socket_request_max_bytes)
        self._shared: Final = bytearray(_SHARED_BUFFER)
        self._shared_view: Final = memoryview(self._shared)
        self._deadlines: Final[list[tuple[float, int, Wait]]] = []
        self._number = 0  # makes entries of the heap comparable
        self._waiting: Final[dict[Wait, Connection]] = {}
        self._next_turn: deque[Connection] = deque()  # they have more requests than one turn takes
        self._lacking: Final[dict[Connection, None]] = {}  # they wait for memory
        self._passing: Connection | None = None  # its request goes on although there is no room
        self._pace: dict[Connection, _Pace] = {}  # of those whose requests are arriving while others wait
        self._calls: Final[deque[Callable[[], None]]] = deque()
        self._poller: Final = make_poller()
        self._wakeup: Final = make_wakeup()
        self._poller.register(self._wakeup.descriptor, READ)
        self._acceptor: Final = Acceptor(
            listeners, self._poller, lambda: broker.config, self._notices, self._connect, workers[Work.QUERY].submit
        )
        self.peers: Final = PeerConnections(
            self._poller,
            self._notices,
            largest_answer=_REQUESTS_IN_ANSWER * config.socket_request_max_bytes,
            do_elsewhere=workers[Work.QUERY].submit,
            call=self.call,
            clock_ms=lambda: time.monotonic() * 1000,
        )
        self._longest_turn_s = self._longest_request_s = 0.0
        self._longest_api_key = -1
        self._is_stopping = False
        self._next_check = time.monotonic() + _CHECK_S
        _REACTORS.add(self)

    # ------------------------------------------------------------------------------------------------- other threads

    def call(self, function: Callable[[], None]) -> None:
        """Have the reactor's thread call a function soon. Any thread may call this."""
        self._calls.append(function)
        self._wakeup.wake()

    def stop(self) -> None:
        """Have `run` return soon. Any thread may call this."""

        def stop() -> None:
            self._is_stopping = True

        self.call(stop)

    def accept(self) -> None:
        """Begin to accept connections. Call this in the reactor's thread, or before it runs."""
        self._acceptor.begin()

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
        """Serve until `stop`; then finish what was begun, and close all connections and listeners."""
        self._broker.run_here(
            self._wakeup.wake, lambda work: self._workers[Work.CHANGE].submit(self._do_elsewhere, work)
        )
        # A client that is gone is an error of `send`, also in a program that wants to die of SIGPIPE.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPIPE})
        failures = 0
        try:
            while not self._is_stopping:
                try:
                    self._turn()
                    failures = 0
                except Exception as error:  # a mistake of ours; what it was about is lost, the rest is served on
                    failures += 1
                    self._notices.say("turn", f"a turn of the reactor failed: {error!r}")
                    if failures == _MAX_FAILURES:
                        self._broker.say("the broker stops serving, because it fails again and again")
                        break
                    time.sleep(_PAUSE_AFTER_FAILURE_S)  # what is missing, such as memory, may come back
            self._wind_up()
        finally:
            for connection in list(self._connections.values()):
                self._close(connection)
            self._acceptor.close()
            self.peers.close()
            self._poller.close()
            self._wakeup.close()

    def _wind_up(self) -> None:
        """Send the answers that are there, and those that other threads are working on, if that does not take long."""
        self._acceptor.close()
        for connection in list(self._connections.values()):
            if connection.waits_for is not None:
                self._close(connection)
            else:
                self._guard(connection, self._flush, connection)
        until = time.monotonic() + _LAST_WORK_S
        while time.monotonic() < until and any(each.is_busy for each in self._connections.values()):
            for descriptor, event in self._poller.poll(_LAST_TURN_S):
                if descriptor == self._wakeup.descriptor:
                    self._wakeup.clear()
                elif event & BROKEN and descriptor in self._connections:
                    self._close(self._connections[descriptor])
            while self._calls:
                self._calls.popleft()()
        until = time.monotonic() + _LAST_ANSWERS_S
        while time.monotonic() < until and any(each.has_answers for each in self._connections.values()):
            for descriptor, _ in self._poller.poll(_LAST_TURN_S):
                if descriptor in self._connections:
                    connection = self._connections[descriptor]
                    self._guard(connection, self._flush, connection)

    def _turn(self) -> None:
        accepting = []
        events = self._poller.poll(self._patience())
        begin = time.monotonic()
        for descriptor, event in events:
            connection = self._connections.get(descriptor)
            if connection is not None:
                self._guard(connection, self._serve, connection, event)
            elif descriptor == self._wakeup.descriptor:
                self._wakeup.clear()
            elif not self.peers.handle(descriptor, event):
                accepting.append(descriptor)
        waiting, self._next_turn = self._next_turn, deque()
        for connection in waiting:
            self._guard(connection, self._go_on, connection)
        # Last, so that a new connection cannot be taken for a closed one with the same descriptor.
        for descriptor in accepting:
            self._acceptor.accept(descriptor)
        while self._calls:
            self._calls.popleft()()
        now = time.monotonic()
        self._expire(now)
        for work in self._broker.coordinators.time.tick():
            self._workers[Work.COORDINATE].submit(self._do_elsewhere, work)
        if self._broker.member is not None:
            self.peers.tick()
            self._broker.member.tick(int(now * 1000))
        self._retry_woken()  # last: requests that were answered until now may have appended
        if self._lacking:
            self._share_memory()
        if now >= self._next_check:
            self._check(now)
        self._longest_turn_s = max(self._longest_turn_s, time.monotonic() - begin)

    def _patience(self) -> float:
        if self._next_turn:
            return 0.0
        now = time.monotonic()
        until = min(self._next_check, self._broker.coordinators.time.next_deadline)
        if self._deadlines:
            until = min(until, self._deadlines[0][0])
        if self._broker.member is not None:
            until = min(until, self._broker.member.next_ms / 1000, self.peers.next_ms / 1000)
        return max(0.0, until - now)

    def _guard(self, connection: Connection, do: Callable[..., None], *arguments: object) -> None:
        """Do something for a connection, and close it if that fails."""
        try:
            do(*arguments)
        except BlockingIOError:
            pass
        except ConnectionRefused as reason:
            self._notices.say("refused", f"the connection from {connection.peer} was closed: {reason}")
            self._close(connection)
        except ConnectionError:  # the client is gone
            self._close(connection)
        except Exception as error:  # a mistake of ours must not end the service for the others
            self._notices.say("failed", f"the connection from {connection.peer} was closed, it failed: {error!r}")
            self._close(connection)

    # -------------------------------------------------------------------------------------------------- connections

    def _connect(self, client: socket.socket, peer: str, listener: Listener) -> None:
        now, most = time.monotonic(), self._broker.config.socket_request_max_bytes
        connection = Connection(client, peer, listener.advertised, listener.name, self._pool, self._memory, most, now)
        connection.events = READ
        self._poller.register(connection.descriptor, connection.events)
        self._connections[connection.descriptor] = connection  # from here on nothing can fail, and it is counted

    def _serve(self, connection: Connection, event: int) -> None:
        connection.used_at = time.monotonic()
        is_early = bool(event & READ) and not connection.takes_bytes
        if event & READ and not is_early:
            if connection.receive(self._shared, self._shared_view):
                self._take_requests(connection)
                connection.keep_rest()
            else:
                connection.has_ended = True
        elif event & BROKEN or (not BROKEN and connection.is_lost):
            self._close(connection)
            return
        self._flush(connection, is_early=is_early)

    def _take_requests(self, connection: Connection) -> None:
        """Answer the requests that have arrived, until one has to wait, or until others must have their turn."""
        begin = time.monotonic()
        until = begin + _TURN_S
        while connection.takes_requests and not self._is_stopping:
            frame = connection.next_request()
            if frame is None:
                return
            try:
                answer = self._broker.handle(frame, connection)
            except ConnectionRefused:
                raise
            except Exception as error:
                self._notices.say("request", f"a request from {connection.peer} failed: {error!r}")
                self._close(connection)
                return
            self._answer(connection, answer, len(frame))
            end = time.monotonic()
            if end - begin > self._longest_request_s:
                self._longest_request_s, self._longest_api_key = end - begin, int.from_bytes(frame[:2], "big")
            begin = end
            if end > until:
                if connection.has_rest and not connection.has_turn:
                    connection.has_turn = True
                    self._next_turn.append(connection)
                return

    def _go_on(self, connection: Connection) -> None:
        """Take the requests for which there was no time in the last turn."""
        if connection.is_closed:
            return
        connection.has_turn = False
        self._take_requests(connection)
        connection.keep_rest()
        self._flush(connection)

    def _answer(self, connection: Connection, answer: Answer, size: int) -> None:
        """Do with an answer what has to be done. `size`: that of the request."""
        if answer is None:
            return
        if isinstance(answer, list):
            connection.answer(answer)
            return
        if size > SMALLEST:
            self._memory.hold(size)
            connection.held = size
        if isinstance(answer, Wait):
            self._await(connection, answer)
        else:
            connection.is_busy = True
            self._work(connection, answer)

    def _await(self, connection: Connection, answer: Wait) -> None:
        connection.is_busy, connection.waits_for = True, answer
        if self._is_stopping:
            self._close(connection)
            return
        if answer.deadline < math.inf:
            self._number += 1
            heapq.heappush(self._deadlines, (answer.deadline, self._number, answer))
        self._waiting[answer] = connection
        self._broker.watch(answer)

    def _work(self, connection: Connection, later: Later) -> None:
        def work() -> None:
            try:
                parts = later.work()
            except ConnectionRefused as error:
                self._notices.say("refused", f"the connection from {connection.peer} was closed: {error}")
                self.call(lambda: self._give_up(connection))
            except Exception as error:  # the client would wait for ever
                self._notices.say("request", f"a request from {connection.peer} failed: {error!r}")
                self.call(lambda: self._give_up(connection))
            else:
                self.call(lambda: self._guard(connection, self._finish, connection, parts))

        self._workers[later.kind].submit(work)

    def _do_elsewhere(self, work: Callable[[], None]) -> None:
        """Do something in another thread, and have the reactor's look what is to be done next."""
        try:
            work()
        except Exception as error:
            self._notices.say("work", f"something that was left to another thread failed: {error!r}")
        self._wakeup.wake()

    def _finish(self, connection: Connection, parts: Parts | Wait | None) -> None:
        """Send an answer that was awaited, and go on with the requests that have arrived meanwhile."""
        if isinstance(parts, Wait) and not connection.is_closed:
            self._await(connection, parts)  # the request is kept, and counted, until that is over
            if parts.logs:  # which may have changed before anybody watched
                self._broker.wake(parts)
            return
        self._release(connection)
        if connection.is_closed or isinstance(parts, Wait):
            return
        connection.is_busy, connection.waits_for = False, None
        if parts is not None:
            connection.answer(parts)
        if connection.has_rest:
            self._take_requests(connection)
            connection.keep_rest()
        self._flush(connection)

    def _give_up(self, connection: Connection) -> None:
        """Close a connection for which another thread has found no answer."""
        self._release(connection)
        self._close(connection)

    def _release(self, connection: Connection) -> None:
        """Count a request no more whose answer was awaited."""
        self._memory.give_back(connection.held)
        connection.held = 0

    def _flush(self, connection: Connection, *, is_early: bool = False) -> None:
        """Send what can be sent, and have the poller tell of what the connection waits for now.

        is_early: the client has sent more than is taken now. Most do not while they wait for an answer, so the
            poller goes on telling of bytes until it does so in vain: that saves two system calls for each such answer.
        """
        if connection.is_closed:
            return
        connection.send()
        if connection.has_rest and connection.takes_requests and not connection.has_turn:
            self._take_requests(connection)  # there were too many answers before
            connection.keep_rest()
        events = 0
        if connection.has_answers:
            events = WRITE
        elif connection.has_ended and not connection.is_busy:
            self._close(connection)
            return
        if self._is_stopping:
            pass
        elif connection.takes_bytes or (connection.is_busy and not is_early and connection.events & READ):
            events |= READ
        elif connection.lacks_memory:
            self._lacking.setdefault(connection)
        if events != connection.events:
            connection.events = events
            self._poller.modify(connection.descriptor, events)

    def _close(self, connection: Connection) -> None:
        if connection.is_closed:
            return
        if connection.waits_for is not None:
            self._waiting.pop(connection.waits_for, None)
            self._broker.forget(connection.waits_for)
            self._release(connection)  # what another thread works on is kept until that is done
        del self._connections[connection.descriptor]
        self._lacking.pop(connection, None)
        with contextlib.suppress(OSError):
            self._poller.unregister(connection.descriptor)
        connection.close()
        self._acceptor.forget(connection.peer)

    # ------------------------------------------------------------------------------------------- what is looked after

    def _share_memory(self) -> None:
        """Let requests go on that waited for memory: in their order if there is room, or else one that has most."""
        while self._lacking and self._memory.has_room:
            self._let_on(next(iter(self._lacking)), all_of_it=False)
        passing = self._passing
        is_over = passing is None or passing.is_closed or not passing.reserved or passing in self._lacking
        if self._lacking and is_over:
            largest = max(self._lacking, key=lambda each: each.reserved)
            self._passing = largest if largest.reserved else None
            if largest.reserved:
                self._let_on(largest, all_of_it=True)

    def _let_on(self, connection: Connection, *, all_of_it: bool) -> None:
        del self._lacking[connection]
        if connection.lacks_memory:
            connection.reserve(all_of_it=all_of_it)
            self._guard(connection, self._flush, connection)

    def _check(self, now: float) -> None:
        """Close what was idle for too long, the oldest first, and say what was held back."""
        self._next_check = now + _CHECK_S
        limit_s = self._broker.config.connections_max_idle_ms / 1000
        if limit_s >= 0:
            idle = [each for each in self._connections.values() if now - each.used_at > limit_s]
            for connection in sorted(idle, key=lambda each: each.used_at):
                self._close(connection)
        if not BROKEN:
            self._close_lost()
        self._cut_slow(now)
        self._acceptor.check(now)
        self._notices.say_rest()

    def _close_lost(self) -> None:
        """Close connections that are lost, of which the poller does not tell while it watches them for nothing."""
        for connection in [each for each in self._connections.values() if not each.events]:
            if connection.is_lost:
                self._close(connection)

    def _cut_slow(self, now: float) -> None:
        """Close connections whose requests arrive too slowly, while others wait for the memory that they take."""
        before, self._pace = self._pace, {}
        if not self._lacking:
            return
        for connection in list(self._connections.values()):
            if not connection.reserved or not connection.takes_bytes:
                continue
            pace = before.get(connection)
            arrived = connection.received
            times = 0
            if pace is not None and (arrived - pace.received) * _SLOW_S < connection.announced * (now - pace.at):
                times = pace.times + 1
            if times < _SLOW_CHECKS:
                self._pace[connection] = _Pace(now, arrived, times)
                continue
            self._notices.say(
                "slow",
                f"the connection from {connection.peer} was closed: at its pace, its request of {connection.announced} "
                f"bytes would not arrive within {_SLOW_S} s, and others wait for the memory",
            )
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
        if connection is not None:
            self._guard(connection, self._try_again, connection, wait, is_over)

    def _try_again(self, connection: Connection, wait: Wait, is_over: bool) -> None:
        answer = wait.retry(is_over)
        if answer is not None:
            del self._waiting[wait]
            self._broker.forget(wait)
            if isinstance(answer, Later):
                connection.waits_for = None
                self._work(connection, answer)
            else:
                self._finish(connection, answer)

    def _expire(self, now: float) -> None:
        deadlines = self._deadlines
        while deadlines and (deadlines[0][0] <= now or deadlines[0][2].is_over):
            _, _, wait = heapq.heappop(deadlines)
            if not wait.is_over:
                self._retry(wait, is_over=True)
        if len(deadlines) > _FEW and len(deadlines) > 2 * len(self._waiting):
            # Answered long before their deadlines, which may be weeks away.
            deadlines[:] = [each for each in deadlines if not each[2].is_over]
            heapq.heapify(deadlines)

    # ---------------------------------------------------------------------------------------------------------- fork

    def abandon(self) -> None:
        """Close the sockets in a child process, so that clients see the end of those of the parent."""
        self._is_stopping = True
        for connection in self._connections.values():
            connection.socket.close()
        self.peers.abandon()
        self._acceptor.abandon()


def run_in_thread(reactor: Reactor) -> threading.Thread:
    """Start a thread that runs the reactor."""
    thread = threading.Thread(target=reactor.run, name="octavo-reactor", daemon=True)
    thread.start()
    return thread


_REACTORS: Final[weakref.WeakSet[Reactor]] = weakref.WeakSet()


def _abandon_all() -> None:
    for reactor in list(_REACTORS):
        reactor.abandon()


os.register_at_fork(after_in_child=_abandon_all)
