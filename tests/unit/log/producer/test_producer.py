"""Records on their way into batches, and what their futures tell."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from octavo.errors import (
    AppendRefused,
    Closed,
    ErrorCode,
    InvalidInput,
    LogError,
    ProducerClosed,
    RecordTooLarge,
    TransactionAborted,
    UnknownPartition,
)
from octavo.log import DataDirectory, Producer
from octavo.log.producer import RecordMetadata, SendFuture
from octavo.records import Codec
from tests.clock import Clock
from tests.unit.log.producer.producing import TIME_MS, batches, directory, producing, records, values


@pytest.mark.usefixtures("each_kind_of_kernel")
def test_a_record_is_in_the_log_as_it_was_sent(tmp_path: Path) -> None:
    sent: list[tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]] = [
        (b"key", b"value", ()),
        (None, b"value", ()),
        (b"", b"", ()),
        (b"key", None, ()),
        (None, None, (("header", b"1"), ("header", None), ("", b""), ("ümlaut", bytes(200)))),
        (b"key", bytes(10_000), ()),
        (bytes(300), b"value", ()),
    ]
    with producing(tmp_path) as (data, producer):
        for key, value, headers in sent:
            producer.send("t", value, key, headers=headers)
        producer.flush()
        assert [(record.key, record.value, record.headers) for record in records(data)] == sent
        assert {record.timestamp_ms for record in records(data)} == {TIME_MS}


@pytest.mark.usefixtures("each_kind_of_kernel")
def test_headers_stay_with_their_records_when_these_go_to_several_partitions(tmp_path: Path) -> None:
    with producing(tmp_path, partitions=3) as (data, producer):
        futures = [
            producer.send("t", b"%d" % number, partition=number % 3, headers=[("n", b"%d" % number)] * (number % 4))
            for number in range(30)
        ]
        for number, future in enumerate(futures):
            told = future.result()
            record = records(data, told.partition)[told.offset]
            assert (record.value, record.headers) == (b"%d" % number, (("n", b"%d" % number),) * (number % 4))


def test_bytes_of_any_kind_are_taken_as_they_are_at_that_moment(tmp_path: Path) -> None:
    mine = bytearray(b"before")
    with producing(tmp_path) as (data, producer):
        producer.send("t", mine, memoryview(mine)[:3])
        mine[:] = b"after!"
        producer.flush()
        assert [(record.key, record.value) for record in records(data)] == [(b"bef", b"before")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"value": "text"}, "a record's value must be bytes or None, not str"),
        ({"value": b"", "key": 7}, "a record's key must be bytes or None, not int"),
        ({"value": b"", "timestamp_ms": -1}, "timestamp_ms is -1"),
        ({"value": b"", "headers": [("name", "text")]}, "a record's header must be bytes or None, not str"),
        ({"value": b"", "headers": [(b"name", b"")]}, "a header's name must be a text, not bytes"),
        ({"value": b"", "headers": [b"abc"]}, "a header is a pair"),
    ],
)
def test_what_cannot_be_a_record_is_refused_at_once(tmp_path: Path, arguments: dict[str, Any], message: str) -> None:
    with producing(tmp_path) as (data, producer):
        with pytest.raises(InvalidInput, match=message):
            producer.send("t", **arguments)
        producer.flush()
        assert values(data) == []


def test_serializers_make_bytes_of_anything(tmp_path: Path) -> None:
    with producing(tmp_path, key_serializer=str.encode, value_serializer=lambda number: b"%d" % number) as (
        data,
        producer,
    ):
        producer.send("t", 7, "key")
        producer.flush()
        assert [(record.key, record.value) for record in records(data)] == [(b"key", b"7")]


def test_a_timestamp_may_be_given(tmp_path: Path) -> None:
    with producing(tmp_path) as (data, producer):
        given = producer.send("t", b"1", timestamp_ms=5)
        now = producer.send("t", b"2")
        assert (given.result().timestamp_ms, now.result().timestamp_ms) == (5, TIME_MS)
        assert [record.timestamp_ms for record in records(data)] == [5, TIME_MS]


def test_the_clock_of_the_wall_gives_milliseconds(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path / "data") as data, Producer(data) as producer:
        data.create_topic("t")
        told = producer.send("t", b"").result()
        assert TIME_MS < told.timestamp_ms < 4 * TIME_MS


def test_where_the_topic_has_the_time_of_appending_the_future_has_it_too(tmp_path: Path) -> None:
    with directory(tmp_path, message_timestamp_type="LogAppendTime") as data, Producer(data, clock=Clock()) as producer:
        assert producer.send("t", b"1", timestamp_ms=5).result().timestamp_ms == TIME_MS


# ------------------------------------------------------------------------------------------------------------- futures


def test_a_future_is_done_when_the_record_has_been_appended(tmp_path: Path) -> None:
    with producing(tmp_path) as (data, producer):
        first, second = (producer.send("t", value) for value in (b"1", b"2"))
        assert not first.done()
        assert repr(first) == "<SendFuture: waits>"
        assert data.log("t", 0).end_offset == 0
        producer.flush()
        assert first.done()
        assert second.done()
        assert second.result() == RecordMetadata("t", 0, 1, TIME_MS)
        assert repr(second) == f"<SendFuture: {second.result()}>"
        assert second.exception() is None
        assert not second.cancelled()


def test_who_asks_a_future_does_not_wait_for_lingering(tmp_path: Path) -> None:
    with producing(tmp_path, linger_ms=1_000_000) as (_, producer):
        assert producer.send("t", b"1").result(timeout=0).offset == 0


def test_callbacks_are_called_once_with_the_future(tmp_path: Path) -> None:
    called: list[tuple[str, SendFuture]] = []
    with producing(tmp_path) as (_, producer):
        first, second = (producer.send("t", value) for value in (b"1", b"2"))
        second.add_done_callback(lambda future: called.append(("second", future)))
        first.add_done_callback(lambda future: called.append(("first", future)))
        assert called == []
        producer.flush()
        assert sorted(called, key=lambda call: call[0]) == [("first", first), ("second", second)]
        first.add_done_callback(lambda future: called.append(("again", future)))
        producer.flush()
        assert called[2:] == [("again", first)]


def test_a_callback_may_send_and_ask(tmp_path: Path) -> None:
    with producing(tmp_path) as (data, producer):
        producer.send("t", b"1").add_done_callback(lambda _: producer.send("t", b"2").result())
        producer.flush()
        assert values(data) == [b"1", b"2"]


def test_a_callback_that_fails_harms_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", told.append)
    with producing(tmp_path) as (data, producer):
        producer.send("t", b"1").add_done_callback(lambda _: 1 // 0)
        producer.send("t", b"2")
        producer.flush()
        assert values(data) == [b"1", b"2"]
        assert [each.exc_type for each in told] == [ZeroDivisionError]


def test_on_delivery_gets_the_metadata_once_by_whoever_appends(tmp_path: Path) -> None:
    told: list[tuple[BaseException | None, RecordMetadata | None, threading.Thread]] = []

    def tell(error: BaseException | None, metadata: RecordMetadata | None) -> None:
        told.append((error, metadata, threading.current_thread()))

    with producing(tmp_path) as (data, producer):
        producer.send("t", b"0")
        futures = [producer.send("t", b"%d" % number, on_delivery=tell) for number in range(1, 4)]
        assert told == []
        thread = threading.Thread(target=producer.flush)
        thread.start()
        thread.join()
        producer.flush()
        assert told == [(None, future.result(), thread) for future in futures]
        assert values(data) == [b"0", b"1", b"2", b"3"]


def test_on_delivery_gets_the_error_of_a_record_that_was_not_appended(tmp_path: Path) -> None:
    told: list[tuple[BaseException | None, RecordMetadata | None]] = []
    with producing(tmp_path, max_request_size=2 << 20) as (_, producer):
        good = producer.send("t", b"1", on_delivery=lambda *given: told.append(given))
        bad = producer.send("t", bytes(1_100_000), on_delivery=lambda *given: told.append(given))
        producer.flush()
        assert isinstance(bad.exception(), AppendRefused)
        assert told == [(None, good.result()), (bad.exception(), None)]


def test_on_delivery_is_told_when_the_producer_is_closed_or_the_transaction_aborted(tmp_path: Path) -> None:
    told: list[tuple[BaseException | None, RecordMetadata | None]] = []
    with producing(tmp_path, transactional_id="id") as (_, producer):
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"1", on_delivery=lambda *given: told.append(given))
        producer.abort_transaction()
        assert [type(error) for error, _ in told] == [TransactionAborted]
        producer.begin_transaction()
        producer.send("t", b"2", on_delivery=lambda *given: told.append(given))
    assert [type(error) for error, _ in told] == [TransactionAborted] * 2


def test_an_on_delivery_that_fails_harms_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", told.append)
    with producing(tmp_path) as (data, producer):
        producer.send("t", b"1", on_delivery=lambda *_: 1 // 0)
        producer.send("t", b"2", on_delivery=lambda: None)  # type: ignore[arg-type, misc]  # that is the point
        producer.flush()
        assert values(data) == [b"1", b"2"]
        assert [each.exc_type for each in told] == [ZeroDivisionError, TypeError]


def test_an_interrupt_in_a_callback_keeps_the_others_for_later(tmp_path: Path) -> None:
    told: list[int] = []

    def tell(number: int) -> None:
        told.append(number)
        if number == 1:
            raise KeyboardInterrupt

    with producing(tmp_path) as (_, producer):
        for number in range(4):
            producer.send("t", b"", on_delivery=lambda *_, number=number: tell(number))
        with pytest.raises(KeyboardInterrupt):
            producer.flush()
        assert told == [0, 1]
        producer.flush()
        assert told == [0, 1, 2, 3]


# ------------------------------------------------------------------------------------------------------------- batches


@pytest.mark.usefixtures("each_kind_of_kernel")
def test_a_batch_is_at_most_as_large_as_it_may_be_and_nearly_that(tmp_path: Path) -> None:
    with producing(tmp_path, batch_size=2000) as (data, producer):
        for _ in range(100):
            producer.send("t", bytes(100))
        producer.flush()
        sizes = [batch.size for batch in batches(data)]
        assert all(1850 < size <= 2000 for size in sizes[:-1])
        assert len(values(data)) == 100


def test_a_record_larger_than_a_batch_has_one_of_its_own(tmp_path: Path) -> None:
    with producing(tmp_path, batch_size=500) as (data, producer):
        for size in (100, 5000, 100, 100):
            producer.send("t", bytes(size))
        producer.flush()
        assert [batch.count for batch in batches(data)] == [1, 1, 2]


def test_batches_of_no_size_have_one_record_each(tmp_path: Path) -> None:
    with producing(tmp_path, batch_size=0) as (data, producer):
        for _ in range(3):
            producer.send("t", b"value")
        producer.flush()
        assert [batch.count for batch in batches(data)] == [1, 1, 1]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_batches_are_compressed_as_asked_for(tmp_path: Path, codec: str) -> None:
    with producing(tmp_path, compression_type=codec) as (data, producer):
        for number in range(1000):
            producer.send("t", b"%d" % number * 20)
        producer.flush()
        assert {batch.codec for batch in batches(data)} == {Codec[codec.upper()]}
        assert values(data) == [b"%d" % number * 20 for number in range(1000)]


def test_compressed_batches_hold_more_once_it_is_known_how_well_they_are_compressed(tmp_path: Path) -> None:
    with producing(tmp_path, compression_type="zstd", batch_size=2000) as (data, producer):
        for _ in range(20_000):
            producer.send("t", bytes(100))
        producer.flush()
        counts = [batch.count or 0 for batch in batches(data)]
        assert counts[0] < 20
        assert max(counts) > 100
        assert max(batch.size for batch in batches(data)) <= 2000


def test_what_turns_out_too_large_for_the_topic_is_cut_in_two(tmp_path: Path) -> None:
    with directory(tmp_path, max_message_bytes="1000") as data, Producer(data, clock=Clock()) as producer:
        futures = [producer.send("t", b"%d" % number * 40) for number in range(50)]
        producer.flush()
        assert [future.result().offset for future in futures] == list(range(50))
        assert values(data) == [b"%d" % number * 40 for number in range(50)]
        assert max(batch.size for batch in batches(data)) <= 1000
        assert [batch.base_sequence for batch in batches(data)] == [batch.base_offset for batch in batches(data)]


def test_a_record_that_no_request_may_hold_is_refused_at_once(tmp_path: Path) -> None:
    with producing(tmp_path, max_request_size=1000) as (data, producer):
        with pytest.raises(RecordTooLarge) as refused:
            producer.send("t", bytes(1000))
        assert refused.value.code == ErrorCode.MESSAGE_TOO_LARGE
        assert "max.request.size is 1,000" in str(refused.value)
        producer.send("t", bytes(900))
        producer.flush()
        assert len(values(data)) == 1


def test_a_record_larger_than_all_memory_is_refused_at_once(tmp_path: Path) -> None:
    with (
        producing(tmp_path, buffer_memory=1000) as (_, producer),
        pytest.raises(RecordTooLarge, match=r"buffer\.memory"),
    ):
        producer.send("t", bytes(2000))


@pytest.mark.parametrize("size", [10, 1000, 100_000])
def test_no_more_waits_than_memory_is_given(tmp_path: Path, size: int) -> None:
    limit = 1 << 20
    with producing(tmp_path, buffer_memory=limit, linger_ms=1_000_000, batch_size=1 << 14) as (_, producer):
        futures = [producer.send("t", bytes(size)) for _ in range(4 * limit // size)]
        waiting = sum(size for future in futures if not future.done())
        assert waiting <= limit


# ------------------------------------------------------------------------------------------------------------ failures


def test_what_the_log_refuses_its_future_raises(tmp_path: Path) -> None:
    with directory(tmp_path, message_timestamp_after_max_ms="0") as data, Producer(data, clock=Clock()) as producer:
        late = producer.send("t", b"1", timestamp_ms=2 * TIME_MS)
        with pytest.raises(AppendRefused) as refused:
            late.result()
        assert refused.value.code == ErrorCode.INVALID_TIMESTAMP
        assert late.exception() is refused.value
        assert late.done()
        assert producer.send("t", b"2").result().offset == 0


def test_only_the_batch_at_fault_is_refused(tmp_path: Path) -> None:
    settings = {"batch.size": 300, "linger.ms": 1_000_000}
    with (
        directory(tmp_path, message_timestamp_after_max_ms="0") as data,
        Producer(data, settings, clock=Clock()) as producer,
    ):
        late = {12, 13}
        futures = [
            producer.send("t", bytes(100), timestamp_ms=2 * TIME_MS if number in late else None) for number in range(40)
        ]
        producer.flush()
        refused = [number for number, future in enumerate(futures) if future.exception() is not None]
        assert refused == [12, 13]
        assert [batch.base_sequence for batch in batches(data)] == [batch.base_offset for batch in batches(data)]
        offsets = [future.result().offset for number, future in enumerate(futures) if number not in late]
        assert offsets == list(range(38))


def test_an_unknown_topic_is_refused_at_once(tmp_path: Path) -> None:
    with producing(tmp_path) as (_, producer):
        with pytest.raises(UnknownPartition, match="there is no topic 'elsewhere'"):
            producer.send("elsewhere", b"1")
        with pytest.raises(InvalidInput, match="a topic's name is a text, not int"):
            producer.send(7, b"1")  # type: ignore[arg-type]  # what is refused is the point


def test_what_was_sent_to_a_topic_that_is_deleted_fails(tmp_path: Path) -> None:
    with producing(tmp_path) as (data, producer):
        future = producer.send("t", b"1")
        data.delete_topic("t")
        with pytest.raises(UnknownPartition):
            future.result()


def test_a_closed_producer_has_appended_everything_and_takes_no_more(tmp_path: Path) -> None:
    with directory(tmp_path) as data:
        producer = Producer(data, {"linger.ms": 1_000_000})
        future = producer.send("t", b"1")
        producer.close()
        producer.close()
        assert future.result().offset == 0
        with pytest.raises(ProducerClosed):
            producer.send("t", b"2")
        producer.flush()
        assert values(data) == [b"1"]


def test_a_closed_directory_takes_no_more(tmp_path: Path) -> None:
    with directory(tmp_path) as data:
        producer = Producer(data, clock=Clock())
        producer.send("t", b"1").result()
        future = producer.send("t", b"2")
    with pytest.raises(LogError, match="closed"):
        future.result()
    for _ in range(2):
        with pytest.raises(Closed, match="the data directory is closed"):
            producer.send("t", b"3")
    producer.close()
    with pytest.raises(ProducerClosed, match="the producer is closed"):
        producer.send("t", b"3")


def test_what_closing_raises_does_not_replace_what_the_body_raised(tmp_path: Path) -> None:
    with directory(tmp_path) as data:
        producer = Producer(data, {"transactional.id": "mine"})
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"1").result()
        data.close()  # so that the transaction cannot be aborted
        with pytest.raises(ZeroDivisionError) as raised, producer:
            raise ZeroDivisionError
        assert raised.value.__notes__ == ["closing failed as well: Closed: __transaction_state-0 is closed"]


def test_what_closing_raises_is_raised_where_the_body_did_not(tmp_path: Path) -> None:
    with directory(tmp_path) as data:
        producer = Producer(data, {"transactional.id": "mine"})
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"1").result()
        with pytest.raises(Closed, match="__transaction_state-0 is closed"), producer:
            data.close()


def test_partitions_of_a_topic_can_be_asked_for(tmp_path: Path) -> None:
    with producing(tmp_path, partitions=3) as (_, producer):
        assert [partition.partition for partition in producer.partitions_for("t")] == [0, 1, 2]


def test_a_producer_brings_numpy_only_when_it_appends() -> None:
    script = "import sys, octavo.log.producer; print({'numpy', 'numba', 'pyarrow'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_a_topic_that_was_made_anew_has_the_partitions_that_it_has_now(tmp_path: Path) -> None:
    with producing(tmp_path, partitions=3, choose=lambda count: count - 1) as (data, producer):
        assert producer.send("t", b"1").result().partition == 2
        data.delete_topic("t")
        data.create_topic("t", 2)
        assert isinstance(producer.send("t", b"2").exception(), UnknownPartition)
        assert producer.send("t", b"3").result().partition == 1
        with pytest.raises(InvalidInput, match="it has 2"):
            producer.send("t", b"4", partition=2)
