"""Requests to the active controller, while controllers come and go."""

from __future__ import annotations

from octavo.broker.member.controller import ATTEMPT_MS, MOST_BYTES, RETRY_MS, ControllerChannel
from octavo.cluster.messages import Endpoint
from tests.unit.broker.member.recorded_peers import RecordedPeers, Sent

FIRST, SECOND = Endpoint("first", 1), Endpoint("second", 2)


class Cluster(RecordedPeers):
    """Controllers that the test answers for, and a clock."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 0.0
        self.active: Endpoint | None = FIRST
        self.heard: list[str | bytes] = []
        self.channel = ControllerChannel(
            self, lambda: self.active, channel="forward", client_id="3", clock_ms=lambda: self.now_ms
        )

    def check(self, sent: Sent) -> None:
        """All requests go the same way."""
        assert (sent.channel, sent.api_key, sent.version, sent.client_id) == ("forward", 67, 0, "3")

    def disconnect(self, endpoint: Endpoint, channel: str, reason: str) -> None:
        assert channel == "forward"
        super().disconnect(endpoint, channel, reason)

    def request(self, body: bytes, timeout_ms: int = 1000) -> None:
        def taken(answer: memoryview) -> bool:
            if bytes(answer) == b"not me":
                return False
            self.heard.append(bytes(answer))
            return True

        self.channel.ask(67, 0, body, answered=taken, failed=self.heard.append, timeout_ms=timeout_ms)

    def wait(self, time_ms: float) -> None:
        self.now_ms += time_ms
        self.channel.tick(self.now_ms)


def test_the_active_controller_answers() -> None:
    cluster = Cluster()
    cluster.request(b"one")
    cluster.request(b"two")
    assert [(each.endpoint, bytes(each.body)) for each in cluster.sent] == [(FIRST, b"one"), (FIRST, b"two")]
    cluster.sent[0].answered(memoryview(b"1"))
    cluster.sent[1].answered(memoryview(b"2"))
    assert cluster.heard == [b"1", b"2"]
    assert cluster.channel.next_ms == float("inf")
    cluster.wait(10_000)
    assert len(cluster.sent) == 2


def test_another_one_is_active() -> None:
    cluster = Cluster()
    cluster.request(b"one")
    cluster.active = SECOND
    cluster.sent[0].answered(memoryview(b"not me"))
    assert cluster.disconnected == [FIRST]
    assert cluster.channel.next_ms == RETRY_MS
    cluster.wait(RETRY_MS - 1)
    assert len(cluster.sent) == 1
    cluster.wait(1)
    assert cluster.sent[1].endpoint == SECOND
    cluster.sent[1].answered(memoryview(b"1"))
    assert cluster.heard == [b"1"]


def test_one_that_hangs_is_left_when_another_is_active() -> None:
    cluster = Cluster()
    cluster.request(b"one")
    cluster.wait(10)
    cluster.active = None
    cluster.wait(10)
    assert not cluster.disconnected
    cluster.active = SECOND
    cluster.wait(10)
    assert cluster.disconnected == [FIRST]
    cluster.sent[0].failed("it was left")
    cluster.wait(RETRY_MS)
    assert cluster.sent[1].endpoint == SECOND
    cluster.wait(10)
    assert cluster.disconnected == [FIRST]


def test_none_is_known_for_a_while() -> None:
    cluster = Cluster()
    cluster.active = None
    cluster.request(b"one")
    cluster.wait(RETRY_MS)
    assert not cluster.sent
    cluster.active = SECOND
    cluster.wait(RETRY_MS)
    assert cluster.sent[0].endpoint == SECOND


def test_the_connection_is_lost_again_and_again() -> None:
    cluster = Cluster()
    cluster.request(b"one", timeout_ms=120)
    cluster.sent[-1].failed("it is gone")
    cluster.wait(RETRY_MS)
    cluster.sent[-1].failed("it is gone again")
    cluster.wait(RETRY_MS)
    cluster.sent[-1].failed("it is gone for ever")
    assert cluster.channel.next_ms == 120
    cluster.wait(20)
    assert cluster.heard == ["it is gone for ever"]
    assert len(cluster.sent) == 3
    assert cluster.channel.next_ms == float("inf")


def test_one_attempt_does_not_take_all_the_time() -> None:
    cluster = Cluster()
    cluster.request(b"one", timeout_ms=1_000_000)
    assert cluster.sent[0].timeout_ms == ATTEMPT_MS


def test_a_late_answer_costs_nobody_else_the_connection() -> None:
    """A request that is sent just before its deadline is given up by itself, and the connection stays."""
    cluster = Cluster()
    cluster.active = None
    cluster.request(b"late", timeout_ms=RETRY_MS + 1)
    cluster.request(b"other", timeout_ms=10_000)
    cluster.active = FIRST
    cluster.wait(RETRY_MS)
    late, other = cluster.sent
    assert (late.timeout_ms, other.timeout_ms) == (ATTEMPT_MS, ATTEMPT_MS)
    assert cluster.channel.next_ms == RETRY_MS + 1
    cluster.wait(1)
    assert cluster.heard == ["first:1: there was no answer in time"]
    assert not cluster.disconnected
    late.answered(memoryview(b"1"))
    other.answered(memoryview(b"2"))
    assert cluster.heard[1:] == [b"2"]
    cluster.wait(10_000)
    assert len(cluster.sent) == 2
    assert cluster.channel.next_ms == float("inf")


def test_a_request_that_was_given_up_is_not_sent_again() -> None:
    cluster = Cluster()
    cluster.request(b"one", timeout_ms=100)
    cluster.wait(100)
    cluster.sent[0].failed("the connection is lost")
    cluster.wait(10_000)
    assert len(cluster.sent) == len(cluster.heard) == 1


def test_no_controller_in_time() -> None:
    cluster = Cluster()
    cluster.active = None
    cluster.request(b"one", timeout_ms=120)
    cluster.wait(120)
    assert cluster.heard == ["no controller is known to be active"]


def test_what_waits_for_a_controller_that_hangs_is_bounded() -> None:
    """Clients that come, ask much and go would fill the memory."""
    cluster = Cluster()
    half = bytes(MOST_BYTES // 2)
    for _ in range(4):
        cluster.request(half)
    cluster.wait(0)
    assert len(cluster.sent) == len(cluster.heard) == 2
    cluster.sent[0].answered(memoryview(b"1"))
    cluster.sent[1].failed("lost")
    cluster.wait(1000)
    assert len(cluster.heard) == 4  # neither counts any more
    for _ in range(2):
        cluster.request(half)
    assert len(cluster.sent) == 4
