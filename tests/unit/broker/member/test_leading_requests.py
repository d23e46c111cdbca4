"""Produce and Fetch on a broker that leads: acks=all, replicas that follow, consumers, and who is told who leads."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from octavo.broker.broker_settings import BrokerSettings
from octavo.broker.wire.api_keys import FETCH
from octavo.errors import ErrorCode
from octavo.log import LogConfig
from octavo.log.writing.segments import LogSegments
from tests.unit.broker.member.member_broker import EPOCH, TOPIC, MemberBroker
from tests.unit.cluster.leaders import EPOCHS
from tests.unit.cluster.leaders import broker as registered


@pytest.fixture
def member(tmp_path: Path) -> Iterator[MemberBroker]:
    found = MemberBroker(tmp_path, {"min.insync.replicas": "2"})
    yield found
    found.close()


# -------------------------------------------------------------------------------------------------------------- produce


def test_acks_all_waits_for_all_in_sync(member: MemberBroker) -> None:
    member.lead(1, 2, 3)
    produced = member.produce(count=2)
    assert not produced.is_answered()
    member.fetch(2, replica=2)
    assert not produced.is_answered()
    member.fetch(2, replica=3)
    assert produced.is_answered()
    assert (produced.partition.error_code, produced.partition.base_offset) == (0, 0)


@pytest.mark.parametrize("isr", [(1,), (1, 2, 3)])
def test_a_flush_that_has_failed_in_the_background_is_reported(
    member: MemberBroker, monkeypatch: pytest.MonkeyPatch, isr: tuple[int, ...]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "no")

    reported: list[OSError] = []
    member.broker.troubles.disk_failed = reported.append
    led = member.lead(*isr)
    with monkeypatch.context() as patch:
        patch.setattr(LogSegments, "sync", fail)
        with pytest.raises(OSError, match="no"):
            led.log.flush()
    assert member.produce(acks=1).partition.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert [error.errno for error in reported] == [errno.EIO]


@pytest.mark.parametrize("acks", [0, 1])
def test_other_acks_do_not_wait(member: MemberBroker, acks: int) -> None:
    led = member.lead(1)  # fewer than min.insync.replicas
    produced = member.produce(acks=acks)
    assert produced.is_answered()
    if acks:
        assert produced.partition.error_code == 0
    assert (led.log.end_offset, led.log.high_watermark) == (1, 0)


@pytest.mark.parametrize(
    ("of_file", "of_cluster", "of_broker", "code"),
    [
        ("2", None, None, ErrorCode.NOT_ENOUGH_REPLICAS),
        ("2", "1", None, ErrorCode.NONE),
        ("1", "2", None, ErrorCode.NOT_ENOUGH_REPLICAS),
        ("2", "2", "1", ErrorCode.NONE),
    ],
)
def test_how_many_must_be_in_sync_is_inherited(
    tmp_path: Path, of_file: str, of_cluster: str | None, of_broker: str | None, code: ErrorCode
) -> None:
    member = MemberBroker(tmp_path)
    layers = [{} if each is None else {"min.insync.replicas": each} for each in (of_file, of_cluster, of_broker)]
    member.broker.settings = BrokerSettings(*layers, is_member=True)
    member.lead(1)
    assert member.produce().partition.error_code == code
    member.close()


def test_acks_all_is_refused_with_too_few_in_sync(member: MemberBroker) -> None:
    led = member.lead(1)
    produced = member.produce()
    assert produced.partition.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert (produced.partition.base_offset, produced.partition.log_start_offset) == (-1, 0)
    assert led.log.end_offset == 0


def test_the_time_of_acks_all_may_be_over(member: MemberBroker) -> None:
    led = member.lead(1, 2)
    member.produce(acks=1)
    produced = member.produce()
    member.expire()
    assert (produced.partition.error_code, produced.partition.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, 1)
    assert led.log.end_offset == 2


def test_too_few_may_be_in_sync_after_the_append(member: MemberBroker) -> None:
    led = member.lead(1, 2)
    produced = member.produce()
    led.state.min_isr = 3
    led.state.high_watermark = 1  # it had moved on before the setting was changed
    led.log.advance_high_watermark(1)
    member.turn()
    assert produced.partition.error_code == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


def test_who_waits_for_acks_is_told_at_once_of_another_leader(member: MemberBroker) -> None:
    member.lead(1, 2)
    produced = member.produce()
    member.follow(3)
    answer = produced.partition
    assert (answer.error_code, answer.base_offset) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 0)
    assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (3, EPOCH + 1)
    [node] = produced.answer.node_endpoints
    assert (node.node_id, node.host, node.port, node.rack) == (3, "host-3", 9003, "rack-3")


@pytest.mark.parametrize("version", [9, 10, 13])
def test_a_producer_that_asks_a_follower_is_told_who_leads(member: MemberBroker, version: int) -> None:
    member.follow(2)
    produced = member.produce(version=version)
    assert produced.partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert produced.partition.log_start_offset == -1
    if version >= 10:
        assert produced.partition.current_leader.leader_id == 2
        assert [node.node_id for node in produced.answer.node_endpoints] == [2]


def test_a_fenced_leader_has_no_endpoint(member: MemberBroker) -> None:
    member.follow(2)
    listener = member.broker.image.listeners["PLAINTEXT"]
    nodes = {**listener.nodes, 2: listener.nodes[2]._replace(is_fenced=True)}
    member.broker.image = member.broker.image._replace(listeners={"PLAINTEXT": listener._replace(nodes=nodes)})
    produced = member.produce()
    assert produced.partition.current_leader.leader_id == 2
    assert list(produced.answer.node_endpoints) == []


def test_a_leader_by_the_metadata_that_does_not_know_it_yet_refuses(member: MemberBroker) -> None:
    member.follow(1)
    assert member.produce().partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_an_append_by_another_thread_waits_as_well(member: MemberBroker) -> None:
    """The log has to be flushed, so that another thread appends."""
    member.lead(1, 2)
    member.directory.log(TOPIC, 0).config = LogConfig.from_properties({"flush.messages": "1"})
    produced = member.produce(count=3)
    assert not produced.is_answered()
    member.fetch(3, replica=2)
    assert produced.partition.error_code == 0


# ---------------------------------------------------------------------------------------------------------------- fetch


def test_replicas_read_to_the_end_and_consumers_to_the_high_watermark(member: MemberBroker) -> None:
    led = member.lead(1, 2)
    member.produce(acks=1, count=4)
    consumer = member.fetch(0)
    assert not consumer.is_answered()
    replica = member.fetch(0, replica=2)
    assert replica.partition.records
    assert replica.partition.high_watermark == 0
    assert not consumer.is_answered()
    assert member.fetch(4, replica=2).is_answered() is False  # there is no more
    assert consumer.partition.high_watermark == 4
    assert consumer.partition.records == replica.partition.records
    assert led.log.high_watermark == 4


def test_a_replica_that_waits_is_answered_with_the_append(member: MemberBroker) -> None:
    member.lead(1, 2)
    waiting = member.fetch(0, replica=2)
    assert not waiting.is_answered()
    produced = member.produce()
    assert waiting.partition.records
    assert not produced.is_answered()  # the position counts when the replica asks for more
    member.fetch(1, replica=2)
    assert produced.is_answered()


def test_the_high_watermark_that_a_replica_moves_is_in_its_answer(member: MemberBroker) -> None:
    member.lead(1, 2)
    member.produce(acks=1)
    member.fetch(0, replica=2)
    assert member.fetch(1, replica=2, wait_ms=0).partition.high_watermark == 1


def test_a_replica_that_knows_an_old_high_watermark_does_not_wait(member: MemberBroker) -> None:
    member.lead(1, 2, 3)
    member.produce(acks=1)
    waiting = member.fetch(1, replica=2, high_watermark=0)
    assert not waiting.is_answered()
    silent = member.fetch(1, replica=3)  # it does not tell, as Apache Kafka's
    assert waiting.partition.high_watermark == 1
    assert not silent.is_answered()


def test_positions_that_do_not_count(member: MemberBroker) -> None:
    led = member.lead(1, 2)
    member.produce(acks=1, count=2)

    def code(*, replica: int = 2, epoch: int = EPOCH, replica_epoch: int | None = None) -> int:
        answer = member.fetch(2, replica=replica, wait_ms=0, epoch=epoch, replica_epoch=replica_epoch).partition
        assert led.log.high_watermark == 0
        return int(answer.error_code)

    assert code(epoch=EPOCH - 1) == ErrorCode.FENCED_LEADER_EPOCH
    assert code(epoch=EPOCH + 1) == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert code(replica=4) == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert code(replica=4, epoch=-1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert code(replica_epoch=EPOCHS[2] - 1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert member.fetch(3, replica=2, wait_ms=0).partition.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert led.log.high_watermark == 0
    assert member.fetch(2, replica=2, wait_ms=0).partition.error_code == 0
    assert led.log.high_watermark == 2


def test_a_replica_that_has_other_records_is_told_where_to_go_on(member: MemberBroker) -> None:
    led = member.lead(1, 2)
    member.produce(acks=1, count=3)
    member.lead(1, 2, epoch=EPOCH + 2, version=30)
    member.produce(acks=1)
    answer = member.fetch(4, replica=2, epoch=EPOCH + 2, last_epoch=EPOCH).partition
    assert (answer.error_code, answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (0, EPOCH, 3)
    assert not answer.records
    assert led.log.high_watermark == 0  # its position does not count
    answer = member.fetch(3, replica=2, epoch=EPOCH + 2, last_epoch=EPOCH + 1).partition
    assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (EPOCH, 3)
    unknown = member.fetch(4, replica=2, epoch=EPOCH + 2, last_epoch=EPOCH + 3).partition
    assert unknown.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_an_offset_before_the_start_is_out_of_range_whatever_the_epoch(member: MemberBroker) -> None:
    led = member.lead(1)
    led.state.min_isr = 1
    member.produce(acks=1, count=3)
    member.turn()
    led.log.delete_records_before(2)
    answer = member.fetch(1, replica=2, last_epoch=EPOCH).partition
    assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_what_waits_is_answered_when_another_leads(member: MemberBroker) -> None:
    member.lead(1, 2)
    replica, consumer = member.fetch(0, replica=2), member.fetch(0)
    old = member.fetch(0, version=10, epoch=-1)
    member.follow(3)
    assert replica.partition.error_code == consumer.partition.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert old.partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert replica.partition.current_leader.leader_id == consumer.partition.current_leader.leader_id == 3
    assert [node.node_id for node in consumer.answer.node_endpoints] == [3]
    assert not replica.answer.node_endpoints  # brokers know each other


def test_what_waits_is_answered_in_a_new_epoch_of_the_same_leader(member: MemberBroker) -> None:
    member.lead(1, 2)
    replica = member.fetch(0, replica=2)
    member.lead(1, 2, epoch=EPOCH + 1, version=21)
    assert replica.partition.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert replica.partition.current_leader.leader_epoch == EPOCH + 1


def test_consumers_may_read_from_a_follower_since_version_11(member: MemberBroker) -> None:
    led = member.lead(1, 2)
    member.produce(acks=1, count=2)
    member.produce(acks=1, count=1)
    member.follow(2)
    led.log.advance_high_watermark(2)
    assert member.fetch(0, version=10, epoch=-1).partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    answer = member.fetch(0, version=11, epoch=EPOCH + 1).partition
    assert (answer.error_code, answer.high_watermark) == (0, 2)
    assert answer.records
    assert member.fetch(0, epoch=EPOCH).partition.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert member.fetch(0, epoch=EPOCH + 2).partition.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert member.fetch(4, epoch=EPOCH + 1).partition.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert member.fetch(0, epoch=EPOCH + 1, replica=3).partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    waiting = member.fetch(2, epoch=EPOCH + 1)
    assert not waiting.is_answered()
    led.log.advance_high_watermark(3)
    member.turn()
    assert waiting.partition.high_watermark == 3


def test_a_replica_joins_when_it_has_caught_up(member: MemberBroker) -> None:
    led = member.lead(1, 2)
    member.produce(acks=1, count=3)
    member.fetch(3, replica=2)
    member.fetch(2, replica=3)
    assert not member.asked
    member.fetch(3, replica=3)
    [change] = member.asked
    assert [each.broker_id for each in change.asked.new_isr_with_epochs] == [1, 2, 3]
    assert led.state.maximal_isr == {1, 2, 3}


def test_a_replica_follows_in_a_session(member: MemberBroker) -> None:
    led = member.lead(1, 2)
    member.produce(acks=1, count=3)

    def content(session_id: int, session_epoch: int, *offsets: int) -> dict[str, object]:
        partitions = [
            {
                "partition": 0,
                "current_leader_epoch": EPOCH,
                "fetch_offset": offset,
                "last_fetched_epoch": EPOCH,
                "log_start_offset": 0,
                "partition_max_bytes": 1 << 20,
            }
            for offset in offsets
        ]
        return {
            "replica_state": {"replica_id": 2, "replica_epoch": EPOCHS[2]},
            "max_wait_ms": 500,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "isolation_level": 0,
            "session_id": session_id,
            "session_epoch": session_epoch,
            "topics": [{"topic_id": member.topic_id.bytes, "partitions": partitions}] if partitions else [],
            "forgotten_topics_data": [],
            "rack_id": "",
        }

    first = member.ask(FETCH, 18, content(0, 0, 0))
    session = first.answer.session_id
    assert session > 0
    assert first.partition.records
    second = member.ask(FETCH, 18, content(session, 1, 3))
    assert not second.is_answered()
    assert led.log.high_watermark == 3
    member.expire()
    assert second.partition.high_watermark == 3
    member.produce(acks=1)
    third = member.ask(FETCH, 18, content(session, 2))  # nothing has changed: it has everything up to 3
    assert third.partition.records
    assert led.state.replicas[2].log_end_offset == 3


def test_a_replica_with_an_old_registration_may_follow_but_not_join(member: MemberBroker) -> None:
    led = member.lead(1, 2)
    member.brokers[3] = registered(3, fenced=True)
    answer = member.fetch(0, replica=3, wait_ms=0)
    assert answer.partition.error_code == 0
    assert not member.asked
    assert led.state.replicas[3].log_end_offset == 0
