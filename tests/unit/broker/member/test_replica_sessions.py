"""A replica follows many partitions in one session: quiet ones cost nothing, and no change of them is missed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from octavo.broker.wire.api_keys import FETCH
from octavo.cluster.leading import MAX_LAG_MS
from octavo.errors import ErrorCode
from tests.unit.broker.member.member_broker import EPOCH, Asked, MemberBroker
from tests.unit.cluster.leaders import EPOCHS
from tests.unit.effort import effort

FEW, MANY = 3, 60


@pytest.fixture
def member(tmp_path: Path) -> Iterator[MemberBroker]:
    broker = MemberBroker(tmp_path, partitions=FEW)
    yield broker
    broker.close()


class Replica:
    """Broker 2, which follows all partitions in a session, or broker 3."""

    def __init__(self, member: MemberBroker, number: int = 2, *, max_bytes: int = 1 << 20) -> None:
        self._member = member
        self._number = number
        self._max_bytes = max_bytes
        self._session, self._epoch = 0, 0

    def ask(self, positions: dict[int, int], forgotten: tuple[int, ...] = ()) -> Asked:
        """Fetch partitions from offsets; those of earlier requests are fetched, too."""
        partitions = [
            {
                "partition": number,
                "current_leader_epoch": EPOCH,
                "fetch_offset": offset,
                "last_fetched_epoch": EPOCH if offset else -1,
                "log_start_offset": 0,
                "partition_max_bytes": 1 << 20,
            }
            for number, offset in positions.items()
        ]
        topic_id = self._member.topic_id.bytes
        content = {
            "replica_state": {"replica_id": self._number, "replica_epoch": EPOCHS[self._number]},
            "max_wait_ms": 500,
            "min_bytes": 1,
            "max_bytes": self._max_bytes,
            "isolation_level": 0,
            "session_id": self._session,
            "session_epoch": self._epoch,
            "topics": [{"topic_id": topic_id, "partitions": partitions}] if partitions else [],
            "forgotten_topics_data": [{"topic_id": topic_id, "partitions": list(forgotten)}] if forgotten else [],
            "rack_id": "",
        }
        asked = self._member.ask(FETCH, 18, content)
        if not self._session:
            self._member.expire()
            self._session = asked.answer.session_id
        self._epoch += 1
        return asked

    def has_everything(self, end: int, count: int = FEW) -> None:
        """Have the leader know that this replica has all partitions up to an offset, and was told so."""
        self.ask(dict.fromkeys(range(count), end))
        for _ in range(2):
            self.ask({})
            self._member.expire()


def got(asked: Asked) -> dict[int, Any]:
    return {each.partition_index: each for topic in asked.answer.responses for each in topic.partitions}


def lead_all(member: MemberBroker, *isr: int, count: int = FEW) -> None:
    for number in range(count):
        member.lead(*isr, partition=number)


def test_only_what_has_changed_is_looked_at(tmp_path: Path) -> None:
    efforts = []
    for count in (FEW, MANY):
        (tmp_path / str(count)).mkdir()
        member = MemberBroker(tmp_path / str(count), partitions=count)
        lead_all(member, 1, 2, count=count)
        replica = Replica(member)
        replica.has_everything(0, count)

        def ask_and_wait(member: MemberBroker = member, replica: Replica = replica) -> None:
            assert not replica.ask({}).is_answered()
            member.produce(acks=1, partition=1)

        ask_and_wait()  # whatever happens only once
        replica.ask({1: 1})
        member.expire()
        replica.ask({})
        member.expire()
        efforts.append(effort(ask_and_wait))
        member.close()
    assert efforts[1] < 1.1 * efforts[0]


def test_an_answer_waits_until_one_of_the_partitions_has_records(member: MemberBroker) -> None:
    lead_all(member, 1, 2)
    replica = Replica(member)
    replica.has_everything(0)
    waiting = replica.ask({})
    assert not waiting.is_answered()
    member.produce(acks=1, partition=2)
    assert [number for number, part in got(waiting).items() if part.records] == [2]
    waiting = replica.ask({2: 1})
    assert not waiting.is_answered()
    member.expire()
    assert got(waiting)[2].high_watermark == 1


def test_a_high_watermark_that_moves_between_is_told_and_does_not_hide_records(member: MemberBroker) -> None:
    lead_all(member, 1, 2, 3)
    first, second = Replica(member, 2), Replica(member, 3)
    for number in range(FEW):
        member.produce(acks=1, partition=number)
    second.has_everything(0)
    first.has_everything(1)
    waiting = first.ask({})
    second.ask({0: 1})  # now all have the record, and the high watermark moves; followers do not wait for that
    assert not waiting.is_answered()
    member.produce(acks=1, partition=0)
    assert got(waiting)[0].records
    assert got(waiting)[0].high_watermark == 1


def test_a_replica_that_fetches_quiet_partitions_stays_in_sync_and_one_that_does_not_leaves(
    member: MemberBroker,
) -> None:
    lead_all(member, 1, 2)
    replica = Replica(member)
    replica.has_everything(0)
    for _ in range(4):
        member.now_ms += MAX_LAG_MS - 1
        replica.ask({})
        member.expire()
    member.produce(acks=1)
    member.now_ms += MAX_LAG_MS
    member.leaders.check(member.now_ms)
    assert not member.asked  # it had everything when it last asked
    member.now_ms += 1
    member.leaders.check(member.now_ms)
    [change] = member.asked
    assert [each.broker_id for each in change.asked.new_isr_with_epochs] == [1]


def test_a_change_that_nobody_told_of_is_noticed_soon(member: MemberBroker) -> None:
    lead_all(member, 1, 2)
    replica = Replica(member)
    replica.has_everything(0)
    [led] = [led for led in member.leaders if led.state.partition.partition == 1]
    led.sessions.clear()
    member.produce(acks=1, partition=1)
    member.now_ms += 1000
    assert got(replica.ask({}))[1].records


def test_a_quiet_partition_that_another_broker_leads_is_answered(member: MemberBroker) -> None:
    lead_all(member, 1, 2)
    replica = Replica(member)
    replica.has_everything(0)
    waiting = replica.ask({})
    member.follow(3, partition=1)
    assert got(waiting)[1].error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_a_partition_that_is_forgotten_wakes_nobody(member: MemberBroker) -> None:
    lead_all(member, 1, 2)
    replica = Replica(member)
    replica.has_everything(0)
    waiting = replica.ask({}, forgotten=(1,))
    member.produce(acks=1, partition=1)
    assert not waiting.is_answered()
    member.produce(acks=1, partition=0)
    assert list(got(waiting)) == [0]


def test_a_session_that_is_closed_is_told_nothing_and_another_goes_on(member: MemberBroker) -> None:
    lead_all(member, 1, 2)
    Replica(member).has_everything(0)
    member.broker.sessions.close(next(iter(member.broker.sessions._sessions)))
    assert not any(led.sessions for led in member.leaders)
    replica = Replica(member)
    replica.has_everything(0)
    waiting = replica.ask({})
    member.produce(acks=1)
    assert got(waiting)[0].records


def test_small_answers_starve_no_partition(member: MemberBroker) -> None:
    lead_all(member, 1, 2)
    for number in range(FEW):
        member.produce(acks=1, partition=number)
    replica = Replica(member, max_bytes=1)
    asked = replica.ask(dict.fromkeys(range(FEW), 0))
    seen: list[int] = []
    for _ in range(2 * FEW):
        [number] = [number for number, part in got(asked).items() if part.records]
        seen.append(number)
        member.produce(acks=1, partition=number)  # there is always more of it
        asked = replica.ask({number: seen.count(number)})
    assert seen == [0, *range(FEW), 0, 1]  # as in Kafka, the order begins with the second answer
