"""The coordinator of the transactional ids of one partition of `__transaction_state`: `TransactionShard`.

A transaction is decided by a record (PREPARE_COMMIT, PREPARE_ABORT). Then markers are written to all its partitions,
and then a last record (COMPLETE_COMMIT, COMPLETE_ABORT). Clients of version 2 get a new epoch with each transaction, so
that nothing that is late can touch the next one; with version 1 a request to end a transaction that comes late ends the
next one, in Kafka as here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from octavo.coordinator.journal import Table
from octavo.coordinator.shard import Origin, Producer, Shard, Ticket
from octavo.coordinator.timers import Key
from octavo.coordinator.transactions.config import TransactionConfig
from octavo.coordinator.transactions.ending import verdict_on
from octavo.coordinator.transactions.epochs import BUMPS_EPOCHS, LARGEST_EPOCH, LAST_EPOCH, NONE
from octavo.coordinator.transactions.identity import completed_identity, init_problem, is_fenced, next_identity
from octavo.coordinator.transactions.partitions import by_topic, partitions_of
from octavo.coordinator.transactions.requests import (
    AddRequest,
    EndAnswer,
    EndRequest,
    InitAnswer,
    InitRequest,
    Partition,
    WriteMarkers,
)
from octavo.errors import ErrorCode
from octavo.schemas.transaction_state import TransactionLogKey, TransactionLogValue, TransactionState
from octavo.schemas.versioned import CoordinatorKey, CoordinatorValue

EMPTY: Final = TransactionState.EMPTY
ONGOING: Final = TransactionState.ONGOING
PREPARE_COMMIT: Final = TransactionState.PREPARE_COMMIT
PREPARE_ABORT: Final = TransactionState.PREPARE_ABORT
COMPLETE_COMMIT: Final = TransactionState.COMPLETE_COMMIT
COMPLETE_ABORT: Final = TransactionState.COMPLETE_ABORT
PREPARED: Final = (PREPARE_COMMIT, PREPARE_ABORT)

_NO_TIMEOUT: Final = 0x7FFFFFFF  # of a producer that commits in two phases, which Kafka may have let in
_RETRY_MARKERS_MS: Final = 1_000

_TIMEOUTS: Final = ("timeouts",)
_EXPIRY: Final = ("expiry",)
_MARKERS: Final = "markers"


class TransactionShard(Shard):
    """The transactions of all transactional ids whose records are in one partition.

    transactions: the last record of each transactional id
    """

    def __init__(self, config: Callable[[], TransactionConfig], new_producer_id: Callable[[], int]) -> None:
        """Begin without transactions. `config` returns the settings as they are now."""
        super().__init__()
        self._config: Final = config
        self.transactions: Final[Table[str, TransactionLogValue]] = Table(self.journal)
        self._last_epochs: Final[Table[str, int]] = Table(self.journal)  # before the present ones; lost at a restart
        self._new_producer_id: Final = new_producer_id

    @property
    def size(self) -> int:
        """How many transactional ids there are."""
        return len(self.transactions)

    @property
    def config(self) -> TransactionConfig:
        """The settings, as they are now."""
        return self._config()

    # ------------------------------------------------------------------------------------------------------- requests

    def init(self, ticket: Ticket, request: InitRequest) -> None:
        """Give a producer its identity, and fence the one that had it before."""
        error = self._init_error(request)
        if error is not ErrorCode.NONE:
            self.answer(ticket, InitAnswer(error))
            return
        value = self.transactions.get(request.transactional_id)
        if value is not None and value.transaction_status == ONGOING:
            self.fence(request.transactional_id)
            # The producer asks again, and gets a larger epoch than the one that aborts.
            self.answer(ticket, InitAnswer(ErrorCode.CONCURRENT_TRANSACTIONS))
            return
        self._begin_anew(ticket, request, value)

    def _init_error(self, request: InitRequest) -> ErrorCode:
        problem = init_problem(self.config, request)
        value = self.transactions.get(request.transactional_id)
        if problem is not ErrorCode.NONE or value is None:
            return problem
        if is_fenced(value, request.producer):
            return ErrorCode.PRODUCER_FENCED
        return ErrorCode.CONCURRENT_TRANSACTIONS if value.transaction_status in PREPARED else ErrorCode.NONE

    def _begin_anew(self, ticket: Ticket, request: InitRequest, value: TransactionLogValue | None) -> None:
        transactional_id = request.transactional_id
        known_epoch = self._last_epochs.get(transactional_id, NONE)
        identity = next_identity(value, request.producer, known_epoch, self._new_producer_id)
        if isinstance(identity, ErrorCode):
            self.answer(ticket, InitAnswer(identity))
            return
        producer, last_epoch = identity
        new = TransactionLogValue(
            producer_id=producer.id,
            previous_producer_id=producer.id if value is None else value.producer_id,
            producer_epoch=producer.epoch,
            transaction_timeout_ms=request.transaction_timeout_ms,
            transaction_status=EMPTY,
            transaction_partitions=None,
            transaction_last_update_timestamp_ms=self._later_than(value),
            transaction_start_timestamp_ms=NONE,
            client_transaction_version=0 if value is None else value.client_transaction_version,
        )
        self._put(transactional_id, new, last_epoch)
        self.decide()
        self.answer(ticket, InitAnswer(ErrorCode.NONE, producer))

    def add_partitions(self, ticket: Ticket, request: AddRequest) -> None:
        """Add partitions to a transaction, which begins with the first ones."""
        self.answer(ticket, self.add(request))

    def add(self, request: AddRequest) -> ErrorCode:
        """Add partitions to a transaction; for those who append to them in the same breath."""
        value, error = self._transaction_of(request.transactional_id, request.producer)
        if value is None or error is not ErrorCode.NONE:
            return error
        is_open = value.transaction_status == ONGOING
        present = partitions_of(value) if is_open else frozenset()
        added = present.union(request.partitions)
        if is_open and added == present:
            return ErrorCode.NONE
        now_ms = self._later_than(value)
        new = replace(
            value,
            transaction_status=ONGOING,
            transaction_partitions=by_topic(added),
            previous_producer_id=value.producer_id,
            transaction_last_update_timestamp_ms=now_ms,
            transaction_start_timestamp_ms=value.transaction_start_timestamp_ms if is_open else now_ms,
            client_transaction_version=request.transaction_version,
        )
        self._put(request.transactional_id, new, self._last_epochs.get(request.transactional_id, NONE))
        return ErrorCode.NONE

    def verify(self, request: AddRequest) -> Mapping[Partition, ErrorCode]:
        """Return for each partition whether it is part of the transaction."""
        value, error = self._transaction_of(request.transactional_id, request.producer)
        if value is None or error is not ErrorCode.NONE:
            return dict.fromkeys(request.partitions, error)
        present = partitions_of(value)
        return {
            each: ErrorCode.NONE if each in present else ErrorCode.TRANSACTION_ABORTABLE for each in request.partitions
        }

    def _transaction_of(
        self, transactional_id: str, producer: Producer
    ) -> tuple[TransactionLogValue | None, ErrorCode]:
        value = self.transactions.get(transactional_id)
        if not transactional_id:
            return None, ErrorCode.INVALID_REQUEST
        if value is None or value.producer_id != producer.id:
            return None, ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if value.producer_epoch != producer.epoch:
            return value, ErrorCode.PRODUCER_FENCED
        if value.transaction_status in PREPARED:
            return value, ErrorCode.CONCURRENT_TRANSACTIONS
        return value, ErrorCode.NONE

    def end(self, ticket: Ticket, request: EndRequest) -> None:
        """Commit or abort a transaction: decide it, and have the markers written."""
        if not request.transactional_id:
            self.answer(ticket, EndAnswer(ErrorCode.INVALID_REQUEST))
            return
        value = self.transactions.get(request.transactional_id)
        verdict = verdict_on(value, request)
        is_2 = request.transaction_version >= BUMPS_EPOCHS
        if isinstance(verdict, ErrorCode):
            told = EndAnswer(verdict)
            if value is not None and is_2 and verdict is ErrorCode.NONE:
                told = EndAnswer(verdict, Producer(value.producer_id, value.producer_epoch))
            self.answer(ticket, told)
            return
        assert value is not None
        state = PREPARE_COMMIT if request.committed else PREPARE_ABORT
        new = self._prepare(request.transactional_id, value, state, request.transaction_version)
        identity = completed_identity(new)
        self.answer(ticket, EndAnswer(ErrorCode.NONE, identity) if is_2 else EndAnswer(ErrorCode.NONE))

    # --------------------------------------------------------------------------------------------------------- endings

    def _prepare(
        self, transactional_id: str, value: TransactionLogValue, state: TransactionState, version: int
    ) -> TransactionLogValue:
        """Write the decision, and have the markers written."""
        now_ms = self._later_than(value)
        epoch, last_epoch = value.producer_epoch, self._last_epochs.get(transactional_id, NONE)
        next_producer_id = NONE
        if version >= BUMPS_EPOCHS:
            if epoch >= LAST_EPOCH:
                next_producer_id = self._new_producer_id()
            last_epoch, epoch = epoch, min(epoch + 1, LARGEST_EPOCH)
        is_open = value.transaction_status == ONGOING
        new = replace(
            value,
            producer_epoch=epoch,
            previous_producer_id=value.producer_id,
            next_producer_id=next_producer_id,
            transaction_status=state,
            transaction_partitions=value.transaction_partitions if is_open else (),
            transaction_last_update_timestamp_ms=now_ms,
            transaction_start_timestamp_ms=value.transaction_start_timestamp_ms if is_open else now_ms,
            client_transaction_version=version if version >= BUMPS_EPOCHS else 0,
        )
        self._put(transactional_id, new, last_epoch)
        if state is PREPARE_COMMIT:  # an abort that is lost is done again
            self.decide()
        self._write_markers(transactional_id, new)
        return new

    def fence(self, transactional_id: str) -> None:
        """Abort an open transaction with an epoch that its producer does not have."""
        value = self.transactions.get(transactional_id)
        if value is None or value.transaction_status != ONGOING:
            return
        version = self.config.transaction_version
        if version < BUMPS_EPOCHS:
            value = replace(value, producer_epoch=min(value.producer_epoch + 1, LARGEST_EPOCH))
            self._last_epochs[transactional_id] = NONE
        self._prepare(transactional_id, value, PREPARE_ABORT, version)

    def repeat_markers(self, transactional_id: str) -> None:
        """Have the markers of a decided transaction written once more: nobody knows how far that came."""
        value = self.transactions.get(transactional_id)
        if value is not None and value.transaction_status in PREPARED:
            self._write_markers(transactional_id, value, is_repeated=True)

    def _write_markers(self, transactional_id: str, value: TransactionLogValue, *, is_repeated: bool = False) -> None:
        partitions = sorted(partitions_of(value))
        if not partitions:
            self._complete(transactional_id, value)
            return
        self.effect(
            WriteMarkers(
                transactional_id,
                Producer(value.producer_id, value.producer_epoch),
                partitions,
                value.transaction_status == PREPARE_COMMIT,
                value.client_transaction_version,
                value.transaction_last_update_timestamp_ms,
                is_repeated,
            )
        )
        self.timers.set((_MARKERS, transactional_id), self.now.clock_ms + _RETRY_MARKERS_MS)

    def is_decided(self, wanted: WriteMarkers) -> bool:
        """Return whether markers belong to a transaction that is decided and not complete yet."""
        value = self.transactions.get(wanted.transactional_id)
        return (
            value is not None
            and value.transaction_status in PREPARED
            and (value.producer_id, value.producer_epoch) == wanted.producer
            and value.transaction_last_update_timestamp_ms == wanted.decided_ms
        )

    def markers_written(self, transactional_id: str, producer: Producer) -> None:
        """Complete a transaction, all of whose partitions have the marker."""
        value = self.transactions.get(transactional_id)
        if (
            value is not None
            and value.transaction_status in PREPARED
            and (value.producer_id, value.producer_epoch) == producer
        ):
            self._complete(transactional_id, value)

    def _complete(self, transactional_id: str, value: TransactionLogValue) -> None:
        producer_id, epoch = completed_identity(value)
        state = COMPLETE_COMMIT if value.transaction_status == PREPARE_COMMIT else COMPLETE_ABORT
        new = replace(
            value,
            producer_id=producer_id,
            previous_producer_id=value.producer_id,
            producer_epoch=epoch,
            next_producer_id=NONE,
            transaction_status=state,
            transaction_partitions=(),
            transaction_last_update_timestamp_ms=max(self.now.wall_ms, value.transaction_last_update_timestamp_ms),
        )
        self.timers.cancel((_MARKERS, transactional_id))
        self._put(transactional_id, new, self._last_epochs.get(transactional_id, NONE))

    # ---------------------------------------------------------------------------------------------------- time passes

    def timed_out(self, now_ms: int) -> list[str]:
        """The transactional ids whose open transactions have exceeded the timeout of their producers."""
        return [
            transactional_id
            for transactional_id, value in self.transactions.items()
            if value.transaction_status == ONGOING
            and value.transaction_timeout_ms != _NO_TIMEOUT
            and value.transaction_start_timestamp_ms + value.transaction_timeout_ms < now_ms
        ]

    def _expire(self) -> None:
        """Forget transactional ids that nobody has used for long."""
        since_ms = self.now.wall_ms - self.config.transactional_id_expiration_ms
        unused = [
            transactional_id
            for transactional_id, value in self.transactions.items()
            if value.transaction_status in (EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT)
            and value.transaction_last_update_timestamp_ms <= since_ms
        ]
        for transactional_id in unused:
            self.write(TransactionLogKey(transactional_id=transactional_id), None)

    def expired(self, key: Key) -> None:
        """Do what has to happen at the time that was set for a key."""
        if key == _TIMEOUTS:
            for transactional_id in self.timed_out(self.now.wall_ms):
                self.fence(transactional_id)
            self._set_timeouts()
        elif key == _EXPIRY:
            self._expire()
            self._set_expiry()
        elif key[0] == _MARKERS:
            self.repeat_markers(str(key[1]))

    def _set_timeouts(self) -> None:
        interval_ms = self.config.transaction_abort_timed_out_transaction_cleanup_interval_ms
        self.timers.set(_TIMEOUTS, self.now.clock_ms + interval_ms)

    def _set_expiry(self) -> None:
        interval_ms = self.config.transaction_remove_expired_transaction_cleanup_interval_ms
        self.timers.set(_EXPIRY, self.now.clock_ms + interval_ms)

    # -------------------------------------------------------------------------------------------------------- records

    def loaded(self) -> None:
        """Finish what was decided before, and watch the time."""
        for transactional_id in list(self.transactions):
            self.repeat_markers(transactional_id)
        self._set_timeouts()
        self._set_expiry()

    def resign(self) -> None:
        """Nobody waits here."""

    def apply(self, key: CoordinatorKey[Any], value: CoordinatorValue | None, origin: Origin) -> None:
        """Change the state as a record says."""
        assert isinstance(key, TransactionLogKey)
        if isinstance(value, TransactionLogValue):
            self.transactions[key.transactional_id] = value
        else:
            self.transactions.pop(key.transactional_id, None)
            self._last_epochs.pop(key.transactional_id, None)

    def apply_marker(self, producer: Producer, *, commit: bool) -> None:
        """Take no notice: nobody writes to this topic in transactions."""

    def _put(self, transactional_id: str, value: TransactionLogValue, last_epoch: int) -> None:
        version = 1 if self.config.transaction_version >= 1 else 0
        if not version:  # such a record has no place for these
            value = replace(value, previous_producer_id=NONE, next_producer_id=NONE, client_transaction_version=0)
        self.write(TransactionLogKey(transactional_id=transactional_id), value, version)
        self._last_epochs[transactional_id] = last_epoch

    def _later_than(self, value: TransactionLogValue | None) -> int:
        """The current time, but after the last change: the time of a marker shows which transaction it ends."""
        now_ms = self.now.wall_ms
        return now_ms if value is None else max(now_ms, value.transaction_last_update_timestamp_ms + 1)
