"""Offsets, epochs, deletions, markers and producers, as a leader and as a follower answers for them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from octavo.broker.wire.api_keys import (
    DELETE_RECORDS,
    DESCRIBE_PRODUCERS,
    LIST_OFFSETS,
    OFFSET_FOR_LEADER_EPOCH,
    WRITE_TXN_MARKERS,
)
from octavo.broker.wire.messages import Struct
from octavo.errors import ErrorCode
from octavo.records import BatchBuilder
from tests.unit.broker.member.member_broker import EPOCH, TOPIC, Asked, MemberBroker
from tests.unit.cluster.leaders import broker as registered
from tests.unit.log.logs import TIME_MS

LATEST, EARLIEST, LARGEST = -1, -2, -3
CONSUMER, DEBUGGING = -1, -2


@pytest.fixture
def member(tmp_path: Path) -> Iterator[MemberBroker]:
    found = MemberBroker(tmp_path, {"min.insync.replicas": "1"})
    yield found
    found.close()


# ---------------------------------------------------------------------------------------------------------- ListOffsets


def list_offset(
    member: MemberBroker, timestamp: int, *, replica: int = CONSUMER, version: int = 11, epoch: int = -1
) -> Struct:
    one = {"partition_index": 0, "current_leader_epoch": epoch, "timestamp": timestamp}
    content = {
        "replica_id": replica,
        "isolation_level": 0,
        "topics": [{"name": TOPIC, "partitions": [one]}],
        "timeout_ms": 1000,
    }
    [topic] = member.ask(LIST_OFFSETS, version, content).answer.topics
    [found] = topic.partitions
    assert isinstance(found, Struct)
    return found


def test_replicas_are_told_of_the_end_and_consumers_of_the_high_watermark(member: MemberBroker) -> None:
    member.lead(1, 2)
    member.produce(acks=1, count=3)
    assert list_offset(member, LATEST).offset == 0
    assert list_offset(member, LATEST, replica=2, epoch=EPOCH).offset == 3
    assert list_offset(member, TIME_MS, replica=2).offset == 0
    assert list_offset(member, TIME_MS).offset == -1
    assert list_offset(member, LATEST, replica=2, epoch=EPOCH - 1).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert list_offset(member, LATEST, replica=2, epoch=EPOCH + 1).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_new_leader_does_not_know_the_latest_offset_before_its_epoch_is_committed(member: MemberBroker) -> None:
    member.lead(1, 2)
    member.produce(acks=1, count=3)
    member.lead(1, 2, epoch=EPOCH + 2, version=30)
    assert list_offset(member, LATEST).error_code == ErrorCode.OFFSET_NOT_AVAILABLE
    assert list_offset(member, LATEST, version=4).error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert list_offset(member, TIME_MS).error_code == ErrorCode.OFFSET_NOT_AVAILABLE
    assert list_offset(member, LARGEST).error_code == ErrorCode.OFFSET_NOT_AVAILABLE
    assert list_offset(member, EARLIEST).offset == 0
    assert list_offset(member, LATEST, replica=2).offset == 3
    assert list_offset(member, LATEST, replica=DEBUGGING).offset == 3
    member.fetch(3, replica=2, epoch=EPOCH + 2)
    assert (list_offset(member, LATEST).error_code, list_offset(member, LATEST).offset) == (0, 3)


def test_only_those_who_debug_are_answered_by_a_follower(member: MemberBroker) -> None:
    member.lead(1, 2)
    member.produce(acks=1, count=3)
    member.follow(2)
    assert list_offset(member, LATEST).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert list_offset(member, LATEST, replica=3).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert list_offset(member, LATEST, replica=DEBUGGING).offset == 3


# ------------------------------------------------------------------------------------------------- OffsetForLeaderEpoch


def test_only_the_leader_answers_for_epochs(member: MemberBroker) -> None:
    def end(epoch: int, current: int = -1) -> tuple[int, int, int]:
        one = {"partition": 0, "current_leader_epoch": current, "leader_epoch": epoch}
        content = {"replica_id": 2, "topics": [{"topic": TOPIC, "partitions": [one]}]}
        [topic] = member.ask(OFFSET_FOR_LEADER_EPOCH, 4, content).answer.topics
        [found] = topic.partitions
        return found.error_code, found.leader_epoch, found.end_offset

    member.lead(1, 2)
    member.produce(acks=1, count=3)
    member.lead(1, 2, epoch=EPOCH + 2, version=30)
    assert end(EPOCH) == (0, EPOCH, 3)
    assert end(EPOCH + 1) == (0, EPOCH, 3)
    assert end(EPOCH + 2) == (0, EPOCH + 2, 3)
    assert end(EPOCH, EPOCH)[0] == ErrorCode.FENCED_LEADER_EPOCH
    member.follow(2, epoch=EPOCH + 3)
    assert end(EPOCH)[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER


# -------------------------------------------------------------------------------------------------------- DeleteRecords


def delete(member: MemberBroker, offset: int) -> Asked:
    one = {"partition_index": 0, "offset": offset}
    return member.ask(DELETE_RECORDS, 2, {"topics": [{"name": TOPIC, "partitions": [one]}], "timeout_ms": 30_000})


def result(asked: Asked) -> tuple[int, int]:
    [topic] = asked.answer.topics
    [found] = topic.partitions
    return found.error_code, found.low_watermark


def committed(member: MemberBroker) -> None:
    """Four records that brokers 1 and 2 have; 3 is there and follows as well."""
    member.lead(1, 2)
    member.produce(acks=1, count=4)
    for replica in (2, 3):
        member.fetch(4, replica=replica, start=0)


def test_records_are_deleted_when_all_live_replicas_have_done_so(member: MemberBroker) -> None:
    committed(member)
    deletion = delete(member, 3)
    assert not deletion.is_answered()
    member.fetch(4, replica=2, start=3)
    assert not deletion.is_answered()
    member.fetch(4, replica=3, start=3)
    assert result(deletion) == (0, 3)
    assert result(delete(member, 2)) == (0, 3)  # nothing to do


def test_dead_replicas_are_not_waited_for(member: MemberBroker) -> None:
    committed(member)
    member.brokers[3] = registered(3, fenced=True)
    deletion = delete(member, -1)
    member.fetch(4, replica=2, start=4)
    assert result(deletion) == (0, 4)


def test_a_deletion_ends_with_its_time_or_with_the_leader(member: MemberBroker) -> None:
    committed(member)
    deletion = delete(member, 2)
    member.expire()
    assert result(deletion) == (ErrorCode.REQUEST_TIMED_OUT, 0)  # where the others begin
    deletion = delete(member, 3)
    member.follow(2)
    assert result(deletion) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert result(delete(member, 3)) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


# ------------------------------------------------------------------------------------------------------ WriteTxnMarkers


def open_transaction(member: MemberBroker) -> None:
    builder = BatchBuilder(producer_id=9, producer_epoch=0, base_sequence=0, transactional=True)
    builder.append(b"k", b"v", timestamp_ms=TIME_MS)
    member.directory.log(TOPIC, 0).append(builder.build())
    member.turn()


def mark(member: MemberBroker, *, coordinator_epoch: int = 3, partition: int = 0, topic: str = TOPIC) -> Asked:
    marker: dict[str, Any] = {
        "producer_id": 9,
        "producer_epoch": 0,
        "transaction_result": True,
        "topics": [{"name": topic, "partition_indexes": [partition]}],
        "coordinator_epoch": coordinator_epoch,
        "transaction_version": 1,
    }
    return member.ask(WRITE_TXN_MARKERS, 2, {"markers": [marker]})


def code(asked: Asked) -> int:
    [marker] = asked.answer.markers
    [topic] = marker.topics
    return int(topic.partitions[0].error_code)


def test_a_marker_is_answered_when_it_is_committed(member: MemberBroker) -> None:
    led = member.lead(1, 2)
    open_transaction(member)
    marked = mark(member)
    assert not marked.is_answered()
    member.fetch(2, replica=2)
    assert code(marked) == 0
    assert led.log.last_stable_offset == 2
    again = mark(member)  # it may come twice
    member.fetch(3, replica=2)
    assert code(again) == 0


def test_a_marker_of_an_older_coordinator_is_refused(member: MemberBroker) -> None:
    member.lead(1, 2)
    open_transaction(member)
    marked = mark(member, coordinator_epoch=3)
    member.fetch(2, replica=2)
    assert code(marked) == 0
    assert code(mark(member, coordinator_epoch=2)) == ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_a_marker_waits_as_long_as_the_settings_say(member: MemberBroker) -> None:
    member.lead(1, 2)
    open_transaction(member)
    hours = 100
    member.broker.config = replace(member.broker.config, request_timeout_ms=hours * 3_600_000)
    before = time.monotonic()
    mark(member)
    assert member.deadlines[-1] >= before + hours * 3600


def test_a_marker_that_is_not_committed(member: MemberBroker) -> None:
    led = member.lead(1, 2)
    open_transaction(member)
    marked = mark(member)
    member.expire()
    assert code(marked) == ErrorCode.REQUEST_TIMED_OUT
    marked = mark(member)
    member.follow(2)
    assert code(marked) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert code(mark(member)) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert code(mark(member, partition=7)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    led = member.lead(1, epoch=EPOCH + 2, version=30)
    led.state.min_isr = 2
    assert code(mark(member)) == ErrorCode.NOT_ENOUGH_REPLICAS


# ---------------------------------------------------------------------------------------------------- DescribeProducers


def test_followers_know_producers_as_well(member: MemberBroker) -> None:
    member.lead(1, 2)
    open_transaction(member)
    for epoch in range(2):
        content = {"topics": [{"name": TOPIC, "partition_indexes": [0]}]}
        [topic] = member.ask(DESCRIBE_PRODUCERS, 0, content).answer.topics
        assert [each.producer_id for each in topic.partitions[0].active_producers] == [9]
        member.follow(2, epoch=EPOCH + 1 + epoch)
