"""Where a consumer begins, what it remembers, and what it is subscribed to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from octavo.errors import ConsumerError, InvalidInput, NoOffset, OffsetOutOfRange, UnknownPartition
from octavo.log.consumer import Consumer, OffsetAndMetadata
from octavo.log.names import TopicPartition
from tests.clock import Clock
from tests.unit.log.consumer.parts import T0, T1, TIME_MS, numbers, opened, write

EARLIEST = {"auto.offset.reset": "earliest"}


def test_it_begins_where_it_is_told_to(tmp_path: Path) -> None:
    clock = Clock()
    clock.now_ms = TIME_MS + 20_000
    with opened(tmp_path, clock) as data:
        write(data.log(*T0), 0, 10)
        write(data.log(*T0), 15_000, 10)

        def first(reset: str) -> list[int]:
            with Consumer(data, {"auto.offset.reset": reset}) as consumer:
                consumer.assign([T0])
                return numbers(consumer.poll(max_records=1))

        assert first("earliest") == [0]
        assert first("latest") == []
        assert first("by_duration:PT10S") == [15_000]
        assert first("by_duration:PT19.995S") == [5]
        assert first("by_duration:PT1S") == []
        assert first("by_duration:P9999D") == [0]
        with pytest.raises(NoOffset, match="t-0"):
            first("none")


def test_it_goes_on_where_its_group_left_off(tmp_path: Path) -> None:
    config = EARLIEST | {"group.id": "g"}
    with opened(tmp_path) as data:
        write(data.log(*T0), 0, 20)
        with Consumer(data, config) as consumer:
            consumer.subscribe(["t"])
            consumer.poll(max_records=5)
        with Consumer(data, config) as consumer:
            consumer.subscribe(["t"])
            assert numbers(consumer.poll(max_records=5)) == list(range(5, 10))
            consumer.commit({T0: 7, T1: OffsetAndMetadata(0, "nothing")})
            assert consumer.committed([T0, T1]) == {T0: OffsetAndMetadata(7), T1: OffsetAndMetadata(0, "nothing")}
            consumer.commit()
            assert consumer.committed([T0])[T0] == OffsetAndMetadata(10, "", 0)
    with opened(tmp_path) as data, Consumer(data, EARLIEST, group_id="g") as consumer:
        consumer.assign([T0])
        assert consumer.position(T0) == 10
        assert consumer.lag(T0) == 10


def test_it_commits_by_itself_now_and_then(tmp_path: Path) -> None:
    clock = Clock()
    with opened(tmp_path, clock) as data:
        write(data.log(*T0), 0, 20)
        consumer = Consumer(data, EARLIEST, group_id="g", auto_commit_interval_ms=1_000)
        consumer.assign([T0])
        consumer.poll(max_records=5)
        consumer.poll(max_records=5)
        assert consumer.committed([T0]) == {T0: None}
        clock.now_ms += 1_000
        consumer.poll(max_records=5)
        assert consumer.committed([T0]) == {T0: OffsetAndMetadata(10, "", 0)}
        consumer.assign([])
        assert consumer.committed([T0]) == {T0: OffsetAndMetadata(15, "", 0)}
        size = data.log("__consumer_offsets", 0).end_offset
        consumer.close()
        assert data.log("__consumer_offsets", 0).end_offset == size  # nothing new


def test_seeking(tmp_path: Path) -> None:
    with opened(tmp_path) as data, Consumer(data) as consumer:
        write(data.log(*T0), 0, 30)
        consumer.assign([T0, T1])
        assert consumer.position(T0) == 30
        consumer.seek_to_beginning()
        assert numbers(consumer.poll(max_records=2)) == [0, 1]
        consumer.seek(T0, 15)
        assert numbers(consumer.poll(max_records=2)) == [15, 16]
        consumer.seek(T0, OffsetAndMetadata(3))
        assert numbers(consumer.poll(max_records=1)) == [3]
        consumer.seek_to_timestamp(TIME_MS + 22)
        assert numbers(consumer.poll(max_records=1)) == [22]
        consumer.seek_to_timestamp(TIME_MS + 1_000_000, [T0])
        assert consumer.position(T0) == 30
        consumer.seek_to_beginning([T0])
        consumer.seek_to_end([T0])
        assert consumer.poll() == []
        assert consumer.beginning_offsets([T0, T1]) == {T0: 0, T1: 0}
        assert consumer.end_offsets([T0, T1]) == {T0: 30, T1: 0}
        assert consumer.offsets_for_times({T0: TIME_MS + 22, T1: 0}) == {T0: (22, TIME_MS + 22, 0), T1: None}
        with pytest.raises(InvalidInput):
            consumer.seek(T0, -1)
        with pytest.raises(ConsumerError, match="not assigned"):
            consumer.seek(TopicPartition("t", 2), 0)


def test_an_offset_that_is_not_there_is_reset_or_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as data:
        write(data.log(*T0), 0, 30)
        data.log(*T0).delete_records_before(10)
        with Consumer(data, EARLIEST) as consumer:
            consumer.assign([T0])
            for offset in (5, 99):
                consumer.seek(T0, offset)
                assert numbers(consumer.poll(max_records=1)) == [10]
        with Consumer(data, {"auto.offset.reset": "none"}) as consumer:
            consumer.assign([T0])
            consumer.seek(T0, 5)
            with pytest.raises(OffsetOutOfRange):
                consumer.poll()


def test_paused_partitions_give_nothing_and_lose_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as data, Consumer(data, EARLIEST) as consumer:
        write(data.log(*T0), 0, 10)
        write(data.log(*T1), 100, 10)
        consumer.assign([T0, T1])
        assert numbers(consumer.poll(max_records=2)) == [0, 1]
        consumer.pause([T0])
        assert consumer.paused() == [T0]
        assert numbers(consumer.poll(max_records=100)) == list(range(100, 110))
        assert consumer.poll() == []
        consumer.resume([T0])
        assert numbers(consumer.poll(max_records=100)) == list(range(2, 10))


def test_a_subscription_follows_the_topics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("octavo.log.consumer.assignment.LOOK_AGAIN_S", 0)
    with opened(tmp_path) as data, Consumer(data, EARLIEST) as consumer, Consumer(data, EARLIEST) as by_name:
        consumer.subscribe(re.compile("t[0-9]*"))
        by_name.subscribe(["later", "t"])
        assert consumer.assignment() == by_name.assignment() == [T0, T1]
        data.create_topic("t7")
        data.create_topic("tx")
        data.create_topic("later")
        data.coordinator.commit_offsets("g", {T0: OffsetAndMetadata(0)})
        write(data.log("t7", 0), 70, 2)
        write(data.log("later", 0), 80, 2)
        assert numbers(consumer.poll()) == [70, 71]
        assert numbers(by_name.poll()) == [80, 81]
        assert consumer.assignment() == [T0, T1, TopicPartition("t7", 0)]
        data.delete_topic("t7")
        assert consumer.poll() == []
        assert consumer.assignment() == [T0, T1]
        consumer.unsubscribe()
        assert consumer.assignment() == []
        consumer.subscribe(re.compile(".*"))
        assert TopicPartition("__consumer_offsets", 0) not in consumer.assignment()
        consumer.subscribe([])
        assert consumer.subscription() is None
        assert consumer.assignment() == []
    with opened(tmp_path) as data, Consumer(data, exclude_internal_topics=False) as consumer:
        consumer.subscribe(re.compile(".*"))
        assert TopicPartition("__consumer_offsets", 0) in consumer.assignment()
        assert consumer.partitions_for("t") == [T0, T1]
        with pytest.raises(UnknownPartition, match="no topic 'none'"):
            consumer.partitions_for("none")


def test_partitions_and_topics_do_not_mix(tmp_path: Path) -> None:
    with opened(tmp_path) as data, Consumer(data) as consumer:
        consumer.assign([T0])
        with pytest.raises(ConsumerError, match="unsubscribe"):
            consumer.subscribe(["t"])
        consumer.unsubscribe()
        consumer.subscribe(["t"])
        assert consumer.subscription() == frozenset({"t"})
        with pytest.raises(ConsumerError, match="unsubscribe"):
            consumer.assign([T0])
        with pytest.raises(InvalidInput, match="in a list"):
            consumer.subscribe("t")


def test_a_partition_that_is_not_there_is_told(tmp_path: Path) -> None:
    with opened(tmp_path) as data, Consumer(data) as consumer:
        consumer.assign([TopicPartition("none", 0)])
        with pytest.raises(UnknownPartition):
            consumer.poll()
