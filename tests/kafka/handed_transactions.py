"""Transactional ids in every state that a hand-over may find them in: `transactions`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final

from octavo.coordinator.transactions.epochs import LAST_EPOCH
from octavo.coordinator.transactions.transaction_shard import EMPTY, TransactionShard
from octavo.errors import ErrorCode
from octavo.log import DataDirectory
from octavo.log.coordinator.coordinator import transaction_hosts
from octavo.schemas.transaction_state import TransactionLogKey, TransactionLogValue
from tests.kafka.handed_over import LONG_MS, Answers, until
from tests.kafka.handed_producer import Producing
from tests.server.test_transactions import Transactional

A_WHILE_MS: Final = 5_000
EIGHT_DAYS_MS: Final = 8 * 24 * 3_600_000  # transactional ids are forgotten after seven


class Empty(Producing):
    def prepare(self, address: str) -> None:
        assert self.begin(address) == ErrorCode.NONE

    def go_on(self, address: str) -> Answers:
        yield from self.look(address)
        yield from self.all_the_rest(address)


class Ongoing(Producing):
    """A transaction that goes on, and is committed."""

    def prepare(self, address: str) -> None:
        self.open(address)

    def go_on(self, address: str) -> Answers:
        yield from self.look(address)
        yield self.write(address, f"more {self.partition}")
        yield self.end(address, commit=True), self.identity[1]
        yield from self.look(address)
        yield from self.all_the_rest(address)


class OngoingThenAborted(Ongoing):
    def go_on(self, address: str) -> Answers:
        yield from self.look(address)
        yield self.write_offset(address, 6)
        yield self.end(address, commit=False), self.identity[1]
        yield from self.look(address)
        yield from self.all_the_rest(address)


class OngoingThenFenced(Ongoing):
    def go_on(self, address: str) -> Answers:
        yield from self.look(address)
        yield from self.next_producer(address)
        yield from self.all_the_rest(address)


class OngoingTooLong(Producing):
    """Its time is over soon; its producer comes back late."""

    def prepare(self, address: str) -> None:
        self.open(address, A_WHILE_MS)

    def go_on(self, address: str) -> Answers:
        self.wait_for_end(address)
        yield from self.look(address)
        yield self.write(address, "too late")
        yield self.end(address, commit=True)
        yield from self.next_producer(address)
        yield from self.next_transaction(address)


class Complete(Producing):
    commit: bool

    def prepare(self, address: str) -> None:
        self.open(address)
        self.before = self.identity
        assert self.end(address, commit=self.commit) == ErrorCode.NONE

    def go_on(self, address: str) -> Answers:
        yield from self.look(address)
        yield from self.again(address)
        yield from self.all_the_rest(address)

    def again(self, address: str) -> Answers:
        """Ask for the same once more, as if the answer was lost, and for the opposite."""
        after, sequence = self.identity, self.sequence
        for commit in (self.commit, not self.commit, self.commit):
            self.identity = self.before
            yield self.end(address, commit=commit), self.identity[1], self.identity == after
        self.identity, self.sequence = after, sequence


class Committed(Complete):
    commit = True


class Aborted(Complete):
    commit = False


class Decided(Complete):
    """It is decided, and no marker is written."""

    def prepare(self, address: str) -> None:
        self.open(address)
        self.before = self.identity

    def decide(self, address: str) -> None:
        producer = self.producer(address)
        with producer.client:
            producer.end(4 if self.version == 1 else 5, commit=self.commit)

    def go_on(self, address: str) -> Answers:
        self.wait_for_end(address)
        yield from self.look(address)
        yield self.end(address, commit=self.commit), self.identity[1], self.identity[0] == self.before[0]
        yield from self.again(address)
        yield from self.all_the_rest(address)


class DecidedToCommit(Decided):
    commit = True


class DecidedToAbort(Decided):
    commit = False


class DecidedToFence(Decided):
    """Another producer has come while the transaction was open."""

    commit = False

    def decide(self, address: str) -> None:
        producer = Transactional(address, self.name)
        with producer.client:
            assert producer.init(LONG_MS) != ErrorCode.NONE

    def go_on(self, address: str) -> Answers:
        self.wait_for_end(address)
        yield from self.look(address)
        yield self.end(address, commit=True)
        yield from self.next_producer(address)
        yield from self.all_the_rest(address)


class LastEpoch(Ongoing):
    """No epoch is left but the one that fences: the next producer gets another id."""

    seeded_epoch = LAST_EPOCH - 1


class LastEpochThenFenced(OngoingThenFenced):
    seeded_epoch = LAST_EPOCH - 1


class LastEpochDecided(DecidedToCommit):
    seeded_epoch = LAST_EPOCH - 1


class Expired(Producing):
    """Nobody has used it for so long that it is forgotten."""

    seeded_epoch = 3
    seeded_age_ms = EIGHT_DAYS_MS

    def prepare(self, address: str) -> None:
        until(lambda: self._code(address) == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, self.name)

    def _code(self, address: str) -> int:
        producer = self.producer(address)
        with producer.client:
            return int(producer.described().error_code)

    def go_on(self, address: str) -> Answers:
        yield self._code(address)
        yield self.write(address, "of one that is forgotten") != ErrorCode.NONE
        yield self.end(address, commit=True)
        self.identity = (-1, -1)
        yield self.begin(address), self.identity[1]
        yield from self.all_the_rest(address)


_KINDS: Final[tuple[type[Producing], ...]] = (
    Empty,
    Ongoing,
    OngoingThenAborted,
    OngoingThenFenced,
    Committed,
    Aborted,
    DecidedToCommit,
    DecidedToAbort,
    DecidedToFence,
    LastEpoch,
    LastEpochThenFenced,
    LastEpochDecided,
    Expired,
    OngoingTooLong,
)
PARTITIONS: Final = 2 * len(_KINDS)  # for one number


def transactions(number: int) -> Iterator[Producing]:
    """A transactional id in each state, for both versions, named after it. Each number has partitions of its own."""
    for at, kind in enumerate(_KINDS):
        for version in (1, 2):
            partition = number * PARTITIONS + 2 * at + version - 1
            yield kind(f"{kind.__name__}-{version}-{number}", version, partition)


def seed(data: DataDirectory, cases: list[Producing]) -> None:
    """Write records that would take long to come by: epochs that are nearly used up, and ids that are old."""
    hosts = transaction_hosts(data)
    now_ms = int(time.time() * 1000)
    for case in cases:
        if case.seeded_epoch is not None:
            case.identity = (data.coordinator.init_producer_id().producer_id, case.seeded_epoch)
            value = TransactionLogValue(
                producer_id=case.identity[0],
                previous_producer_id=-1,
                producer_epoch=case.seeded_epoch,
                transaction_timeout_ms=LONG_MS,
                transaction_status=EMPTY,
                transaction_partitions=None,
                transaction_last_update_timestamp_ms=now_ms - case.seeded_age_ms,
                transaction_start_timestamp_ms=-1,
            )
            key = TransactionLogKey(transactional_id=case.name)
            _write(hosts.host_for(case.name), key, value)


def _write(host: Any, key: TransactionLogKey, value: TransactionLogValue) -> None:
    def write(shard: TransactionShard) -> None:
        shard.write(key, value, 1)

    host.run(write)
