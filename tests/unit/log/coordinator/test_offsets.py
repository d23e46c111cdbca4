"""Committed offsets: kept, forgotten, and part of transactions."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.coordinator.groups.config import GroupConfig
from octavo.errors import BadDirectory, CoordinatorRefused, ErrorCode, InvalidInput, MetadataTooLarge, WrongGroup
from octavo.log.background import Background
from octavo.log.coordinator import OffsetAndMetadata
from octavo.log.coordinator.coordinator import group_hosts
from octavo.log.coordinator.internal_topic import java_hash, partition_of
from octavo.log.names import TopicPartition
from octavo.log.origin import Origin
from octavo.records import BatchBuilder
from octavo.schemas.consumer_offsets.offsets import OffsetCommitKey, OffsetCommitValue, read_offset_key
from octavo.schemas.versioned import read_value, write_key
from tests.clock import Clock
from tests.unit.log.coordinator.parts import T0, T1, TIME_MS, opened, send


def test_what_was_committed_is_there_again(tmp_path: Path) -> None:
    with opened(tmp_path) as data:
        coordinator = data.coordinator
        assert coordinator.committed("g", [T0]) == {T0: None}
        assert "__consumer_offsets" not in data.topics
        coordinator.commit_offsets("g", {T0: OffsetAndMetadata(5, "here", 2), T1: OffsetAndMetadata(6)})
        coordinator.commit_offsets("g", {T0: OffsetAndMetadata(7)})
        coordinator.commit_offsets("other", {T0: OffsetAndMetadata(1)})
        expected = {T0: OffsetAndMetadata(7), T1: OffsetAndMetadata(6)}
        assert coordinator.committed("g") == expected
    with opened(tmp_path) as data:
        assert data.coordinator.committed("g") == expected
        assert data.coordinator.committed("other", [T0, T1]) == {T0: OffsetAndMetadata(1), T1: None}
        assert data.coordinator.groups() == ["g", "other"]


def test_the_topic_is_made_as_kafka_makes_it_but_for_its_partitions(tmp_path: Path) -> None:
    with opened(tmp_path) as data:
        data.coordinator.commit_offsets("g", {T0: OffsetAndMetadata(5)})
        topic = data.topics["__consumer_offsets"]
        assert len(topic.partitions) == 1
        assert topic.config == {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": "104857600",
        }


def test_the_record_is_that_of_kafka(tmp_path: Path) -> None:
    clock = Clock()
    with opened(tmp_path, clock) as data:
        data.coordinator.commit_offsets("g", {T0: OffsetAndMetadata(5, "m", 3)})
        [record] = data.log("__consumer_offsets", 0).reader().records()
        assert record.key is not None
        assert record.value is not None
        assert record.timestamp_ms == TIME_MS
        assert read_offset_key(record.key) == OffsetCommitKey(group="g", topic="t", partition=0)
        assert record.value[:2] == b"\x00\x04"
        assert read_value(OffsetCommitValue, record.value) == OffsetCommitValue(
            offset=5, leader_epoch=3, metadata="m", commit_timestamp=TIME_MS, topic_id=data.topics["t"].id
        )


def test_groups_go_where_kafka_puts_them(tmp_path: Path) -> None:
    # What Java's String.hashCode gives.
    assert [java_hash(text) for text in ("", "a", "group", "console-consumer-77", "äöü", "\U0001f600")] == [
        0,
        97,
        98629247,
        1109249185,
        226986,
        1772899,
    ]
    assert java_hash("polygenelubricants") == 0  # the hash is the one int without an absolute value
    assert partition_of("group", 50) == 98629247 % 50
    with opened(tmp_path) as data:
        data.create_topic("__consumer_offsets", 7, {"cleanup.policy": "compact"})
        data.coordinator.commit_offsets("group", {T0: OffsetAndMetadata(5)})
        assert data.log("__consumer_offsets", 98629247 % 7).end_offset == 1
    with opened(tmp_path) as data:
        assert data.coordinator.committed("group") == {T0: OffsetAndMetadata(5)}


def test_a_tombstone_takes_a_position_away_and_other_records_are_passed_over(tmp_path: Path) -> None:
    with opened(tmp_path) as data:
        data.coordinator.commit_offsets("g", {T0: OffsetAndMetadata(5), T1: OffsetAndMetadata(6)})
        log = data.log("__consumer_offsets", 0)
        builder = BatchBuilder()
        builder.append(b"\x00\x0a\x00\x01g", b"\x00\x00 of a group of a kind that is not served", timestamp_ms=0)
        builder.append(b"\x7f\x00", b"of a later Kafka", timestamp_ms=0)
        builder.append(write_key(OffsetCommitKey(group="g", topic="t", partition=0)), None, timestamp_ms=0)
        log.append(builder.build(), origin=Origin.COORDINATOR)
    with opened(tmp_path) as data:
        assert data.coordinator.committed("g") == {T1: OffsetAndMetadata(6)}


def test_damage_is_told(tmp_path: Path) -> None:
    with opened(tmp_path) as data:
        data.coordinator.commit_offsets("g", {T0: OffsetAndMetadata(5)})
        builder = BatchBuilder()
        builder.append(b"\x00\x01\x00\x09g", b"", timestamp_ms=0)
        data.log("__consumer_offsets", 0).append(builder.build(), origin=Origin.COORDINATOR)
    with opened(tmp_path) as data, pytest.raises(BadDirectory, match="__consumer_offsets-0"):
        data.coordinator.committed("g")


def test_positions_in_a_deleted_topic_are_gone(tmp_path: Path) -> None:
    with opened(tmp_path) as data:
        data.create_topic("gone")
        place = TopicPartition("gone", 0)
        data.coordinator.commit_offsets("g", {place: OffsetAndMetadata(5), T0: OffsetAndMetadata(1)})
        data.delete_topic("gone")
        assert data.coordinator.committed("g") == {T0: OffsetAndMetadata(1)}
        data.create_topic("gone")
    with opened(tmp_path) as data:
        assert data.coordinator.committed("g", [place]) == {place: None}


def test_what_kafka_would_not_keep_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as data:
        commit = data.coordinator.commit_offsets
        with pytest.raises(WrongGroup) as refused:
            commit("", {T0: OffsetAndMetadata(5)})
        assert refused.value.code is ErrorCode.INVALID_GROUP_ID
        with pytest.raises(MetadataTooLarge) as too_large:
            commit("g", {T0: OffsetAndMetadata(5, "x" * 4097)})
        assert too_large.value.code is ErrorCode.OFFSET_METADATA_TOO_LARGE
        with pytest.raises(InvalidInput, match="offset -1"):
            commit("g", {T0: OffsetAndMetadata(-1)})
        commit("g", {T0: OffsetAndMetadata(5, "x" * 4096)})
        commit("g", {})


def test_many_partitions_are_committed_at_once(tmp_path: Path) -> None:
    offsets = {TopicPartition("many", number): OffsetAndMetadata(number, "m" * 4000) for number in range(300)}
    with opened(tmp_path) as data:
        data.create_topic("many", 300)
        data.coordinator.commit_offsets("g", offsets)
        assert data.coordinator.committed("g") == offsets


def test_offsets_of_a_transaction_count_when_it_is_committed(tmp_path: Path) -> None:
    with opened(tmp_path) as data:
        coordinator = data.coordinator
        coordinator.commit_offsets("g", {T0: OffsetAndMetadata(1)})
        producer = coordinator.init_producer_id("id")
        coordinator.commit_offsets("g", {T0: OffsetAndMetadata(2)}, "id", producer)
        assert coordinator.committed("g") == {T0: OffsetAndMetadata(1)}
        coordinator.end_transaction("id", producer, commit=False)
        assert coordinator.committed("g") == {T0: OffsetAndMetadata(1)}
        coordinator.commit_offsets("g", {T0: OffsetAndMetadata(3)}, "id", producer)
        coordinator.end_transaction("id", producer, commit=True)
        assert coordinator.committed("g") == {T0: OffsetAndMetadata(3)}
    with opened(tmp_path) as data:
        assert data.coordinator.committed("g") == {T0: OffsetAndMetadata(3)}


def test_of_two_commits_the_later_record_counts_and_not_the_later_end(tmp_path: Path) -> None:
    with opened(tmp_path) as data:
        producer = data.coordinator.init_producer_id("id")
        data.coordinator.commit_offsets("g", {T0: OffsetAndMetadata(2)}, "id", producer)
        data.coordinator.commit_offsets("g", {T0: OffsetAndMetadata(9)})
        data.coordinator.end_transaction("id", producer, commit=True)
        assert data.coordinator.committed("g") == {T0: OffsetAndMetadata(9)}
    with opened(tmp_path) as data:
        assert data.coordinator.committed("g") == {T0: OffsetAndMetadata(9)}


def test_offsets_of_an_open_transaction_are_still_pending_after_a_restart(tmp_path: Path) -> None:
    with opened(tmp_path) as data:
        producer = data.coordinator.init_producer_id("id")
        data.coordinator.add_partitions("id", producer, [T0])
        send(data, producer, T0, b"v", 0)
        data.coordinator.commit_offsets("g", {T0: OffsetAndMetadata(2)}, "id", producer)
    with opened(tmp_path) as data:
        assert data.coordinator.committed("g") == {}
        data.coordinator.end_transaction("id", producer, commit=True)
        assert data.coordinator.committed("g") == {T0: OffsetAndMetadata(2)}


def test_a_producer_that_is_fenced_commits_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as data:
        producer = data.coordinator.init_producer_id("id")
        data.coordinator.init_producer_id("id")
        with pytest.raises(CoordinatorRefused):
            data.coordinator.commit_offsets("g", {T0: OffsetAndMetadata(2)}, "id", producer)
        assert data.coordinator.committed("g") == {}


def test_when_the_topics_are_deleted_all_is_forgotten(tmp_path: Path) -> None:
    with opened(tmp_path) as data:
        coordinator = data.coordinator
        coordinator.commit_offsets("g", {T0: OffsetAndMetadata(5)})
        coordinator.init_producer_id("id")
        data.delete_topic("__consumer_offsets")
        data.delete_topic("__transaction_state")
        assert coordinator.committed("g") == {}
        assert coordinator.transaction("id") is None
        coordinator.commit_offsets("g", {T1: OffsetAndMetadata(6)})
        assert coordinator.committed("g") == {T1: OffsetAndMetadata(6)}
        producer = coordinator.init_producer_id("id")
        assert producer.epoch == 0
        coordinator.commit_offsets("g", {T0: OffsetAndMetadata(7)}, "id", producer)
        coordinator.end_transaction("id", producer, commit=True)
        assert coordinator.committed("g") == {T0: OffsetAndMetadata(7), T1: OffsetAndMetadata(6)}


def test_offsets_expire_in_the_background(tmp_path: Path) -> None:
    clock = Clock()
    config = GroupConfig(offsets_retention_minutes=1, offsets_retention_check_interval_ms=1)
    with opened(tmp_path, clock) as data:
        group_hosts(data).configure(config)
        data.coordinator.commit_offsets("g", {T0: OffsetAndMetadata(5)})
        clock.now_ms += 60_000
        background = Background(data, clock=clock)
        while data.coordinator.groups():  # a millisecond has to pass
            assert background.run_once().failed == []
