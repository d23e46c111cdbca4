"""From metadata to replicas: which partitions a broker deletes, leads and follows."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from octavo.cluster.messages import Endpoint, TopicIdPartition
from octavo.cluster.replicas import Changed, LocalReplicas, leader_endpoint
from octavo.schemas.metadata.nodes import BrokerEndpoint
from tests.unit.cluster.leaders import broker, state
from tests.unit.cluster.partitions import TOPIC_ID, A, B

LED = state(1, 2, leader=1)
FOLLOWED = state(1, 2, leader=2)


def test_new_replicas_are_led_or_followed() -> None:
    local = LocalReplicas(1)
    topics = {TOPIC_ID: {0: LED, 1: FOLLOWED, 2: state(2, 3, replicas=(2, 3), leader=2)}}
    changes = local.update(topics, [TOPIC_ID])
    assert changes.led == [Changed(A, LED, is_new_epoch=True, is_new=True)]
    assert changes.followed == [Changed(B, FOLLOWED, is_new_epoch=True, is_new=True)]
    assert changes.deleted == []
    assert [local.has(TopicIdPartition(TOPIC_ID, number)) for number in range(4)] == [True, True, False, False]
    assert not local.update(topics, [TOPIC_ID])


def test_a_change_of_the_partition_epoch_alone_keeps_the_leader_epoch() -> None:
    local = LocalReplicas(1)
    local.update({TOPIC_ID: {0: LED}}, [TOPIC_ID])
    shrunk = replace(LED, isr=(1,), partition_epoch=21)
    assert local.update({TOPIC_ID: {0: shrunk}}, [TOPIC_ID]).led == [Changed(A, shrunk, False, False)]


def test_states_are_compared_before_and_after_everything() -> None:
    """Leadership that was lost and won again is a new epoch, whoever led meanwhile."""
    local = LocalReplicas(1)
    local.update({TOPIC_ID: {0: LED}}, [TOPIC_ID])
    again = replace(LED, leader_epoch=7, partition_epoch=22)
    assert local.update({TOPIC_ID: {0: again}}, [TOPIC_ID]).led == [Changed(A, again, True, False)]


def test_a_partition_without_a_leader_is_followed() -> None:
    local = LocalReplicas(1)
    local.update({TOPIC_ID: {0: LED}}, [TOPIC_ID])
    headless = replace(LED, leader=-1, leader_epoch=6, partition_epoch=21)
    changes = local.update({TOPIC_ID: {0: headless}}, [TOPIC_ID])
    assert (changes.led, changes.followed) == ([], [Changed(A, headless, True, False)])


def test_replicas_that_moved_away_and_topics_that_are_gone_are_deleted() -> None:
    local = LocalReplicas(1)
    local.update({TOPIC_ID: {0: LED, 1: FOLLOWED}}, [TOPIC_ID])
    moved = state(2, 3, replicas=(2, 3), leader=2, leader_epoch=6, partition_epoch=21)
    assert local.update({TOPIC_ID: {0: moved, 1: FOLLOWED}}, [TOPIC_ID]).deleted == [A]
    assert not local.has(A)
    again = UUID(int=2000)  # a topic of the same name
    changes = local.update({again: {0: LED}}, [TOPIC_ID, again])
    assert changes.deleted == [B]
    assert [change.partition for change in changes.led] == [TopicIdPartition(again, 0)]


def test_other_topics_are_not_looked_at() -> None:
    assert not LocalReplicas(1).update({TOPIC_ID: {0: LED}}, [])


def test_the_leader_is_reached_at_its_listener_for_brokers() -> None:
    listeners = (BrokerEndpoint(name="CLIENTS", host="x", port=1, security_protocol=0),)
    inner = BrokerEndpoint(name="PLAINTEXT", host="y", port=2, security_protocol=0)
    brokers = {2: replace(broker(2), end_points=(*listeners, inner))}
    assert leader_endpoint(FOLLOWED, brokers, "PLAINTEXT") == Endpoint("y", 2)
    assert leader_endpoint(FOLLOWED, brokers, "OTHER") is None
    assert leader_endpoint(FOLLOWED, {}, "PLAINTEXT") is None
    assert leader_endpoint(replace(FOLLOWED, leader=-1), brokers, "PLAINTEXT") is None
