"""Transactions: which producer has a transactional id, and how its transaction ends.

The state is in `__transaction_state`. This works as Kafka's transaction coordinator does (KIP-98). The epoch of a
producer stays the same from one transaction to the next (`transaction.version` 1):

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

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from octavo.coordinator.shard import Producer
from octavo.errors import (
    AppendRefused,
    ErrorCode,
    InvalidInput,
    TransactionIsEnding,
    UnknownPartition,
    WrongTimeout,
    WrongTransactionState,
)
from octavo.log.closing import Attempts
from octavo.log.coordinator.markers import has_marker, open_since, write_marker
from octavo.log.coordinator.transaction_log import (
    ProducerIdentity,
    Transaction,
    TransactionLog,
    changed,
    partitions_of,
)
from octavo.log.names import CONSUMER_OFFSETS, TopicPartition
from octavo.log.ownership.fork_safe import make_rlock
from octavo.records.layout import NO_PRODUCER_ID
from octavo.records.text import write_text
from octavo.schemas.primitives import MAX_STRING
from octavo.schemas.transaction_state import TransactionLogValue, TransactionState

if TYPE_CHECKING:
    from octavo.log.coordinator.groups import Groups
    from octavo.log.coordinator.producer_ids import ProducerIds
    from octavo.log.directory.data_directory import DataDirectory
    from octavo.log.log import Log

MAX_TIMEOUT_MS: Final = 900_000  # transaction.max.timeout.ms
MAX_EPOCH: Final = 0x7FFF
LAST_EPOCH: Final = MAX_EPOCH - 1  # largest epoch of a producer: one more is left to fence it
_EPOCH_BUMPS: Final = 2  # the transaction.version of clients that bump the epoch for each transaction
_NO_TIME: Final = -1

EMPTY: Final = TransactionState.EMPTY
ONGOING: Final = TransactionState.ONGOING
PREPARE_COMMIT: Final = TransactionState.PREPARE_COMMIT
PREPARE_ABORT: Final = TransactionState.PREPARE_ABORT
COMPLETE_COMMIT: Final = TransactionState.COMPLETE_COMMIT
COMPLETE_ABORT: Final = TransactionState.COMPLETE_ABORT
_PREPARED: Final = (PREPARE_COMMIT, PREPARE_ABORT)


class Transactions:
    """The transactions of a directory. Any thread may use it."""

    def __init__(self, data: DataDirectory, producer_ids: ProducerIds, groups: Groups) -> None:
        self._data = data
        self._producer_ids = producer_ids
        self._groups = groups
        self._log = TransactionLog(data)
        self._lock = make_rlock()
        self._transactions: dict[str, Transaction] | None = None  # read when first needed

    # ---------------------------------------------------------------------------------------------------- of producers

    def init(self, transactional_id: str, timeout_ms: int) -> ProducerIdentity:
        """Return the identity of a new producer. The previous one is fenced, and its open transaction is ended."""
        if not transactional_id or len(write_text(transactional_id)) > MAX_STRING:
            raise InvalidInput(f"a transactional id has 1 to {MAX_STRING} bytes, not {transactional_id[:80]!r}")
        if not 0 < timeout_ms <= MAX_TIMEOUT_MS:
            raise WrongTimeout(f"transaction.timeout.ms is from 1 to {MAX_TIMEOUT_MS}, not {timeout_ms}")
        transaction = self._transaction(transactional_id)
        with transaction.lock:
            self._log.settle(transaction)
            self._end_what_is_open(transaction)
            value = transaction.value
            if value is None or value.producer_epoch >= LAST_EPOCH:
                producer_id, epoch = self._producer_ids.next(), 0
            else:
                producer_id, epoch = value.producer_id, value.producer_epoch + 1
            new = TransactionLogValue(
                producer_id=producer_id,
                previous_producer_id=producer_id if value is None else value.producer_id,
                producer_epoch=epoch,
                transaction_timeout_ms=timeout_ms,
                transaction_status=EMPTY,
                transaction_partitions=None,
                transaction_last_update_timestamp_ms=self._later_than(value),
                transaction_start_timestamp_ms=_NO_TIME,
            )
            self._log.put(transaction, new, flush=True)
            return ProducerIdentity(producer_id, epoch)

    def add_partitions(
        self, transactional_id: str, producer: ProducerIdentity, partitions: Iterable[TopicPartition]
    ) -> None:
        """Add partitions to the transaction. The first ones begin it."""
        transaction = self._transaction(transactional_id)
        with transaction.lock:
            self._log.settle(transaction)
            value = transaction.of(producer)
            if value.transaction_status in _PREPARED:
                raise TransactionIsEnding(f"the last transaction of {transactional_id!r} has not ended everywhere")
            is_open = value.transaction_status == ONGOING
            present = set(partitions_of(value)) if is_open else set()
            added = present.union(partitions)
            if is_open and added == present:
                return
            for partition in added - present:
                self._data.log(*partition)  # raises if it does not exist
            now_ms = self._later_than(value)
            begun_ms = value.transaction_start_timestamp_ms if is_open else now_ms
            self._log.put(transaction, changed(value, ONGOING, now_ms, partitions=added, begun_ms=begun_ms))

    def end(self, transactional_id: str, producer: ProducerIdentity, *, commit: bool) -> None:
        """Commit or abort the transaction. Repeating the same request is no error."""
        transaction = self._transaction(transactional_id)
        with transaction.lock:
            self._log.settle(transaction)
            value = transaction.of(producer)
            prepared, completed = (PREPARE_COMMIT, COMPLETE_COMMIT) if commit else (PREPARE_ABORT, COMPLETE_ABORT)
            if value.transaction_status == ONGOING:
                self._prepare(transaction, value, prepared)
            elif value.transaction_status == completed:
                return
            elif value.transaction_status != prepared:
                state = TransactionState(value.transaction_status).name
                raise WrongTransactionState(
                    f"the transaction of {transactional_id!r} cannot be {'committed' if commit else 'aborted'}: "
                    f"it is {state}"
                )
            self._finish(transaction)

    def abort_timed_out(self, now_ms: int) -> list[str]:
        """Abort transactions that timed out, and fence their producers. Return the transactional ids."""
        aborted = []
        attempts = Attempts()  # one that cannot be ended does not keep others open
        for transaction in list(self._all().values()):
            with attempts, transaction.lock:
                self._log.settle(transaction)
                value = transaction.value
                if value is None or value.transaction_status != ONGOING:
                    continue
                if now_ms - value.transaction_start_timestamp_ms > value.transaction_timeout_ms:
                    self._end_what_is_open(transaction)
                    aborted.append(transaction.id)
        attempts.finish()
        return aborted

    def state(self, transactional_id: str) -> TransactionLogValue | None:
        """The state of a transactional id; None if it was never used."""
        known = self._all().get(transactional_id)
        return None if known is None else known.value

    # --------------------------------------------------------------------------------------------------------- endings

    def _prepare(self, transaction: Transaction, value: TransactionLogValue, state: TransactionState) -> None:
        """Write the decision. For a commit, flush the data first, and then the decision, before anybody can see it."""
        commit = state is PREPARE_COMMIT
        if commit:
            self._flush(partitions_of(value))
        self._log.put(transaction, changed(value, state, self._later_than(value)), flush=commit)

    def _finish(self, transaction: Transaction, *, recovered: bool = False) -> None:
        """Write the marker into every partition, and complete the transaction.

        `recovered`: partitions may have the marker already, and data of the next transaction after it.
        """
        value = transaction.value
        assert value is not None
        assert value.transaction_status in _PREPARED
        commit = value.transaction_status == PREPARE_COMMIT
        decided_ms = value.transaction_last_update_timestamp_ms
        for partition in partitions_of(value):
            if not (recovered and self._has_ended(value, partition, decided_ms)):
                self._mark(transaction, value, partition, commit=commit)
        if commit:
            self._flush(partitions_of(value))
        state = COMPLETE_COMMIT if commit else COMPLETE_ABORT
        completed = changed(value, state, max(self._data.now_ms(), decided_ms), partitions=())
        if value.client_transaction_version >= _EPOCH_BUMPS and value.next_producer_id != NO_PRODUCER_ID:
            completed = replace(completed, producer_id=value.next_producer_id, producer_epoch=0, next_producer_id=-1)
        self._log.put(transaction, completed)

    def _end_what_is_open(self, transaction: Transaction) -> None:
        """Finish a decided transaction; abort an open one, with an epoch larger than that of the previous producer."""
        value = transaction.value
        if value is None:
            return
        if value.transaction_status in _PREPARED:
            self._finish(transaction, recovered=True)
        elif value.transaction_status == ONGOING:
            fenced = replace(value, producer_epoch=min(value.producer_epoch + 1, MAX_EPOCH))
            self._log.put(transaction, changed(fenced, PREPARE_ABORT, self._later_than(value)))
            self._finish(transaction)
        self._abort_strays(transaction)

    def _abort_strays(self, transaction: Transaction) -> None:
        """Abort transactions that the producer id has open in any log, though it should have none."""
        value = transaction.value
        assert value is not None
        fenced = replace(value, producer_epoch=min(value.producer_epoch + 1, MAX_EPOCH))
        for log in self._data.logs:
            if open_since(log, value.producer_id) is not None:
                self._mark(transaction, fenced, log.partition, commit=False)

    def _has_ended(self, value: TransactionLogValue, partition: TopicPartition, decided_ms: int) -> bool:
        """Whether a partition has the marker, and already data of the next transaction after it."""
        log = self._partition(partition)
        since = None if log is None else open_since(log, value.producer_id)
        return log is not None and since is not None and has_marker(log, value.producer_id, decided_ms, before=since)

    def _mark(
        self, transaction: Transaction, value: TransactionLogValue, partition: TopicPartition, *, commit: bool
    ) -> None:
        log = self._partition(partition)
        if log is None:
            return  # deleted meanwhile
        timestamp_ms = max(self._data.now_ms(), value.transaction_last_update_timestamp_ms)
        epoch = self._log.coordinator_epoch(transaction)
        try:
            write_marker(log, value.producer_id, value.producer_epoch, epoch, commit=commit, timestamp_ms=timestamp_ms)
        except AppendRefused as refused:
            if refused.code is not ErrorCode.INVALID_PRODUCER_EPOCH:
                raise
            return  # the log has seen a later epoch, so the transaction has ended there
        if partition.topic == CONSUMER_OFFSETS:
            self._groups.note_marker(partition, Producer(value.producer_id, value.producer_epoch), commit=commit)

    def _flush(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            log = self._partition(partition)
            if log is not None:
                log.flush()

    def _partition(self, partition: TopicPartition) -> Log | None:
        try:
            return self._data.log(*partition)
        except UnknownPartition:
            return None

    # ------------------------------------------------------------------------------------------------------ all of them

    def _later_than(self, value: TransactionLogValue | None) -> int:
        """The current time, but after the last change: the time of a marker shows which transaction it ends."""
        now_ms = self._data.now_ms()
        return now_ms if value is None else max(now_ms, value.transaction_last_update_timestamp_ms + 1)

    def _transaction(self, transactional_id: str) -> Transaction:
        with self._lock:
            known = self._all()
            if transactional_id not in known:
                known[transactional_id] = Transaction(transactional_id)
            return known[transactional_id]

    def _all(self) -> dict[str, Transaction]:
        """All transactional ids. The first call reads them, and repairs what a crash has left."""
        with self._lock:
            if self._transactions is None or self._log.is_gone:
                found = self._log.read()
                self._recover(found.values())
                self._transactions = found
            return self._transactions

    def _recover(self, transactions: Iterable[Transaction]) -> None:
        """Finish decided transactions, and abort those that should not be open, before any producer begins."""
        opened = {
            producer_id for log in self._data.logs for producer_id in list(log.producers.open_transactions.values())
        }
        for transaction in transactions:
            assert transaction.value is not None
            if transaction.value.transaction_status in _PREPARED:
                self._finish(transaction, recovered=True)
            if transaction.value.transaction_status != ONGOING and transaction.value.producer_id in opened:
                self._abort_strays(transaction)

    def read(self) -> None:
        """Read the state, unless that was done already."""
        self._all()
