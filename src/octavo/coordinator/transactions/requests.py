"""Requests of transactional producers, and their answers. Fields are called as in Kafka's protocol."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from octavo.coordinator.shard import Producer
from octavo.errors import ErrorCode

Partition = tuple[str, int]

NO_PRODUCER: Final = Producer(-1, -1)


class InitRequest(NamedTuple):
    """A producer wants an identity."""

    transactional_id: str
    transaction_timeout_ms: int
    producer: Producer = NO_PRODUCER  # the identity that it has, if it goes on after an error
    enable_2_pc: bool = False
    keep_prepared_txn: bool = False


class InitAnswer(NamedTuple):
    """The identity of a producer."""

    error_code: ErrorCode
    producer: Producer = NO_PRODUCER


class AddRequest(NamedTuple):
    """A transaction will write to partitions."""

    transactional_id: str
    producer: Producer
    partitions: Collection[Partition]
    transaction_version: int = 0  # 2 for clients whose epoch is bumped with each transaction


class EndRequest(NamedTuple):
    """A transaction is to be committed or aborted."""

    transactional_id: str
    producer: Producer
    committed: bool
    transaction_version: int = 0


class EndAnswer(NamedTuple):
    """What came of it, and the identity for the next transaction (version 2)."""

    error_code: ErrorCode
    producer: Producer = NO_PRODUCER


class WriteMarkers(NamedTuple):
    """An effect: write a marker to each of the partitions, then call `TransactionShard.markers_written`."""

    transactional_id: str
    producer: Producer
    partitions: Sequence[Partition]
    commit: bool
    transaction_version: int
    decided_ms: int  # when the transaction was decided; markers are not older
    is_repeated: bool = False  # partitions may have the marker already, and data of the next transaction after it
