"""The records of `__transaction_state`: the state of the last transaction of each transactional id."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, ClassVar, Final

from octavo.schemas.entity import entity, kafka
from octavo.schemas.versioned import (
    CoordinatorKey,
    CoordinatorValue,
    UnknownKey,
    read_any_key,
    read_key,
    read_number,
)


class TransactionState(IntEnum):
    """The state of a transaction, with Kafka's numbers."""

    EMPTY = 0  # no transaction since the producer id was initialized
    ONGOING = 1
    PREPARE_COMMIT = 2  # the commit is decided; the markers are still to be written to every partition
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6  # the transactional id has expired; never written
    PREPARE_EPOCH_FENCE = 7  # never written


@entity
class PartitionsSchema:
    """The partitions of one topic that take part in a transaction."""

    topic: str = kafka("string")
    partition_ids: tuple[int, ...] = kafka("[]int32")


@entity
class TransactionLogValue(CoordinatorValue):
    """The producer of a transactional id, and its last transaction. A record without a value deletes the id."""

    VERSIONS: ClassVar = range(2)
    FIRST_FLEXIBLE: ClassVar = 1

    producer_id: int = kafka("int64")
    previous_producer_id: int = kafka("int64", since=1, tag=0, default=-1)
    next_producer_id: int = kafka("int64", since=1, tag=1, default=-1)
    producer_epoch: int = kafka("int16")
    next_producer_epoch: int = kafka("int16", since=1, tag=3, default=-1)
    transaction_timeout_ms: int = kafka("int32")
    transaction_status: int = kafka("int8")
    transaction_partitions: tuple[PartitionsSchema, ...] | None = kafka("[]", nullable=True)
    transaction_last_update_timestamp_ms: int = kafka("int64")
    transaction_start_timestamp_ms: int = kafka("int64")
    client_transaction_version: int = kafka("int16", since=1, tag=2, default=0)


@entity
class TransactionLogKey(CoordinatorKey[TransactionLogValue]):
    """The key of a record of `__transaction_state`: a transactional id."""

    TYPE: ClassVar = 0
    VALUE: ClassVar = TransactionLogValue

    transactional_id: str = kafka("string")


KINDS: Final[dict[int, type[CoordinatorKey[Any]]]] = {TransactionLogKey.TYPE: TransactionLogKey}


def read_transaction_key(key: bytes) -> TransactionLogKey | None:
    """Read a key of `__transaction_state`; returns None for a key of another kind. Raises a `FormatError`."""
    return read_key(TransactionLogKey, key) if read_number(key) == TransactionLogKey.TYPE else None


def read_any_transaction_key(key: bytes) -> CoordinatorKey[Any] | UnknownKey:
    """Read a key of `__transaction_state`, of any kind. Raises a `FormatError` if it is malformed."""
    return read_any_key(KINDS, key)
