"""Replicas that catch up are held back, and those in sync never are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from octavo.broker.config_resources import ResourceType
from octavo.broker.member.quota import ReplicationQuota
from octavo.log.metadata.sorted_map import SortedMap
from tests.unit.broker.member.member_broker import TOPIC, MemberBroker

RATE = "leader.replication.throttled.rate"
REPLICAS = "leader.replication.throttled.replicas"


@pytest.fixture
def member(tmp_path: Path) -> Iterator[MemberBroker]:
    found = MemberBroker(tmp_path, {REPLICAS: "1:1,0:1,0:3"})
    found.leaders.quota = ReplicationQuota(found.broker, "leader", lambda: found.now_ms)
    found.lead(1, 2)
    yield found
    found.close()


def limit(member: MemberBroker, rate: int) -> None:
    image = member.broker.image
    member.broker.image = image._replace(configs=SortedMap([((ResourceType.BROKER, "1"), {RATE: str(rate)})]))


def size(member: MemberBroker, replica: int) -> int:
    """How much a replica gets that is at the beginning."""
    return len(member.fetch(0, replica=replica, wait_ms=0).partition.records or b"")


def test_a_replica_that_is_not_in_sync_gets_no_more_than_is_allowed(member: MemberBroker) -> None:
    member.produce(acks=1, count=10)
    limit(member, 100)
    whole = size(member, 3)
    assert whole > 500
    assert size(member, 3) == 0
    assert size(member, 2) == whole  # it is in sync
    member.now_ms += 5000
    assert size(member, 3) == 0
    member.now_ms += 7000
    assert size(member, 3) == whole


def test_only_replicas_that_are_named_are_throttled(member: MemberBroker) -> None:
    member.produce(acks=1, count=10)
    quota = member.leaders.quota
    assert quota is not None
    topic = member.broker.image.topics[TOPIC]
    assert [quota.is_throttled(topic, number) for number in (0, 1, 2)] == [True, True, False]
    for value, expected in (("*", True), ("0:2,1:1", False), ("", False)):
        assert quota.is_throttled(topic._replace(config={REPLICAS: value}), 0) is expected
    limit(member, 1)
    assert quota.limit() == 1
    member.broker.image = member.broker.image._replace(configs=SortedMap())
    assert quota.limit() is None
    assert not quota.is_exceeded()
    assert size(member, 3) == size(member, 3) > 0


def test_more_is_allowed_when_less_was_sent_lately(member: MemberBroker) -> None:
    quota = member.leaders.quota
    assert quota is not None
    limit(member, 1000)
    quota.count(900)
    assert not quota.is_exceeded()
    quota.count(200)
    assert quota.is_exceeded()
    member.now_ms += 1200
    assert not quota.is_exceeded()


def test_a_limit_of_all_brokers_counts_where_a_broker_has_none(member: MemberBroker) -> None:
    quota, image = member.leaders.quota, member.broker.image
    assert quota is not None
    of_all: SortedMap[tuple[int, str], Mapping[str, str]] = SortedMap([((ResourceType.BROKER, ""), {RATE: "5"})])
    member.broker.image = image._replace(configs=of_all)
    assert quota.limit() == 5
    member.broker.image = image._replace(configs=of_all.with_item((ResourceType.BROKER, "1"), {RATE: "7"}))
    assert quota.limit() == 7


def test_what_was_sent_takes_no_memory_although_nobody_is_held_back(member: MemberBroker) -> None:
    quota = member.leaders.quota
    assert quota is not None
    for _ in range(2000):
        quota.count(1)
        member.now_ms += 100
    assert len(quota._counted) <= 11
    assert quota._total <= 110
