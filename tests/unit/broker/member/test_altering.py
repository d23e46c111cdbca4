"""Changes of the replicas in sync on their way to the controllers, of which another one may become active."""

from __future__ import annotations

import math
from typing import Any
from uuid import uuid4

from octavo.broker.member.altering import Altering
from octavo.broker.member.surroundings import Surroundings
from octavo.broker.wire.api_keys import ALTER_PARTITION
from octavo.broker.wire.messages import write_response
from octavo.cluster.leading import ClusterView, IsrChange
from octavo.cluster.messages import AlteredPartition, AlterPartitionChange, BrokerState, Endpoint, TopicIdPartition
from octavo.errors import ErrorCode
from tests.unit.broker.member.recorded_peers import RecordedPeers, Sent

FIRST, SECOND = Endpoint("first", 1), Endpoint("second", 2)
PLACE = TopicIdPartition(uuid4(), 5)
CHANGE = IsrChange(PLACE, AlterPartitionChange(1, 2, [BrokerState(3, 40)]), frozenset({3, 4}))


class Controllers(RecordedPeers):
    """The test answers for them."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 0
        self.active: Endpoint | None = FIRST
        self.settled: list[tuple[IsrChange, AlteredPartition]] = []
        here = Surroundings(self, 3, _nothing, _nothing, _nothing, lambda: self.now_ms, lambda: None)
        view = ClusterView(3, 40, {})
        self.altering = Altering(here, view, timeout_ms=30_000, controller=lambda: self.active)
        self.altering.settled = lambda change, altered: self.settled.append((change, altered))

    def check(self, sent: Sent) -> None:
        """Changes go their own way."""
        assert (sent.channel, sent.api_key, sent.version) == ("changes", ALTER_PARTITION, 3)
        assert (sent.timeout_ms, sent.client_id) == (30_000, "3")

    def disconnect(self, endpoint: Endpoint, channel: str, reason: str) -> None:
        assert channel == "changes"
        super().disconnect(endpoint, channel, reason)

    def wait(self, time_ms: int) -> float:
        self.now_ms += time_ms
        return self.altering.poll(self.now_ms)


def _nothing(_: object) -> None:
    raise AssertionError("nobody calls this")


def _answer(error_code: int, **partition: Any) -> memoryview:
    altered = {"partition_index": 5, "leader_id": 3, "leader_epoch": 1, "isr": [3], "partition_epoch": 3} | partition
    topics = [] if error_code else [{"topic_id": PLACE.topic_id.bytes, "partitions": [{"error_code": 0} | altered]}]
    return memoryview(
        write_response(ALTER_PARTITION, 3, {"throttle_time_ms": 0, "error_code": error_code, "topics": topics})
    )


def test_a_change_is_settled() -> None:
    controllers = Controllers()
    assert controllers.wait(0) == math.inf
    assert controllers.altering.submit(CHANGE)
    controllers.wait(0)
    assert [each.endpoint for each in controllers.sent] == [FIRST]
    controllers.sent[0].answered(_answer(0))
    assert controllers.settled == [(CHANGE, AlteredPartition(0, 1, (3,), 3))]
    controllers.active = SECOND
    assert controllers.wait(1000) == math.inf
    assert not controllers.disconnected


def test_it_is_asked_again_until_somebody_answers() -> None:
    controllers = Controllers()
    controllers.altering.submit(CHANGE)
    controllers.wait(0)
    controllers.sent[-1].failed("it is gone")
    controllers.active = None
    assert controllers.wait(1000) < math.inf
    controllers.active = SECOND
    controllers.wait(1000)
    controllers.sent[-1].answered(_answer(ErrorCode.NOT_CONTROLLER))
    controllers.wait(1000)
    controllers.sent[-1].answered(_answer(0))
    assert [each.endpoint for each in controllers.sent] == [FIRST, SECOND, SECOND]
    assert [change for change, _ in controllers.settled] == [CHANGE]


def test_a_controller_that_hangs_is_left_when_another_is_active() -> None:
    controllers = Controllers()
    controllers.altering.submit(CHANGE)
    controllers.wait(0)
    controllers.active = None
    controllers.wait(10)
    assert not controllers.disconnected
    controllers.active = SECOND
    controllers.wait(10)
    assert controllers.disconnected == [FIRST]
    controllers.sent[0].failed("it was left")
    controllers.wait(1000)
    assert controllers.sent[1].endpoint == SECOND
