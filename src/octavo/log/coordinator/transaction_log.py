"""Reads and writes the records of `__transaction_state`: the state of each transactional id."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from octavo.errors import OctavoError, ProducerFenced, UnknownProducer
from octavo.log.coordinator.internal_topic import InternalTopic, replay
from octavo.log.names import TRANSACTION_STATE, TopicPartition
from octavo.log.origin import Origin
from octavo.log.ownership.fork_safe import make_rlock
from octavo.records import Batch, BatchBuilder
from octavo.records.layout import NO_PRODUCER_ID
from octavo.schemas.transaction_state import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
    TransactionState,
    read_transaction_key,
)
from octavo.schemas.versioned import read_value, write_key, write_value

if TYPE_CHECKING:
    from octavo.log.directory.data_directory import DataDirectory

_FEATURE: Final = "transaction.version"  # from level 1 on the records are flexible


class ProducerIdentity(NamedTuple):
    """Producer id and epoch, as in the producer's batches."""

    producer_id: int
    epoch: int


class Transaction:
    """The last transaction of a transactional id. Hold `lock` to change it."""

    __slots__ = ("id", "is_in_doubt", "lock", "value")

    def __init__(self, transactional_id: str) -> None:
        self.id: Final = transactional_id
        self.lock: Final = make_rlock()
        self.value: TransactionLogValue | None = None  # as in the topic
        self.is_in_doubt = False  # an exception interrupted a write: the topic has the truth, `value` may not

    def of(self, producer: ProducerIdentity) -> TransactionLogValue:
        """Return the state, if the producer has its current id and epoch. Otherwise raises `CoordinatorRefused`."""
        value = self.value
        if value is None or value.producer_id != producer.producer_id:
            raise UnknownProducer(f"transactional id {self.id!r} is not that of producer {producer.producer_id}")
        if value.producer_epoch != producer.epoch:
            raise ProducerFenced(
                f"another producer has the transactional id {self.id!r} now: epoch {producer.epoch} of producer "
                f"{producer.producer_id} is over, {value.producer_epoch} has begun"
            )
        return value


class TransactionLog:
    """The topic `__transaction_state`. Writers hold the lock of the transaction."""

    def __init__(self, data: DataDirectory) -> None:
        self._data = data
        self._topic = InternalTopic(data, TRANSACTION_STATE)
        self._known_id: UUID | None = None

    @property
    def is_gone(self) -> bool:
        """Whether the topic that was read or written has been deleted since."""
        return self._known_id is not None and self._known_id != self._topic.id

    def read(self) -> dict[str, Transaction]:
        """Read the state of every transactional id. Raises `BadDirectory`."""
        self._known_id = self._topic.id
        found: dict[str, Transaction] = {}
        for log in self._topic.logs():
            replay(log, 0, lambda batch: _take(found, batch))
        return found

    def put(self, transaction: Transaction, value: TransactionLogValue, *, flush: bool = False) -> None:
        """Write the new state of a transaction, and set its `value`. With `flush`, wait for the disk."""
        log = self._topic.log_for(transaction.id)
        self._known_id = self._topic.id
        version = 1 if self._data.feature_level(_FEATURE) else 0
        if not version:
            value = replace(value, previous_producer_id=NO_PRODUCER_ID, next_producer_id=NO_PRODUCER_ID)
        builder = BatchBuilder()
        key = write_key(TransactionLogKey(transactional_id=transaction.id))
        builder.append(key, write_value(value, version), timestamp_ms=self._data.now_ms())
        transaction.is_in_doubt = True
        try:
            log.append(builder.build(), origin=Origin.COORDINATOR)
        except (OctavoError, OSError):
            transaction.is_in_doubt = False  # nothing was written
            raise
        transaction.value = value
        transaction.is_in_doubt = False
        if flush:
            log.flush()

    def settle(self, transaction: Transaction) -> None:
        """Read the state of a transaction again if an exception interrupted a write. The caller holds its lock."""
        if transaction.is_in_doubt:
            known = self.read().get(transaction.id)
            transaction.value = None if known is None else known.value
            transaction.is_in_doubt = False

    def coordinator_epoch(self, transaction: Transaction) -> int:
        """The epoch of a transaction's coordinator: the leader epoch of its partition of the topic."""
        return self._topic.log_for(transaction.id).leader_epoch


def changed(
    value: TransactionLogValue,
    state: TransactionState,
    now_ms: int,
    *,
    partitions: Iterable[TopicPartition] | None = None,
    begun_ms: int | None = None,
) -> TransactionLogValue:
    """Return the changed state of a transaction. Fields that are not given stay the same."""
    return replace(
        value,
        previous_producer_id=value.producer_id,
        transaction_status=state,
        transaction_partitions=value.transaction_partitions if partitions is None else _schema(partitions),
        transaction_last_update_timestamp_ms=now_ms,
        transaction_start_timestamp_ms=value.transaction_start_timestamp_ms if begun_ms is None else begun_ms,
    )


def partitions_of(value: TransactionLogValue) -> list[TopicPartition]:
    """The partitions of a transaction."""
    return [
        TopicPartition(each.topic, number)
        for each in value.transaction_partitions or ()
        for number in each.partition_ids
    ]


def _schema(partitions: Iterable[TopicPartition]) -> tuple[PartitionsSchema, ...]:
    topics: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        topics.setdefault(topic, []).append(number)
    return tuple(PartitionsSchema(topic=topic, partition_ids=tuple(numbers)) for topic, numbers in topics.items())


def _take(found: dict[str, Transaction], batch: Batch) -> None:
    if batch.is_control:
        return
    for record in batch:
        key = None if record.key is None else read_transaction_key(record.key)
        if key is None:
            continue
        if record.value is None:
            found.pop(key.transactional_id, None)
        else:
            transaction = found.setdefault(key.transactional_id, Transaction(key.transactional_id))
            transaction.value = read_value(TransactionLogValue, record.value)
