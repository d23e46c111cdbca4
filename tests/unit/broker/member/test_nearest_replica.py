"""Consumers are sent to a replica in their own rack."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from octavo.broker.member.config import RACK_AWARE, read_member
from octavo.errors import InvalidConfig
from tests.unit.broker.member.member_broker import EPOCH, MemberBroker


@pytest.fixture
def member(tmp_path: Path) -> Iterator[MemberBroker]:
    found = MemberBroker(tmp_path)
    found.leaders.is_rack_aware = True
    found.lead(1, 2)
    found.produce(acks=1, count=2)
    found.produce(acks=1, count=2)
    found.fetch(4, replica=2, start=1)
    yield found
    found.close()


def preferred(member: MemberBroker, rack: str, offset: int = 2, *, version: int = 17) -> int:
    answer = member.fetch(offset, rack=rack, version=version, epoch=EPOCH if version > 8 else -1).partition
    assert bool(answer.records) is (getattr(answer, "preferred_read_replica", -1) == -1)
    assert (answer.error_code, answer.high_watermark) == (0, 4)
    return int(getattr(answer, "preferred_read_replica", -1))


def test_the_replica_in_sync_in_the_rack_is_preferred(member: MemberBroker) -> None:
    assert preferred(member, "rack-2") == 2
    assert preferred(member, "rack-1") == -1
    assert preferred(member, "") == -1
    assert preferred(member, "rack-9") == -1
    member.fetch(2, replica=3, start=0)
    assert preferred(member, "rack-3") == -1  # it is not in sync
    assert preferred(member, "rack-2", 0) == -1  # it has deleted the offset
    assert preferred(member, "rack-2", version=10) == -1
    assert preferred(member, "rack-2", version=11) == 2


def test_a_fenced_replica_is_not_preferred(member: MemberBroker) -> None:
    listener = member.broker.image.listeners["PLAINTEXT"]
    nodes = {**listener.nodes, 2: listener.nodes[2]._replace(is_fenced=True)}
    member.broker.image = member.broker.image._replace(listeners={"PLAINTEXT": listener._replace(nodes=nodes)})
    assert preferred(member, "rack-2") == -1


def test_replicas_get_their_records_from_the_leader(member: MemberBroker) -> None:
    answer = member.fetch(0, replica=3, rack="rack-2").partition
    assert (bool(answer.records), answer.preferred_read_replica) == (True, -1)


def test_only_classes_of_kafka_select() -> None:
    given = {"controller.quorum.bootstrap.servers": "c:9093", "controller.listener.names": "CONTROLLER"}
    assert read_member(given | {"replica.selector.class": RACK_AWARE}, 1).config.replica_selector_class == RACK_AWARE
    with pytest.raises(InvalidConfig, match=r"replica\.selector\.class"):
        read_member(given | {"replica.selector.class": "com.example.Mine"}, 1)
