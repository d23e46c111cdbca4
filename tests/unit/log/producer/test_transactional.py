"""A transactional producer: the order of its calls, what readers see, and who is fenced off."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from octavo.errors import (
    AppendRefused,
    ErrorCode,
    ProducerFenced,
    TransactionAborted,
    TransactionFailed,
    WrongTransactionOrder,
)
from octavo.log import DataDirectory, Isolation, Producer
from octavo.log.coordinator import Coordinator, OffsetAndMetadata
from octavo.log.names import TopicPartition
from tests.clock import Clock
from tests.unit.log.producer.producing import TIME_MS, batches, directory


def transactional(data: DataDirectory, transactional_id: str = "mine", **settings: Any) -> Producer:
    return Producer(data, {"transactional.id": transactional_id}, clock=Clock(), **settings)


def committed(data: DataDirectory, partition: int = 0) -> list[bytes | None]:
    """What an application sees of a partition."""
    return [record.value for record in data.log("t", partition).reader(0, isolation=Isolation.READ_COMMITTED).records()]


def test_what_is_committed_is_seen_and_what_is_aborted_never(tmp_path: Path) -> None:
    with directory(tmp_path, partitions=2) as data, transactional(data) as producer:
        producer.init_transactions()
        for number in range(4):
            producer.begin_transaction()
            for partition in range(2):
                producer.send("t", b"%d" % number, partition=partition)
            producer.flush()
            assert committed(data) == [b"%d" % seen for seen in range(0, number, 2)]
            if number % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
        assert committed(data, 0) == committed(data, 1) == [b"0", b"2"]
        found = [batch for batch in batches(data) if not batch.is_control]
        assert all(batch.is_transactional for batch in found)
        assert [batch.base_sequence for batch in found] == [0, 1, 2, 3]


def test_a_commit_appends_what_was_sent_and_an_abort_drops_what_was_not_appended(tmp_path: Path) -> None:
    with directory(tmp_path) as data, transactional(data) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        kept = producer.send("t", b"kept")
        producer.commit_transaction()
        assert kept.done()
        assert kept.result().offset == 0
        producer.begin_transaction()
        dropped = producer.send("t", b"dropped")
        producer.abort_transaction()
        assert isinstance(dropped.exception(), TransactionAborted)
        assert committed(data) == [b"kept"]


def test_a_transaction_of_nothing_can_be_ended(tmp_path: Path) -> None:
    with directory(tmp_path) as data, transactional(data) as producer:
        producer.init_transactions()
        for end in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction):
            producer.begin_transaction()
            end()
        assert data.log("t", 0).end_offset == 0


INIT: Callable[[Producer], object] = Producer.init_transactions
BEGIN: Callable[[Producer], object] = Producer.begin_transaction
COMMIT: Callable[[Producer], object] = Producer.commit_transaction
ABORT: Callable[[Producer], object] = Producer.abort_transaction


def send(producer: Producer) -> object:
    return producer.send("t", b"value")


def send_offsets(producer: Producer) -> None:
    producer.send_offsets_to_transaction({TopicPartition("t", 0): 1}, "group")


@pytest.mark.parametrize(
    ("before", "call", "message"),
    [
        ([], BEGIN, "begin_transaction cannot be done before init_transactions: call init_transactions first"),
        ([], COMMIT, "commit_transaction cannot be done before init_transactions: call init_transactions first"),
        ([], send, "send cannot be done before init_transactions: call init_transactions first"),
        ([INIT], INIT, "init_transactions cannot be done outside a transaction: it is done once, at first"),
        ([INIT], COMMIT, "commit_transaction cannot be done outside a transaction: call begin_transaction first"),
        ([INIT], ABORT, "abort_transaction cannot be done outside a transaction: call begin_transaction first"),
        ([INIT], send, "send cannot be done outside a transaction: call begin_transaction first"),
        ([INIT], send_offsets, "send_offsets_to_transaction cannot be done outside a transaction"),
        ([INIT, BEGIN], BEGIN, "begin_transaction cannot be done in a transaction: end the one that is open first"),
        ([INIT, BEGIN, send, COMMIT], send, "send cannot be done outside a transaction"),
    ],
)
def test_calls_out_of_order_are_refused(
    tmp_path: Path, before: list[Callable[[Producer], object]], call: Callable[[Producer], object], message: str
) -> None:
    with directory(tmp_path) as data, transactional(data) as producer:
        for each in before:
            each(producer)
        with pytest.raises(WrongTransactionOrder) as refused:
            call(producer)
        assert message in str(refused.value)
        assert refused.value.code == ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize("call", [INIT, BEGIN, COMMIT, ABORT, send_offsets])
def test_a_producer_without_a_transactional_id_has_no_transactions(
    tmp_path: Path, call: Callable[[Producer], object]
) -> None:
    with (
        directory(tmp_path) as data,
        Producer(data, clock=Clock()) as producer,
        pytest.raises(WrongTransactionOrder, match=r"give it a transactional\.id"),
    ):
        call(producer)


def test_who_comes_later_with_the_same_id_fences_off_who_was_before(tmp_path: Path) -> None:
    with directory(tmp_path) as data, transactional(data) as old, transactional(data) as new:
        old.init_transactions()
        old.begin_transaction()
        old.send("t", b"old").result()
        new.init_transactions()  # and what was open is aborted
        with pytest.raises(ProducerFenced):
            old.commit_transaction()
        for call in (ABORT, COMMIT, BEGIN, send, send_offsets):
            with pytest.raises(ProducerFenced):
                call(old)
        new.begin_transaction()
        new.send("t", b"new")
        new.commit_transaction()
        assert committed(data) == [b"new"]


def test_who_was_fenced_off_finds_out_when_it_sends(tmp_path: Path) -> None:
    with directory(tmp_path) as data, transactional(data) as old, transactional(data) as new:
        old.init_transactions()
        new.init_transactions()
        old.begin_transaction()
        future = old.send("t", b"old")
        with pytest.raises(ProducerFenced):
            future.result()
        with pytest.raises(ProducerFenced):
            old.send("t", b"old")
        assert data.log("t", 0).end_offset == 0


def test_what_the_log_refuses_leaves_only_an_abort(tmp_path: Path) -> None:
    with directory(tmp_path, message_timestamp_after_max_ms="1000") as data, transactional(data) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"good").result()
        assert isinstance(producer.send("t", b"late", timestamp_ms=2 * TIME_MS).exception(), AppendRefused)
        for call in (send, send_offsets, COMMIT):
            with pytest.raises(TransactionFailed, match="can only be aborted") as failed:
                call(producer)
            assert isinstance(failed.value.__cause__, AppendRefused)
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send("t", b"next")
        producer.commit_transaction()
        assert committed(data) == [b"next"]


def test_what_is_refused_at_the_commit_fails_it(tmp_path: Path) -> None:
    with directory(tmp_path, message_timestamp_after_max_ms="1000") as data, transactional(data) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"late", timestamp_ms=2 * TIME_MS)
        with pytest.raises(TransactionFailed):
            producer.commit_transaction()
        producer.abort_transaction()
        assert committed(data) == []


def test_offsets_are_committed_with_the_transaction(tmp_path: Path) -> None:
    partition = TopicPartition("t", 0)
    with directory(tmp_path) as data, transactional(data) as producer:
        coordinator = Coordinator.of(data)
        producer.init_transactions()
        for offset, end in ((5, producer.abort_transaction), (7, producer.commit_transaction)):
            producer.begin_transaction()
            producer.send_offsets_to_transaction({partition: OffsetAndMetadata(offset, "note")}, "group")
            assert coordinator.committed("group", [partition])[partition] is None
            end()
        assert coordinator.committed("group", [partition])[partition] == OffsetAndMetadata(7, "note")


def test_closing_aborts_what_is_open(tmp_path: Path) -> None:
    with directory(tmp_path) as data:
        with transactional(data) as producer:
            producer.init_transactions()
            producer.begin_transaction()
            producer.send("t", b"1").result()
        log = data.log("t", 0)
        assert log.last_stable_offset == log.end_offset == 2
        assert committed(data) == []


def test_two_producers_do_not_disturb_each_other(tmp_path: Path) -> None:
    with directory(tmp_path) as data, transactional(data, "a") as a, transactional(data, "b") as b:
        for producer in (a, b):
            producer.init_transactions()
            producer.begin_transaction()
        a.send("t", b"a1").result()
        b.send("t", b"b1").result()
        a.send("t", b"a2").result()
        b.commit_transaction()
        assert committed(data) == []  # that of a was open before it
        a.abort_transaction()
        assert committed(data) == [b"b1"]
