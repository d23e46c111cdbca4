"""Transactions: which producer has a transactional id, and how its transaction ends.

Each partition of `__transaction_state` has a `Host`, which runs the coordinator of its transactional ids. For producers
in this process, the epoch stays the same from one transaction to the next (`transaction.version` 1):

    EMPTY -> ONGOING            a partition is added before the transaction writes to it
          -> PREPARE_COMMIT     the decision; what is left is to write a marker into each partition
          -> COMPLETE_COMMIT    the markers are written. PREPARE_ABORT and COMPLETE_ABORT likewise

**If the process dies** at any instruction, a transaction that was prepared to commit is committed, and any other is
aborted. The commit happens when the state is next read. The abort happens when the next producer takes over the
transactional id, or when the timeout is over. Kafka does the same, if it is given the directory meanwhile.

**If the power fails**, the same holds. (Kafka leaves that case to other replicas.) The committed data are on the disk
before the decision, the decision before the first marker, and the markers before the transaction is complete. So every
commit waits for the disk, twice for each partition and once for the decision. (An abort waits for nothing: if it is
lost, the transaction is aborted again.) Later writes may be lost, and `__transaction_state` may lose more of them than
another log:

    markers are missing                     they are written to all partitions of the prepared transaction, as Kafka
                                            does when it starts; a second marker in a partition does no harm
    COMPLETE is missing, and the next       data are of the next transaction if a marker before them has the time of the
    transaction has data already            decision or a later one; these data are aborted
    ONGOING is missing, but not the data    when the state is read, what a producer id has open in any log is aborted,
                                            unless its transaction is ongoing
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

from octavo.coordinator.shard import Producer, Ticket
from octavo.coordinator.transactions.config import TransactionConfig
from octavo.coordinator.transactions.partitions import partitions_of
from octavo.coordinator.transactions.requests import AddRequest, EndAnswer, EndRequest, InitAnswer, InitRequest
from octavo.coordinator.transactions.transaction_shard import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARED,
    TransactionShard,
)
from octavo.errors import (
    CoordinatorRefused,
    ErrorCode,
    InvalidInput,
    ProducerFenced,
    TransactionIsEnding,
    UnknownProducer,
    WrongTimeout,
    WrongTransactionState,
)
from octavo.log.append.readiness import ALLOWANCE, MustWait
from octavo.log.closing import Attempts
from octavo.log.coordinator.host import Host
from octavo.log.coordinator.hosts import Hosts
from octavo.log.coordinator.markers import Markers
from octavo.log.coordinator.producer_identity import ProducerIdentity
from octavo.log.names import TRANSACTION_STATE, TopicPartition
from octavo.log.ownership.fork_safe import make_rlock
from octavo.records.text import write_text
from octavo.schemas.primitives import MAX_STRING
from octavo.schemas.transaction_state import TransactionLogValue, TransactionState, read_any_transaction_key

if TYPE_CHECKING:
    from threading import RLock

    from octavo.log.coordinator.groups import Groups
    from octavo.log.coordinator.producer_ids import ProducerIds
    from octavo.log.directory.data_directory import DataDirectory
    from octavo.log.log import Log

_FEATURE: Final = "transaction.version"
_ENDED: Final = (EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT)

Action = Callable[[TransactionShard, Ticket], object]


class Transactions(Hosts[TransactionShard]):
    """The transactions of a directory. Any thread may use it."""

    def __init__(
        self, data: DataDirectory, producer_ids: ProducerIds, groups: Groups, config: TransactionConfig | None = None
    ) -> None:
        super().__init__(data, TRANSACTION_STATE)
        self._producer_ids: Final = producer_ids
        self._config = config or TransactionConfig()
        # One call at a time for each id of producers in this process. A lock lasts while somebody holds it or waits.
        self._locks: Final[WeakValueDictionary[str, RLock]] = WeakValueDictionary()
        self.markers: Final = Markers(data, groups)

    def configure(self, config: TransactionConfig) -> None:
        """Have other settings from now on. Everything is loaded again."""
        self._config = config
        for host in self.running:
            host.resign()

    def _new_host(self, log: Log) -> Host[TransactionShard]:
        host: Host[TransactionShard] = Host(
            log,
            self._new_shard,
            read_any_transaction_key,
            wall_ms=self._data.now_ms,
            clock_ms=self._data.monotonic_ms,
            perform=lambda effect, durable: self.markers.write(host, effect, durable),
            is_brief=self.markers.are_few,
            recover=lambda: self._recover(host),
        )
        return host

    def _new_shard(self) -> TransactionShard:
        return TransactionShard(self._current_config, self._next_producer_id)

    def _current_config(self) -> TransactionConfig:
        level = self._data.feature_level(_FEATURE)  # it can be raised while a broker runs
        if level != self._config.transaction_version:
            self._config = replace(self._config, transaction_version=level)
        return self._config

    def _next_producer_id(self) -> int:
        if ALLOWANCE.left is not None:  # it may have to be written to the disk which are taken
            raise MustWait
        return self._producer_ids.next()

    def _recover(self, host: Host[TransactionShard]) -> None:
        """Abort what should not be open in any log, before any producer begins."""
        opened = {
            producer_id for log in self._data.logs for producer_id in list(log.producers.open_transactions.values())
        }
        if opened:
            for value in host.ask(lambda shard: list(shard.transactions.values())):
                if value.transaction_status in _ENDED and value.producer_id in opened:
                    self.markers.abort_strays(host, value)

    # ------------------------------------------------------------------------------------ for producers in this process

    def init(self, transactional_id: str, timeout_ms: int, current: ProducerIdentity | None = None) -> ProducerIdentity:
        """Return the identity of a new producer. The previous one is fenced, and its open transaction is ended.

        `current`: the identity of a producer that goes on with another epoch. It has no transaction open, so one that
        is open is that of its successor.
        """
        if not transactional_id or len(write_text(transactional_id)) > MAX_STRING:
            raise InvalidInput(f"a transactional id has 1 to {MAX_STRING} bytes, not {transactional_id[:80]!r}")
        max_ms = self._config.transaction_max_timeout_ms
        if not 0 < timeout_ms <= max_ms:
            raise WrongTimeout(f"transaction.timeout.ms is from 1 to {max_ms}, not {timeout_ms}")
        with self._lock_of(transactional_id):
            host = self.host_for(transactional_id)
            if current is None:
                self._end_what_is_open(host, transactional_id)
                request = InitRequest(transactional_id, timeout_ms)
            else:
                request = InitRequest(transactional_id, timeout_ms, Producer(*current))

            def init(shard: TransactionShard, ticket: Ticket) -> None:
                value = shard.transactions.get(transactional_id)
                if current is not None and value is not None and value.transaction_status == ONGOING:
                    shard.answer(ticket, InitAnswer(ErrorCode.PRODUCER_FENCED, request.producer))
                else:
                    shard.init(ticket, request)

            answer: InitAnswer = _answer(host, init)
            self._check(host, transactional_id, answer.error_code, current or answer.producer)
            return ProducerIdentity(*answer.producer)

    def add_partitions(
        self, transactional_id: str, producer: ProducerIdentity, partitions: Iterable[TopicPartition]
    ) -> None:
        """Add partitions to the transaction. The first ones begin it."""
        request = AddRequest(transactional_id, Producer(*producer), list(partitions))

        def add(shard: TransactionShard, ticket: Ticket) -> None:
            before = _open_partitions(shard.transactions.get(transactional_id))
            shard.add_partitions(ticket, request)
            for partition in _open_partitions(shard.transactions.get(transactional_id)) - before:
                self._data.log(*partition)  # raises if it does not exist

        with self._lock_of(transactional_id):
            host = self._known_host(transactional_id, producer)
            self._check(host, transactional_id, _answer(host, add), producer)

    def end(self, transactional_id: str, producer: ProducerIdentity, *, commit: bool) -> None:
        """Commit or abort the transaction. Repeating the same request is no error."""
        with self._lock_of(transactional_id):
            host = self._known_host(transactional_id, producer)
            if commit:  # the data are on the disk before the decision
                self.markers.flush(_open_partitions(self._value(host, transactional_id)))
            request = EndRequest(transactional_id, Producer(*producer), commit)
            answer: EndAnswer = _answer(host, lambda shard, ticket: shard.end(ticket, request))
            if answer.error_code is ErrorCode.CONCURRENT_TRANSACTIONS:  # it is decided, but markers are missing
                host.run(lambda shard: shard.repeat_markers(transactional_id))
            elif answer.error_code is ErrorCode.INVALID_TXN_STATE:
                value = self._value(host, transactional_id)
                state = "unknown" if value is None else _state_name(value)
                raise WrongTransactionState(
                    f"the transaction of {transactional_id!r} cannot be {'committed' if commit else 'aborted'}: "
                    f"it is {state}"
                )
            else:
                self._check(host, transactional_id, answer.error_code, producer)

    def abort_timed_out(self, now_ms: int) -> list[str]:
        """Abort transactions that timed out, and fence their producers. Return the transactional ids."""
        aborted = []
        attempts = Attempts()  # one that cannot be ended does not keep others open
        for host in self.hosts:
            for transactional_id in host.ask(lambda shard: shard.timed_out(now_ms)):
                with attempts, self._lock_of(transactional_id):
                    if transactional_id in host.ask(lambda shard: shard.timed_out(now_ms)):
                        self._end_what_is_open(host, transactional_id)
                        aborted.append(transactional_id)
        attempts.finish()
        return aborted

    def state(self, transactional_id: str) -> TransactionLogValue | None:
        """The state of a transactional id; None if it was never used."""
        host = self.find_host(transactional_id)
        return None if host is None else self._value(host, transactional_id)

    def load(self) -> None:
        """Read the state, unless that was done already, and repair what a crash has left."""
        for host in self.hosts:
            host.ask(lambda shard: None)

    # ------------------------------------------------------------------------------------------------------------ parts

    def _end_what_is_open(self, host: Host[TransactionShard], transactional_id: str) -> None:
        """Finish a decided transaction; abort an open one, with an epoch larger than that of the previous producer."""
        value = self._value(host, transactional_id)
        if value is None:
            return
        if value.transaction_status in PREPARED:
            host.run(lambda shard: shard.repeat_markers(transactional_id))
        elif value.transaction_status == ONGOING:
            host.run(lambda shard: shard.fence(transactional_id))
        now = self._value(host, transactional_id)
        assert now is not None
        self.markers.abort_strays(host, now, value.producer_id)

    def _known_host(self, transactional_id: str, producer: ProducerIdentity) -> Host[TransactionShard]:
        host = self.find_host(transactional_id) if transactional_id else None
        if host is None:
            raise _unknown(transactional_id, producer)
        return host

    def _lock_of(self, transactional_id: str) -> RLock:
        with self._lock:
            lock = self._locks.get(transactional_id)
            if lock is None:
                lock = self._locks[transactional_id] = make_rlock()
            return lock

    @staticmethod
    def _value(host: Host[TransactionShard], transactional_id: str) -> TransactionLogValue | None:
        return host.ask(lambda shard: shard.transactions.get(transactional_id))

    def _check(
        self, host: Host[TransactionShard], transactional_id: str, code: ErrorCode, producer: tuple[int, int]
    ) -> None:
        """Raise what a coordinator's answer says, if it is an error."""
        if code is not ErrorCode.NONE:
            raise _refusal(code, transactional_id, producer, self._value(host, transactional_id))


def _answer(host: Host[TransactionShard], action: Action) -> Any:
    """Have a coordinator do something, and return its answer once everything is written."""
    answers: list[Any] = []
    host.run(lambda shard: action(shard, answers.append), durable=True)
    return answers[0]


def _open_partitions(value: TransactionLogValue | None) -> frozenset[TopicPartition]:
    is_open = value is not None and value.transaction_status == ONGOING
    return frozenset(TopicPartition(*each) for each in partitions_of(value)) if value and is_open else frozenset()


def _unknown(transactional_id: str, producer: tuple[int, int]) -> UnknownProducer:
    return UnknownProducer(f"transactional id {transactional_id!r} is not that of producer {producer[0]}")


def _refusal(
    code: ErrorCode, transactional_id: str, producer: tuple[int, int], value: TransactionLogValue | None
) -> CoordinatorRefused:
    if value is None or code is ErrorCode.INVALID_PRODUCER_ID_MAPPING:
        return _unknown(transactional_id, producer)
    if code is ErrorCode.PRODUCER_FENCED:
        return ProducerFenced(
            f"another producer has the transactional id {transactional_id!r} now: epoch {producer[1]} of producer "
            f"{producer[0]} is over, {value.producer_epoch} has begun"
        )
    if code is ErrorCode.CONCURRENT_TRANSACTIONS:
        return TransactionIsEnding(f"the last transaction of {transactional_id!r} has not ended everywhere")
    return CoordinatorRefused(f"the coordinator of {transactional_id!r} answers {code.name}")


def _state_name(value: TransactionLogValue) -> str:
    names = [state.name for state in TransactionState if state == value.transaction_status]
    return names[0] if names else f"in the unknown state {value.transaction_status}"
