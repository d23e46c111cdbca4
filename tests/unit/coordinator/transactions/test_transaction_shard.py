"""Transactions: identities, fencing, endings of both versions, time-outs, and restarts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import pytest

from octavo.coordinator.shard import Now, Origin, Producer
from octavo.coordinator.transactions.config import TransactionConfig
from octavo.coordinator.transactions.partitions import partitions_of
from octavo.coordinator.transactions.requests import (
    NO_PRODUCER,
    AddRequest,
    EndAnswer,
    EndRequest,
    InitAnswer,
    InitRequest,
    WriteMarkers,
)
from octavo.coordinator.transactions.transaction_shard import TransactionShard
from octavo.errors import ErrorCode
from octavo.schemas.transaction_state import (
    TransactionLogKey,
    TransactionLogValue,
    TransactionState,
    read_transaction_key,
)
from octavo.schemas.versioned import read_value

ID = "mover"
PARTITIONS = [("t", 0), ("t", 1)]
FENCED, WAIT, STATE = ErrorCode.PRODUCER_FENCED, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.INVALID_TXN_STATE
OTHER_ID = ErrorCode.INVALID_PRODUCER_ID_MAPPING


class Running:
    """A shard with a log in memory. Markers are written when a test says so."""

    def __init__(self, **config: Any) -> None:
        self.config = TransactionConfig(**config)
        self.ids = count(1000)
        self.log: list[tuple[bytes, bytes | None]] = []
        self.markers: list[WriteMarkers] = []
        self.now_ms = 1_000_000
        self.shard = self._new()
        self.do(lambda ticket: self.shard.loaded())

    def _new(self) -> TransactionShard:
        return TransactionShard(lambda: self.config, lambda: next(self.ids))

    def do(self, action: Callable[[Any], object], *, fails: bool = False) -> Any:
        told: list[Any] = []
        outcome = self.shard.run(lambda: action(told.append), Now(self.now_ms, self.now_ms))
        self._end(outcome, fails=fails)
        return told[0] if told else None

    def _end(self, outcome: Any, *, fails: bool = False) -> None:
        if fails:
            self.shard.undo(outcome.mark)
            return
        self.log += outcome.records
        self.shard.keep(outcome)
        self.markers += outcome.effects
        for ticket, answer in outcome.answers:
            ticket(answer)

    def restart(self) -> None:
        self.shard = self._new()
        self.markers.clear()
        for offset, (key, value) in enumerate(self.log):
            read = read_transaction_key(key)
            assert read is not None
            self.shard.apply(read, None if value is None else read_value(TransactionLogValue, value), Origin(offset))
        self.do(lambda ticket: self.shard.loaded())

    def pass_time(self, ms: int) -> None:
        self.now_ms += ms
        while (outcome := self.shard.tick(Now(self.now_ms, self.now_ms))) is not None:
            self._end(outcome)

    def write_markers(self) -> None:
        for each in self.markers:
            self.do(partial(self._written, each))
        self.markers.clear()

    def _written(self, markers: WriteMarkers, ticket: Any) -> None:
        self.shard.markers_written(markers.transactional_id, markers.producer)

    def use_epochs_up(self) -> Producer:
        """Give the producer the last epoch that it can have."""
        self.init()
        key = TransactionLogKey(transactional_id=ID)
        self.do(lambda ticket: self.shard.write(key, replace(self.value, producer_epoch=0x7FFE), 1))
        return Producer(self.value.producer_id, 0x7FFE)

    def init(self, producer: Producer = NO_PRODUCER, *, timeout_ms: int = 60_000, **more: Any) -> InitAnswer:
        request = InitRequest(more.pop("transactional_id", ID), timeout_ms, producer, **more)
        answer: InitAnswer = self.do(lambda ticket: self.shard.init(ticket, request))
        return answer

    def add(self, producer: Producer, version: int = 0) -> ErrorCode:
        request = AddRequest(ID, producer, PARTITIONS, version)
        code: ErrorCode = self.do(lambda ticket: self.shard.add_partitions(ticket, request))
        return code

    def end(self, producer: Producer, *, commit: bool, version: int = 0, fails: bool = False) -> EndAnswer:
        request = EndRequest(ID, producer, commit, version)
        answer: EndAnswer = self.do(lambda ticket: self.shard.end(ticket, request), fails=fails)
        return answer

    @property
    def value(self) -> TransactionLogValue:
        return self.shard.transactions[ID]

    def state(self) -> TransactionState:
        return TransactionState(self.value.transaction_status)

    def bring_to(self, state: TransactionState, version: int) -> Producer:
        """Bring the transaction to a state; returns the identity that the producer has."""
        producer = self.init().producer
        if state is TransactionState.EMPTY:
            return producer
        self.add(producer, version)
        if state is TransactionState.ONGOING:
            return producer
        commit = state in (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)
        answer = self.end(producer, commit=commit, version=version)
        if state in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT):
            self.write_markers()
        assert self.state() is state
        return answer.producer if version == 2 else producer


@pytest.fixture
def running() -> Running:
    return Running()


def test_identities(running: Running) -> None:
    assert running.init() == (ErrorCode.NONE, (1000, 0))
    assert running.init() == (ErrorCode.NONE, (1000, 1))
    assert running.init(Producer(1000, 1)) == (ErrorCode.NONE, (1000, 2))
    assert running.init(Producer(1000, 1)) == (ErrorCode.NONE, (1000, 2))  # its answer was lost
    assert running.init(Producer(1000, 0)).error_code == FENCED
    assert running.init(Producer(7, 0)).error_code == FENCED
    running.restart()
    assert running.init(Producer(1000, 1)).error_code == FENCED  # nobody remembers
    assert running.init() == (ErrorCode.NONE, (1000, 3))


def test_wrong_requests_for_an_identity(running: Running) -> None:
    assert running.init(transactional_id="").error_code == ErrorCode.INVALID_REQUEST
    assert running.init(timeout_ms=0).error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert running.init(timeout_ms=900_001).error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert running.init(enable_2_pc=True).error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert running.init(keep_prepared_txn=True).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert running.log == []


def test_epochs_that_are_used_up(running: Running) -> None:
    running.use_epochs_up()
    assert running.init() == (ErrorCode.NONE, (1001, 0))
    assert running.init(Producer(1000, 0x7FFE)).error_code == FENCED


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("version", [0, 2])
def test_a_transaction(running: Running, version: int, commit: bool) -> None:
    producer = running.init().producer
    assert running.add(producer, version) == ErrorCode.NONE
    before = len(running.log)
    assert running.add(producer, version) == ErrorCode.NONE
    assert len(running.log) == before  # they are there already
    answer = running.end(producer, commit=commit, version=version)
    bumped = Producer(1000, 1) if version == 2 else producer
    assert answer == (ErrorCode.NONE, bumped if version == 2 else NO_PRODUCER)
    (markers,) = running.markers
    assert (markers.producer, markers.partitions, markers.commit) == (bumped, PARTITIONS, commit)
    assert running.state() is (TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT)
    running.write_markers()
    assert running.state() is (TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT)
    assert partitions_of(running.value) == frozenset()
    assert running.value.transaction_partitions == ()
    assert running.add(bumped, version) == ErrorCode.NONE


ENDINGS_1 = {
    TransactionState.EMPTY: (STATE, STATE),
    TransactionState.ONGOING: (ErrorCode.NONE, ErrorCode.NONE),
    TransactionState.PREPARE_COMMIT: (WAIT, STATE),
    TransactionState.PREPARE_ABORT: (STATE, WAIT),
    TransactionState.COMPLETE_COMMIT: (ErrorCode.NONE, STATE),
    TransactionState.COMPLETE_ABORT: (STATE, ErrorCode.NONE),
}


@pytest.mark.parametrize("state", ENDINGS_1)
def test_endings_of_version_1(state: TransactionState) -> None:
    for commit, expected in zip((True, False), ENDINGS_1[state], strict=True):
        running = Running()
        producer = running.bring_to(state, 0)
        assert running.end(Producer(producer.id, producer.epoch - 1), commit=commit).error_code == FENCED
        assert running.end(Producer(producer.id, producer.epoch + 1), commit=commit).error_code == FENCED
        assert running.end(Producer(1, producer.epoch), commit=commit).error_code == OTHER_ID
        assert running.end(producer, commit=commit).error_code == expected


# Commit and abort with the epoch of now, then both with the epoch before.
ENDINGS_2 = {
    TransactionState.EMPTY: (STATE, ErrorCode.NONE, FENCED, FENCED),
    TransactionState.ONGOING: (ErrorCode.NONE, ErrorCode.NONE, FENCED, FENCED),
    TransactionState.PREPARE_COMMIT: (FENCED, FENCED, WAIT, STATE),
    TransactionState.PREPARE_ABORT: (FENCED, FENCED, STATE, WAIT),
    TransactionState.COMPLETE_COMMIT: (STATE, ErrorCode.NONE, ErrorCode.NONE, STATE),
    TransactionState.COMPLETE_ABORT: (STATE, ErrorCode.NONE, STATE, ErrorCode.NONE),
}


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("state", ENDINGS_2)
def test_endings_of_version_2(state: TransactionState, restarted: bool) -> None:
    for number, expected in enumerate(ENDINGS_2[state]):
        running = Running()
        producer = running.bring_to(state, 2)
        if restarted:
            running.restart()
        asked = producer if number < 2 else Producer(producer.id, producer.epoch - 1)
        commit = number % 2 == 0
        decided = state is TransactionState.ONGOING or (number == 1 and expected is ErrorCode.NONE)
        answer = running.end(asked, commit=commit, version=2)
        assert answer.error_code == expected
        if expected is ErrorCode.NONE:  # decided now, or before
            assert answer.producer == (producer.id, producer.epoch + decided)
        assert running.end(Producer(producer.id, producer.epoch + 5), commit=commit, version=2).error_code == FENCED


def test_a_late_end_cannot_touch_the_next_transaction_of_version_2(running: Running) -> None:
    first = running.bring_to(TransactionState.ONGOING, 2)
    second = running.end(first, commit=True, version=2).producer
    running.write_markers()
    running.add(second, 2)
    assert running.end(first, commit=True, version=2).error_code == FENCED
    assert running.state() is TransactionState.ONGOING


def test_epochs_that_are_used_up_in_version_2(running: Running) -> None:
    producer = running.use_epochs_up()
    running.add(producer, 2)
    answer = running.end(producer, commit=True, version=2)
    assert answer == (ErrorCode.NONE, (1001, 0))
    assert running.markers[0].producer == (1000, 0x7FFF)
    running.write_markers()
    assert running.end(producer, commit=True, version=2) == (ErrorCode.NONE, (1001, 0))  # its answer was lost
    assert running.end(producer, commit=False, version=2).error_code == STATE


def test_a_new_producer_aborts_what_the_last_one_left(running: Running) -> None:
    old = running.bring_to(TransactionState.ONGOING, 2)
    assert running.init().error_code == WAIT
    assert running.markers[0].producer == (1000, 1)
    assert not running.markers[0].commit
    assert running.init().error_code == WAIT
    running.write_markers()
    assert running.init() == (ErrorCode.NONE, (1000, 2))
    assert running.add(old).value == FENCED
    assert running.end(old, commit=True).error_code == FENCED


def test_who_may_add_partitions(running: Running) -> None:
    producer = running.bring_to(TransactionState.PREPARE_COMMIT, 0)
    assert running.add(producer) == WAIT
    assert running.add(Producer(1, 0)) == OTHER_ID
    assert running.add(Producer(producer.id, 9)) == FENCED
    unknown = AddRequest("unknown", producer, PARTITIONS)
    assert running.do(lambda ticket: running.shard.add_partitions(ticket, unknown)) == OTHER_ID


def test_verification(running: Running) -> None:
    producer = running.bring_to(TransactionState.ONGOING, 0)
    asked = AddRequest(ID, producer, [("t", 1), ("t", 2)])
    assert running.shard.verify(asked) == {("t", 1): ErrorCode.NONE, ("t", 2): ErrorCode.TRANSACTION_ABORTABLE}
    assert set(running.shard.verify(asked._replace(producer=Producer(1000, 7))).values()) == {FENCED}


def test_a_time_out_aborts_and_fences(running: Running) -> None:
    producer = running.bring_to(TransactionState.ONGOING, 2)
    running.pass_time(60_000)
    assert running.state() is TransactionState.ONGOING
    running.pass_time(10_000)
    assert running.state() is TransactionState.PREPARE_ABORT
    running.write_markers()
    assert running.end(producer, commit=True, version=2).error_code == STATE
    assert running.init(producer) == (ErrorCode.NONE, (1000, 1))  # the epoch that the abort has given


def test_a_time_out_of_version_1() -> None:
    running = Running(transaction_version=1)
    producer = running.bring_to(TransactionState.ONGOING, 0)
    running.pass_time(70_000)
    running.write_markers()
    assert running.value.producer_epoch == 1
    assert running.end(producer, commit=True).error_code == FENCED


def test_ids_that_nobody_uses_are_forgotten(running: Running) -> None:
    running.bring_to(TransactionState.COMPLETE_ABORT, 2)
    running.pass_time(604_800_000 - 1)
    assert ID in running.shard.transactions
    running.pass_time(3_600_000)
    assert ID not in running.shard.transactions
    running.restart()
    assert ID not in running.shard.transactions


@pytest.mark.parametrize("version", [0, 2])
def test_what_was_decided_is_finished_after_a_restart(running: Running, version: int) -> None:
    running.bring_to(TransactionState.PREPARE_COMMIT, version)
    running.restart()
    assert [(each.partitions, each.commit) for each in running.markers] == [(PARTITIONS, True)]
    running.write_markers()
    assert running.state() is TransactionState.COMPLETE_COMMIT


def test_markers_that_cannot_be_written_are_tried_again(running: Running) -> None:
    running.bring_to(TransactionState.PREPARE_COMMIT, 2)
    running.markers.clear()
    running.pass_time(1_000)
    assert len(running.markers) == 1
    running.write_markers()
    running.pass_time(5_000)
    assert running.markers == []
    assert running.state() is TransactionState.COMPLETE_COMMIT


def test_an_end_that_cannot_be_written_has_not_happened(running: Running) -> None:
    producer = running.bring_to(TransactionState.ONGOING, 2)
    running.end(producer, commit=True, version=2, fails=True)
    assert running.state() is TransactionState.ONGOING
    assert running.markers == []
    assert running.end(producer, commit=True, version=2).error_code == ErrorCode.NONE
