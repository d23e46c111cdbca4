"""A consumer: what it reads, from where, and what it remembers."""

from __future__ import annotations

import threading
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from octavo.errors import (
    ChecksumMismatch,
    Closed,
    ConsumerClosed,
    ConsumerError,
    DeserializationFailed,
    UnknownPartition,
    WokenUp,
)
from octavo.log import DataDirectory, Log
from octavo.log.consumer import Consumer, ConsumerRecord, OffsetAndMetadata
from octavo.log.names import LOG, TopicPartition, file_name
from octavo.log.reading.read_view import ReadResult
from octavo.records import BatchBuilder, Codec, Header, TimestampType
from octavo.records.compression import compress
from tests.clock import Clock
from tests.corruption import forge
from tests.unit.log.consumer.parts import T0, T1, TIME_MS, numbers, opened, write

EARLIEST = {"auto.offset.reset": "earliest"}


def test_it_gives_records_in_order_and_no_more_than_asked_for(tmp_path: Path) -> None:
    with opened(tmp_path) as data, Consumer(data, EARLIEST) as consumer:
        write(data.log(*T0), 0, 25)
        consumer.assign([T0])
        assert numbers(consumer.poll(max_records=7)) == list(range(7))
        assert consumer.position(T0) == 7
        assert numbers(consumer.poll(max_records=100)) == list(range(7, 25))
        assert consumer.poll() == []
        write(data.log(*T0), 25, 3)
        assert numbers(consumer.poll()) == [25, 26, 27]


def test_it_reads_every_byte_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    whole = ReadResult._read

    def read(part: ReadResult) -> bytes:
        records = whole(part)
        sizes.append(len(records))
        return records

    monkeypatch.setattr(ReadResult, "_read", read)
    with opened(tmp_path) as data, Consumer(data, EARLIEST, max_partition_fetch_bytes=1_500) as consumer:
        write(data.log(*T0), 0, 200)
        consumer.assign([T0])
        found = []
        while records := consumer.poll(max_records=7):
            found += numbers(records)
        assert found == list(range(200))
        assert sum(sizes) == data.log(*T0).size
        assert len(sizes) > 5


def test_a_record_has_all_that_there_is(tmp_path: Path) -> None:
    with opened(tmp_path) as data, Consumer(data, EARLIEST) as consumer:
        write(data.log(*T1), 3, 1)
        consumer.assign([("t", 1)])
        [record] = consumer.poll()
        assert record == ConsumerRecord(
            topic="t",
            partition=1,
            offset=0,
            timestamp_ms=TIME_MS + 3,
            timestamp_type=TimestampType.CREATE_TIME,
            key=b"3",
            value=b"3" + b" " * 20,
            headers=(Header("h", b"3"),),
            leader_epoch=0,
        )
        assert record.topic_partition == T1


@pytest.mark.parametrize("kernels", ["compiled", "interpreted"])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_many_records_are_the_same_as_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kernels: str, codec: Codec
) -> None:
    with opened(tmp_path) as data:
        log = data.log(*T0)
        write(log, 0, 2_000, codec=codec)
        monkeypatch.setenv("OCTAVO_KERNELS", kernels)
        with Consumer(data, EARLIEST, max_partition_fetch_bytes=40_000) as consumer:
            consumer.assign([T0])
            found: list[ConsumerRecord] = []
            while records := consumer.poll(max_records=333):
                found += records
        assert found == [
            ConsumerRecord(
                "t", 0, each.offset, each.timestamp_ms, TimestampType.CREATE_TIME, each.key, each.value, each.headers, 0
            )
            for each in log.reader().records()
        ]


def test_partitions_take_turns(tmp_path: Path) -> None:
    with opened(tmp_path) as data, Consumer(data, EARLIEST, max_partition_fetch_bytes=500) as consumer:
        write(data.log(*T0), 0, 50)
        write(data.log(*T1), 100, 50)
        consumer.subscribe(["t"])
        first = consumer.poll(max_records=40)
        assert {record.partition for record in first} == {0, 1}
        rest = consumer.poll(max_records=100)
        found = numbers(first + rest)
        assert [number for number in found if number < 100] == list(range(50))
        assert [number for number in found if number >= 100] == list(range(100, 150))


def test_iterating_goes_on_for_ever_or_until_nothing_comes(tmp_path: Path) -> None:
    with opened(tmp_path) as data, Consumer(data, EARLIEST, max_poll_records=4) as consumer:
        write(data.log(*T0), 0, 25)
        consumer.assign([T0])
        assert [int(record.value) for record in consumer.records(0)] == list(range(25))
        write(data.log(*T0), 25, 10)
        for record in consumer:
            if int(record.value) == 30:
                break
        assert consumer.position(T0) == 31
        assert numbers(consumer.poll()) == [31, 32, 33, 34][:4]


def test_what_an_iteration_has_handed_out_is_what_is_committed(tmp_path: Path) -> None:
    config = EARLIEST | {"group.id": "g", "enable.auto.commit": "false"}
    with opened(tmp_path) as data, Consumer(data, config) as consumer:
        write(data.log(*T0), 0, 20)
        consumer.assign([T0])
        for count, record in enumerate(consumer.records(0), 1):
            assert consumer.position(T0) == count == record.offset + 1
            if count == 10:
                consumer.commit()
            if count == 12:
                assert numbers(consumer.poll(max_records=3)) == [12, 13, 14]
                break
        assert consumer.committed([T0]) == {T0: OffsetAndMetadata(10, "", 0)}
        assert numbers([*consumer.records(0)]) == list(range(15, 20))


def test_a_poll_within_an_iteration_takes_what_comes_next_and_the_iteration_goes_on(tmp_path: Path) -> None:
    with opened(tmp_path) as data, Consumer(data, EARLIEST) as consumer:
        write(data.log(*T0), 0, 20)
        consumer.assign([T0])
        seen = []
        for record in consumer.records(0):
            seen.append(int(record.value))
            if record.offset == 5:
                seen += numbers(consumer.poll(max_records=2))
            if record.offset == 10:
                consumer.seek(T0, 15)
        assert seen == [*range(11), *range(15, 20)]


def test_control_records_are_not_for_applications(tmp_path: Path) -> None:
    with opened(tmp_path) as data:
        producer = data.coordinator.init_producer_id("id")
        for number, commit in enumerate([True, False, True, False]):
            data.coordinator.add_partitions("id", producer, [T0])
            builder = BatchBuilder(
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                base_sequence=2 * number,
                transactional=True,
            )
            for value in (2 * number, 2 * number + 1):
                builder.append(None, b"%d" % value, timestamp_ms=TIME_MS)
            data.log(*T0).append(builder.build())
            write(data.log(*T0), 100 + number, 1)
            data.coordinator.end_transaction("id", producer, commit)
        write(data.log(*T0), 200, 1)
        data.coordinator.add_partitions("id", producer, [T0])
        builder = BatchBuilder(
            producer_id=producer.producer_id, producer_epoch=producer.epoch, base_sequence=8, transactional=True
        )
        builder.append(None, b"8", timestamp_ms=TIME_MS)
        data.log(*T0).append(builder.build())
        write(data.log(*T0), 300, 1)
        with Consumer(data, EARLIEST) as everything, Consumer(data, EARLIEST, isolation_level="read_committed") as only:
            for consumer in (everything, only):
                consumer.assign([T0])
            assert numbers(everything.poll()) == [0, 1, 100, 2, 3, 101, 4, 5, 102, 6, 7, 103, 200, 8, 300]
            assert numbers(only.poll()) == [0, 1, 100, 101, 4, 5, 102, 103, 200]
            assert everything.end_offsets([T0]) == {T0: 19}
            assert only.end_offsets([T0]) == {T0: 17}
            assert only.position(T0) == 17
            data.coordinator.end_transaction("id", producer, False)
            assert numbers(only.poll()) == [300]
            assert only.position(T0) == 20
            assert only.poll() == []
        with Consumer(data, EARLIEST, isolation_level="read_committed") as columns:
            columns.assign([T0])
            batch = columns.poll_arrow()
            assert batch is not None
            assert [int(value) for value in batch.column("value").to_pylist()] == [
                0,
                1,
                100,
                101,
                4,
                5,
                102,
                103,
                200,
                300,
            ]


def test_a_transaction_that_was_decided_before_a_crash_is_seen(tmp_path: Path) -> None:
    with opened(tmp_path) as data, Consumer(data, EARLIEST, isolation_level="read_committed") as consumer:
        consumer.assign([T0])
        assert consumer.poll() == []


def test_deserializers_make_something_else_of_keys_and_values(tmp_path: Path) -> None:
    def read(value: bytes) -> int:
        return int(value)

    with (
        opened(tmp_path) as data,
        Consumer(data, EARLIEST, key_deserializer=bytes.decode, value_deserializer=read) as consumer,
    ):
        log = data.log(*T0)
        write(log, 0, 7)
        builder = BatchBuilder()
        builder.append(b"k", b"no number", timestamp_ms=TIME_MS)
        builder.append(b"k", None, timestamp_ms=TIME_MS)
        log.append(builder.build())
        consumer.assign([T0])
        records = consumer.poll()
        assert [record.key for record in records] == [None, "1", "2", "3", "4", None, "6"]
        assert [record.value for record in records] == list(range(7))
        for _ in range(2):
            with pytest.raises(DeserializationFailed, match="the value of the record at offset 7 of t-0") as failed:
                consumer.poll()
        assert (failed.value.partition, failed.value.offset) == (T0, 7)
        assert isinstance(failed.value.__cause__, ValueError)
        consumer.seek(T0, 8)
        [record] = consumer.poll()
        assert (record.key, record.value) == ("k", None)


def test_damage_is_told_after_all_that_is_before_it(tmp_path: Path) -> None:
    with opened(tmp_path) as data:
        write(data.log(*T0), 0, 30)
    [path] = (tmp_path / "t-0").glob("*" + LOG)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    with opened(tmp_path) as data:
        with Consumer(data, EARLIEST) as consumer:
            consumer.assign([T0])
            assert numbers(consumer.poll()) == list(range(10))
            with pytest.raises(ChecksumMismatch) as damage:
                consumer.poll()
            assert "t-0" in "".join(damage.value.__notes__)
            consumer.seek(T0, 20)
            assert numbers(consumer.poll()) == list(range(20, 30))
        with Consumer(data, EARLIEST, check_crcs=False) as consumer:
            consumer.assign([T0])
            assert len(consumer.poll()) == 30


def test_it_waits_for_what_comes(tmp_path: Path) -> None:
    with opened(tmp_path) as data, Consumer(data, EARLIEST) as consumer:
        consumer.assign([T0])
        writer = threading.Timer(0.02, lambda: write(data.log(*T0), 0, 3))
        writer.start()
        assert numbers(consumer.poll(timeout=30)) == [0, 1, 2]
        writer.join()
        threading.Timer(0.02, consumer.wakeup).start()
        with pytest.raises(WokenUp):
            consumer.poll(timeout=30)
        assert consumer.poll() == []


def test_it_waits_for_enough_but_not_for_ever(tmp_path: Path) -> None:
    config: dict[str, Any] = EARLIEST | {"fetch.min.bytes": 1_000, "fetch.max.wait.ms": 60_000}
    with opened(tmp_path) as data, Consumer(data, config) as consumer:
        consumer.assign([T0])
        write(data.log(*T0), 0, 3)
        assert consumer.poll() == []
        write(data.log(*T0), 3, 40)
        assert numbers(consumer.poll()) == list(range(43))
    with opened(tmp_path) as data, Consumer(data, config | {"fetch.max.wait.ms": 0}) as consumer:
        consumer.assign([T0])
        consumer.seek(T0, 42)
        assert numbers(consumer.poll()) == [42]


def test_batches_that_compaction_has_left_empty_are_passed_over(tmp_path: Path) -> None:
    from octavo.records import empty_batch

    with opened(tmp_path) as data, Consumer(data, EARLIEST) as consumer:
        log = data.log(*T0)
        log.append_as_follower(empty_batch(base_offset=0, last_offset=9, leader_epoch=0))
        consumer.assign([T0])
        assert consumer.poll() == []
        assert consumer.position(T0) == 10
        write(log, 10, 2)
        log.append_as_follower(empty_batch(base_offset=12, last_offset=19, leader_epoch=0))
        assert numbers(consumer.poll()) == [10, 11]
        assert consumer.position(T0) == 20


def test_a_watched_directory_is_read_and_nothing_is_committed(tmp_path: Path) -> None:
    with opened(tmp_path) as data:
        write(data.log(*T0), 0, 10)
        data.coordinator.commit_offsets("g", {T0: OffsetAndMetadata(4)})
        with (
            DataDirectory.open(tmp_path, read_only=True) as watched,
            Consumer(watched, EARLIEST, group_id="g") as consumer,
        ):
            consumer.subscribe(["t"])
            assert numbers(consumer.poll()) == list(range(4, 10))
            write(data.log(*T0), 10, 2)
            assert numbers(consumer.poll(timeout=30)) == [10, 11]
            data.coordinator.commit_offsets("g", {T0: OffsetAndMetadata(6)})
            assert consumer.committed([T0, T1]) == {T0: OffsetAndMetadata(6), T1: None}
            assert consumer.end_offsets([T0]) == {T0: 12}
            with pytest.raises(ConsumerError, match="only watched"):
                consumer.commit()


def test_a_watched_log_that_has_grown_is_not_taken_for_one_that_was_cut(tmp_path: Path) -> None:
    with (
        opened(tmp_path) as data,
        DataDirectory.open(tmp_path, read_only=True) as watched,
        Consumer(watched, EARLIEST) as consumer,
    ):
        write(data.log(*T0), 0, 5)
        consumer.assign([T0])
        assert numbers(consumer.poll()) == [0, 1, 2, 3, 4]
        write(data.log(*T0), 5, 5)
        consumer.seek_to_end()
        assert consumer.poll() == []
        write(data.log(*T0), 10, 5)
        consumer.seek(T0, 13)
        assert numbers(consumer.poll()) == [13, 14]


def test_a_topic_that_is_deleted_while_it_is_read_gives_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as data, Consumer(data, EARLIEST, fetch_min_bytes=2) as consumer:
        write(data.log(*T0), 0, 5)
        consumer.subscribe(["t"])
        assert consumer.position(T0) == consumer.position(T1) == 0
        log = data.log(*T0)

        def deleted(*_: object) -> Log:
            if "t" in data.topics:
                data.delete_topic("t")
            return log

        monkeypatch.setattr(data, "log", deleted)
        assert consumer.poll() == []
        assert consumer.assignment() == []


def test_nothing_is_committed_of_a_topic_that_is_deleted(tmp_path: Path) -> None:
    with opened(tmp_path) as data:
        write(data.log(*T0), 0, 5)
        with Consumer(data, EARLIEST, group_id="g") as consumer:
            consumer.subscribe(["t"])
            assert numbers(consumer.poll()) == [0, 1, 2, 3, 4]
            data.delete_topic("t")
            with pytest.raises(UnknownPartition):
                consumer.commit({T0: 5})
        data.create_topic("t", 2)
        assert data.coordinator.committed("g", [T0]) == {T0: None}


def test_a_reset_is_done_again_where_what_it_found_is_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as data, Consumer(data, EARLIEST) as consumer:
        log = data.log(*T0)
        write(log, 0, 50)
        consumer.assign([T0])
        assert consumer.position(T0) == 0
        log.delete_records_before(10)
        find = consumer._logs.start_offset

        def start_offset(partition: TopicPartition) -> int:
            found = find(partition)
            log.delete_records_before(20)
            return found

        monkeypatch.setattr(consumer._logs, "start_offset", start_offset)
        assert numbers(consumer.poll(max_records=2)) == [20, 21]


def test_without_a_group_nothing_is_remembered(tmp_path: Path) -> None:
    with opened(tmp_path) as data, Consumer(data, EARLIEST) as consumer:
        consumer.assign([T0])
        consumer.poll()
        for act in (consumer.commit, lambda: consumer.committed([T0])):
            with pytest.raises(ConsumerError, match=r"group\.id"):
                act()


def test_a_closed_consumer_does_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as data:
        consumer = Consumer(data, EARLIEST)
        consumer.assign([T0])
        consumer.close()
        consumer.close()
        with pytest.raises(ConsumerClosed, match="the consumer is closed"):
            consumer.poll()
        with pytest.raises(ConsumerClosed, match="the consumer is closed"):
            next(iter(consumer))


def test_a_consumer_of_a_closed_directory_says_so(tmp_path: Path) -> None:
    with opened(tmp_path) as data:
        write(data.log(*T0), 0, 30)
        consumer = Consumer(data, EARLIEST)
        consumer.assign([T0])
        assert len(consumer.poll()) == 30
        assert consumer.poll() == []
        waiting = threading.Timer(0.05, data.close)
        waiting.start()
        with pytest.raises(Closed, match="the data directory is closed"):
            consumer.poll(timeout=60)  # whoever waits is told, too
        waiting.join()
    for read in (
        consumer.poll,
        lambda: consumer.poll(max_records=1),
        consumer.poll_arrow,
        lambda: next(iter(consumer)),
    ):
        for _ in range(2):
            with pytest.raises(Closed, match="the data directory is closed"):
                read()
    consumer.close()


def test_what_closing_raises_does_not_replace_what_the_body_raised(tmp_path: Path) -> None:
    with opened(tmp_path) as data:
        write(data.log(*T0), 0, 30)
        consumer = Consumer(data, EARLIEST, group_id="g")
        consumer.assign([T0])
        consumer.poll()
        data.close()  # so that nothing can be committed
        with pytest.raises(ZeroDivisionError) as raised, consumer:
            raise ZeroDivisionError
        assert raised.value.__notes__ == ["closing failed as well: Closed: the data directory is closed"]


def test_records_come_as_arrow(tmp_path: Path) -> None:
    with opened(tmp_path) as data, Consumer(data, EARLIEST) as consumer:
        write(data.log(*T0), 0, 30)
        consumer.assign([T0])
        batch = consumer.poll_arrow(max_records=20)
        assert batch is not None
        assert batch.schema.names == [
            "topic",
            "partition",
            "offset",
            "timestamp",
            "timestampType",
            "key",
            "value",
            "headers",
        ]
        assert batch.column("topic").to_pylist() == ["t"] * 20
        assert batch.column("partition").to_pylist() == [0] * 20
        assert batch.column("offset").to_pylist() == list(range(20))
        assert consumer.position(T0) == 20
        assert numbers(consumer.poll(max_records=2)) == [20, 21]
        batch = consumer.poll_arrow()
        assert batch is not None
        assert batch.column("offset").to_pylist() == list(range(22, 30))
        assert consumer.poll_arrow() is None


def test_one_record_a_call_is_counted_one_by_one(tmp_path: Path) -> None:
    clock = Clock()
    with opened(tmp_path, clock) as data, Consumer(data, EARLIEST, group_id="g") as consumer:
        write(data.log(*T0), 0, 20)
        write(data.log(*T1), 100, 5)
        consumer.assign([T0, T1])
        seen = []
        for count in range(1, 4):
            seen += numbers(consumer.poll(max_records=1))
            assert consumer.position(T0) == count
        consumer.commit()
        assert consumer.committed([T0, T1]) == {T0: OffsetAndMetadata(3, "", 0), T1: None}
        seen += numbers(consumer.poll(max_records=1))
        clock.now_ms += 5_000
        seen += numbers(consumer.poll(max_records=1))
        assert consumer.committed([T0]) == {T0: OffsetAndMetadata(4, "", 0)}
        consumer.wakeup()
        with pytest.raises(WokenUp):
            consumer.poll(max_records=1)
        consumer.pause([T0])
        assert numbers(consumer.poll(max_records=1)) == [100]
        consumer.resume([T0])
        consumer.seek(T1, 5)
        while records := consumer.poll(max_records=1):
            seen += numbers(records)
        assert seen == list(range(20))
        assert consumer.poll(max_records=1) == []
        assert consumer.position(T0) == 20


def test_a_watched_directory_shows_committed_data_alone(tmp_path: Path) -> None:
    with opened(tmp_path) as data:
        producer = data.coordinator.init_producer_id("id")
        for number in range(4):
            data.coordinator.add_partitions("id", producer, [T0])
            builder = BatchBuilder(
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                base_sequence=number,
                transactional=True,
            )
            builder.append(None, b"%d" % number, timestamp_ms=TIME_MS)
            data.log(*T0).append(builder.build())
            if number < 3:
                data.coordinator.end_transaction("id", producer, number % 2 == 0)
        with (
            DataDirectory.open(tmp_path, read_only=True) as watched,
            Consumer(watched, EARLIEST, isolation_level="read_committed") as consumer,
        ):
            consumer.assign([T0])
            assert numbers(consumer.poll()) == [0, 2]
            assert consumer.end_offsets([T0]) == {T0: 6}
            data.coordinator.end_transaction("id", producer, True)
            assert numbers(consumer.poll(timeout=30)) == [3]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_records_of_old_formats_are_read(tmp_path: Path, magic: int, codec: Codec) -> None:
    with opened(tmp_path) as data, Consumer(data, EARLIEST) as consumer:
        builder = BatchBuilder(magic, codec=codec)
        for number in range(5):
            builder.append(None, b"%d" % number, timestamp_ms=TIME_MS)
        data.log(*T0).append_as_follower(builder.build())
        consumer.assign([T0])
        records = consumer.poll(max_records=3) + consumer.poll()
        assert numbers(records) == list(range(5))
        assert {record.timestamp_type for record in records} == {
            TimestampType.CREATE_TIME if magic else TimestampType.NONE
        }
        assert {record.leader_epoch for record in records} == {-1}
        assert consumer.position(T0) == 5


def test_a_batch_of_very_many_records_is_decoded_in_pieces(tmp_path: Path) -> None:
    count = 120_000
    empty = forge.record(None, None)
    batch = forge.batch(compress(Codec.ZSTD, empty * count), count=count, attributes=int(Codec.ZSTD), base_offset=0)
    assert len(batch) < 500
    (tmp_path / T0.folder).mkdir()
    (tmp_path / T0.folder / file_name(0, LOG)).write_bytes(batch)
    with DataDirectory.open(tmp_path, read_only=True) as data, Consumer(data, EARLIEST) as consumer:
        consumer.assign([T0])
        tracemalloc.start()
        try:
            assert len(consumer.poll()) == 500
            assert tracemalloc.get_traced_memory()[1] < 20 << 20
        finally:
            tracemalloc.stop()
        assert sum(len(consumer.poll(max_records=50_000)) for _ in range(3)) == count - 500
        assert consumer.poll() == []
