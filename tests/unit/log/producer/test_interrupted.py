"""What a producer does after an interrupt, such as Ctrl-C, in the middle of a call: nothing is lost, nothing doubled.

`tests/interrupts` has interrupts come at any line. Here each comes at the place that has caused a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from octavo.errors import AppendRefused, ErrorCode, WrongTransactionOrder, WrongTransactionState
from octavo.log import Log, Producer
from octavo.log.coordinator import Coordinator, OffsetAndMetadata
from octavo.log.names import TopicPartition
from octavo.log.producer.identity import Identity
from octavo.log.writing.log_state import LogState
from octavo.log.writing.unfinished import ChangeNote
from tests.unit.log.producer.producing import batches, directory, producing, values
from tests.unit.log.producer.test_transactional import committed, transactional

PARTITION = TopicPartition("t", 0)


@contextmanager
def interrupted(where: type, name: str, *, is_done: bool = False) -> Iterator[None]:
    """Have the next call of a method raise `KeyboardInterrupt`, before or after it does anything."""
    method: Callable[..., Any] = getattr(where, name)

    def interrupt(*arguments: Any, **named: Any) -> None:
        patched.undo()
        if is_done:
            method(*arguments, **named)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(where, name, interrupt)
        yield


@contextmanager
def ctrl_c(where: type, name: str, *, is_done: bool = False) -> Iterator[None]:
    """Expect the interrupt in the body."""
    with interrupted(where, name, is_done=is_done), pytest.raises(KeyboardInterrupt):
        yield


@pytest.mark.parametrize("is_done", [False, True])
def test_1_1_a_transaction_after_an_interrupted_one_is_not_taken_for_its_duplicate(
    tmp_path: Path, is_done: bool
) -> None:
    with directory(tmp_path) as data, transactional(data) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"dropped")
        with ctrl_c(Identity, "advance", is_done=is_done):
            producer.commit_transaction()
        producer.abort_transaction()
        producer.begin_transaction()
        future = producer.send("t", b"kept")
        producer.commit_transaction()
        assert future.result().offset == 2
        assert committed(data) == [b"kept"]
        dropped, _, kept, _ = batches(data)
        assert kept.producer_id == dropped.producer_id
        assert kept.producer_epoch == dropped.producer_epoch + 1


def test_1_1_an_abort_that_is_interrupted_as_well_still_takes_another_epoch(tmp_path: Path) -> None:
    with directory(tmp_path) as data, transactional(data) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"dropped")
        with ctrl_c(Identity, "advance"):
            producer.flush()
        with ctrl_c(Coordinator, "end_transaction", is_done=True):
            producer.abort_transaction()
        with ctrl_c(Coordinator, "init_producer_id", is_done=True):
            producer.abort_transaction()
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send("t", b"kept")
        producer.commit_transaction()
        assert committed(data) == [b"kept"]


def test_1_1_what_was_dropped_by_an_interrupted_abort_cannot_be_missing_in_a_commit(tmp_path: Path) -> None:
    with directory(tmp_path) as data, transactional(data) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"appended").result()
        producer.send("t", b"dropped")
        with ctrl_c(Coordinator, "end_transaction"):
            producer.abort_transaction()
        for call in (producer.commit_transaction, lambda: producer.send("t", b"more")):
            with pytest.raises(WrongTransactionOrder, match="call abort_transaction again"):
                call()
        producer.abort_transaction()
        assert committed(data) == []


@pytest.mark.parametrize("is_done", [False, True])
def test_1_1_offsets_of_an_aborted_transaction_do_not_go_with_the_next_one(tmp_path: Path, is_done: bool) -> None:
    with directory(tmp_path) as data, transactional(data) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        with ctrl_c(Coordinator, "commit_offsets", is_done=is_done):
            producer.send_offsets_to_transaction({PARTITION: OffsetAndMetadata(5)}, "group")
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send("t", b"kept")
        producer.commit_transaction()
        assert Coordinator.of(data).committed("group", [PARTITION])[PARTITION] is None
        assert committed(data) == [b"kept"]


@pytest.mark.parametrize("is_done", [False, True])
def test_1_1_a_batch_that_was_appended_alone_is_not_appended_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_done: bool
) -> None:
    append = Log.append
    calls = 0

    def refusing(self: Log, *arguments: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise AppendRefused(ErrorCode.RECORD_LIST_TOO_LARGE, "all of them together")
        return append(self, *arguments, **more)

    monkeypatch.setattr(Log, "append", refusing)
    with producing(tmp_path, batch_size=100) as (data, producer):
        futures = [producer.send("t", b"%d" % number * 60) for number in range(4)]
        with ctrl_c(Identity, "advance", is_done=is_done):
            producer.flush()
        producer.flush()
        assert values(data) == [b"%d" % number * 60 for number in range(4)]
        assert [future.result().offset for future in futures] == [0, 1, 2, 3]


def test_1_1_halves_of_a_batch_that_was_too_large_are_not_appended_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = Log.append

    def refusing(self: Log, records: Any, **more: Any) -> Any:
        if len(records) > 200:
            raise AppendRefused(ErrorCode.MESSAGE_TOO_LARGE, "too large")
        return append(self, records, **more)

    monkeypatch.setattr(Log, "append", refusing)
    with producing(tmp_path) as (data, producer):
        futures = [producer.send("t", b"%d" % number * 60) for number in range(4)]
        with ctrl_c(Identity, "advance", is_done=True):
            producer.flush()
        producer.flush()
        assert values(data) == [b"%d" % number * 60 for number in range(4)]
        assert [future.result().offset for future in futures] == [0, 1, 2, 3]


def test_1_1_an_append_that_the_log_will_take_back_does_not_count_as_done(tmp_path: Path) -> None:
    """Of two interrupts the second keeps the log from undoing what the first one broke off."""
    with producing(tmp_path) as (data, producer):
        producer.send("t", b"first").result()
        future = producer.send("t", b"second")
        with interrupted(ChangeNote, "settle"), ctrl_c(LogState, "write", is_done=True):
            producer.flush()
        producer.flush()
        assert future.result().offset == 1
        producer.send("t", b"third").result()
        assert values(data) == [b"first", b"second", b"third"]


def end_interrupted(producer: Producer, *, is_done: bool) -> None:
    """Interrupt a commit, before or after the coordinator has decided."""
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("t", b"1")
    with ctrl_c(Coordinator, "end_transaction", is_done=is_done):
        producer.commit_transaction()


@pytest.mark.parametrize("is_done", [False, True])
def test_2_5_closing_after_an_interrupted_commit_hides_nothing(tmp_path: Path, is_done: bool) -> None:
    with directory(tmp_path) as data:
        producer = transactional(data)
        end_interrupted(producer, is_done=is_done)
        producer.close()
        assert committed(data) == ([b"1"] if is_done else [])
        log = data.log("t", 0)
        assert log.last_stable_offset == log.end_offset


@pytest.mark.parametrize("is_done", [False, True])
def test_2_5_an_interrupted_commit_can_be_repeated(tmp_path: Path, is_done: bool) -> None:
    with directory(tmp_path) as data, transactional(data) as producer:
        end_interrupted(producer, is_done=is_done)
        with pytest.raises(WrongTransactionOrder, match="call commit_transaction again, or abort_transaction"):
            producer.send("t", b"more")
        producer.commit_transaction()
        assert committed(data) == [b"1"]


@pytest.mark.parametrize("is_done", [False, True])
def test_2_5_an_abort_says_whether_the_interrupted_commit_was_decided(tmp_path: Path, is_done: bool) -> None:
    with directory(tmp_path) as data, transactional(data) as producer:
        end_interrupted(producer, is_done=is_done)
        if is_done:
            with pytest.raises(WrongTransactionState, match="its commit was decided before it was interrupted"):
                producer.abort_transaction()
        else:
            producer.abort_transaction()
        producer.begin_transaction()
        producer.send("t", b"2")
        producer.commit_transaction()
        assert committed(data) == ([b"1", b"2"] if is_done else [b"2"])


def test_2_5_an_abort_says_so_wherever_the_commit_was_interrupted_after_it_was_decided(tmp_path: Path) -> None:
    """A signal may be handled after any call, such as that which forgets the partitions."""

    class Interrupting(set[TopicPartition]):
        def clear(self) -> None:
            super().clear()
            raise KeyboardInterrupt

    with directory(tmp_path) as data, transactional(data) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"1")
        transaction = producer._transactions
        assert transaction is not None
        transaction._added = Interrupting(transaction._added)
        with pytest.raises(KeyboardInterrupt):
            producer.commit_transaction()
        transaction._added = set()
        with pytest.raises(WrongTransactionState, match="its commit was decided before it was interrupted"):
            producer.abort_transaction()
        assert committed(data) == [b"1"]
