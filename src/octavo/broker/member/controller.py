"""Ask the active controller, whoever that is: `ControllerChannel`.

A request is sent again, to whom is the active controller then, when a node says that it is not, does not answer, or the
connection is lost. So the controller may carry it out twice, as with Apache Kafka's brokers: that is for requests which
a client could have repeated as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from octavo.broker.member.peers import Failed, Peers
from octavo.cluster.messages import Endpoint

RETRY_MS: Final = 50
ATTEMPT_MS: Final = 30_000  # Kafka's default for controller.socket.timeout.ms
MOST_BYTES: Final = 256 << 20  # of all requests that wait; clients that are gone may have left them

_NOT_ACTIVE: Final = "the node is not the active controller"

Taken = Callable[[memoryview], bool]


class _Request:
    """A request that was neither answered nor given up."""

    __slots__ = ("answered", "api_key", "body", "deadline_ms", "due_ms", "failed", "is_over", "reason", "version")

    def __init__(
        self, api_key: int, version: int, body: bytes, answered: Taken, failed: Failed, deadline_ms: float
    ) -> None:
        self.api_key: Final = api_key
        self.version: Final = version
        self.body: Final = body
        self.answered: Final = answered
        self.failed: Final = failed
        self.deadline_ms: Final = deadline_ms
        self.due_ms = -math.inf  # when it is sent
        self.reason = "no controller is known to be active"
        self.is_over = False  # it was given up while its answer was awaited


class ControllerChannel:
    """Requests to the active controller. For the reactor's thread."""

    def __init__(
        self,
        peers: Peers,
        find: Callable[[], Endpoint | None],
        *,
        channel: str,
        client_id: str,
        clock_ms: Callable[[], float],
        attempt_ms: int = ATTEMPT_MS,
    ) -> None:
        """Send nothing yet.

        find: returns the active controller, as far as it is known: `Observer.controller`
        attempt_ms: how long one controller may take before it is asked again
        """
        self._peers: Final = peers
        self._find: Final = find
        self._channel: Final = channel
        self._client_id: Final = client_id
        self._clock_ms: Final = clock_ms
        self._attempt_ms: Final = attempt_ms
        self._waiting: Final[dict[_Request, None]] = {}  # not sent yet, or to be sent again; in order
        self._sent: Final[dict[_Request, None]] = {}  # their answers are awaited
        self._deadline_ms = math.inf  # of those that were sent; not later than the first
        self._asked: Endpoint | None = None  # whom requests were last sent to
        self._bytes = 0  # of all requests that were neither answered nor given up, and of those that a peer still has

    def ask(
        self, api_key: int, version: int, body: bytes, *, answered: Taken, failed: Failed, timeout_ms: float
    ) -> None:
        """Send a request. Either it is answered, or `failed` is called with the reason, later.

        answered: takes the body of an answer, whose bytes are valid until it returns. Returns False if it says that the
            node is not the active controller. May raise `MalformedRequest`
        timeout_ms: how long it is tried
        """
        now_ms = self._clock_ms()
        if self._bytes + len(body) > MOST_BYTES:
            body, timeout_ms = b"", 0  # it is given up in the next turn
        request = _Request(api_key, version, body, answered, failed, now_ms + timeout_ms)
        self._bytes += len(body)
        self._waiting[request] = None
        self._send_due(now_ms)

    @property
    def next_ms(self) -> float:
        """When `tick` has something to do."""
        deadline_ms = self._deadline_ms if self._sent else math.inf
        if not self._waiting:  # nearly always, and it is asked in each turn of the reactor
            return deadline_ms
        return min(deadline_ms, *(min(each.due_ms, each.deadline_ms) for each in self._waiting))

    def tick(self, now_ms: float) -> None:
        """Send what waits, and give up what has waited too long. Call it also when the controller has changed."""
        for request in [each for each in self._waiting if each.deadline_ms <= now_ms]:
            del self._waiting[request]
            self._bytes -= len(request.body)
            request.failed(request.reason)
        if self._deadline_ms <= now_ms:
            self._give_up_sent(now_ms)
        self._leave_deposed()
        self._send_due(now_ms)

    def _give_up_sent(self, now_ms: float) -> None:
        """Give up requests whose answers come too late. The connection stays: others wait for answers on it."""
        for request in [each for each in self._sent if each.deadline_ms <= now_ms]:
            del self._sent[request]
            request.is_over = True
            request.failed(request.reason)
        self._deadline_ms = min((each.deadline_ms for each in self._sent), default=math.inf)

    def _leave_deposed(self) -> None:
        """Wait no longer for a controller that is not active any more: one that hangs would not tell."""
        endpoint = self._find()
        if endpoint is not None and self._asked is not None and endpoint != self._asked:
            self._peers.disconnect(self._asked, self._channel, _NOT_ACTIVE)
            self._asked = None

    def _send_due(self, now_ms: float) -> None:
        due = [each for each in self._waiting if each.due_ms <= now_ms < each.deadline_ms]
        endpoint = self._find() if due else None
        for request in due:
            if endpoint is None:
                request.due_ms = now_ms + RETRY_MS
            else:
                del self._waiting[request]
                self._send(request, endpoint)

    def _send(self, request: _Request, endpoint: Endpoint) -> None:
        def answered(body: memoryview) -> None:
            if request.is_over:
                self._bytes -= len(request.body)
            elif request.answered(body):
                del self._sent[request]
                self._bytes -= len(request.body)
            else:
                self._peers.disconnect(endpoint, self._channel, _NOT_ACTIVE)
                again(_NOT_ACTIVE)

        def again(reason: str) -> None:
            if request.is_over:
                self._bytes -= len(request.body)
                return
            del self._sent[request]
            request.reason = reason
            request.due_ms = self._clock_ms() + RETRY_MS
            self._waiting[request] = None

        self._asked = endpoint
        self._sent[request] = None
        self._deadline_ms = min(self._deadline_ms, request.deadline_ms)
        request.reason = f"{endpoint.host}:{endpoint.port}: there was no answer in time"
        self._peers.ask(
            endpoint,
            self._channel,
            request.api_key,
            request.version,
            [request.body],
            timeout_ms=self._attempt_ms,  # whatever time is left: a time-out closes the connection that others share
            client_id=self._client_id,
            answered=answered,
            failed=again,
        )
