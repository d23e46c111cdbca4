"""A producer that appends to a log of Octavo by itself, with the numbers that it is told: no client, no coordinator.

orders = BareProducer(data.log("orders", 0), producer_id=7, transactional=True)
orders.append(b"a", b"b")
orders.end(commit=False)
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Final

import pytest

from octavo.errors import AppendRefused, ErrorCode
from octavo.log import Appended, Log
from octavo.log.origin import Origin
from octavo.records import BatchBuilder, Codec
from octavo.records.control import end_transaction_marker
from octavo.records.sequence import increment_sequence
from tests.kafka.serving import ProducerState, last_batch_of


def now_ms() -> int:
    """The time by which brokers forget producers, and so what batches of producers should have."""
    return time.time_ns() // 1_000_000


def batch_of(
    *values: bytes,
    producer_id: int,
    epoch: int = 0,
    sequence: int = 0,
    transactional: bool = False,
    codec: Codec = Codec.NONE,
    key: bytes | None = None,
) -> bytes:
    """A batch with these values, and the same key for all."""
    builder = BatchBuilder(
        codec=codec,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=transactional,
    )
    return _filled(builder, [(key, value) for value in values])


def _filled(
    builder: BatchBuilder, pairs: Iterable[tuple[bytes | None, bytes | None]], timestamp_ms: int | None = None
) -> bytes:
    timestamp_ms = now_ms() if timestamp_ms is None else timestamp_ms
    for key, value in pairs:
        builder.append(key, value, timestamp_ms=timestamp_ms)
    return builder.build()


class BareProducer:
    """One producer in one partition."""

    def __init__(
        self,
        log: Log,
        producer_id: int,
        epoch: int = 0,
        *,
        transactional: bool = False,
        sequence: int = 0,
        timestamp_ms: int | None = None,
    ) -> None:
        self.producer_id: Final = producer_id
        self.epoch: Final = epoch
        self.sequence = sequence  # of the next record
        self._log = log
        self._transactional = transactional
        self._timestamp_ms = timestamp_ms  # of all its records; else that of the appending

    def append(self, *values: bytes, codec: Codec = Codec.NONE) -> Appended:
        """Append a batch with these values and no keys, which follows what was last appended."""
        return self.append_pairs([(None, value) for value in values], codec)

    def append_pairs(self, pairs: Sequence[tuple[bytes | None, bytes | None]], codec: Codec = Codec.NONE) -> Appended:
        """Append a batch with these keys and values."""
        builder = BatchBuilder(
            codec=codec,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.sequence,
            transactional=self._transactional,
        )
        done = self._log.append(_filled(builder, pairs, self._timestamp_ms))
        self.sequence = increment_sequence(self.sequence, len(pairs))
        return done

    def end(self, *, commit: bool, coordinator_epoch: int = 0) -> None:
        """End the transaction, as a coordinator would."""
        marker = end_transaction_marker(
            commit,
            timestamp_ms=now_ms(),
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            coordinator_epoch=coordinator_epoch,
        )
        self._log.append(marker, origin=Origin.COORDINATOR)


def check_refusals(log: Log, java: ProducerState) -> None:
    """Octavo answers duplicates, gaps and old epochs of an idempotent producer that wrote to Kafka; and takes more."""

    def append(*values: bytes, epoch: int, sequence: int) -> Appended:
        return log.append(batch_of(*values, key=b"key", producer_id=java.producer_id, epoch=epoch, sequence=sequence))

    batch, offset = last_batch_of(log, java.producer_id)
    end_offset = log.end_offset
    again = log.append(batch)
    assert (again.is_duplicate, again.base_offset, log.end_offset) == (True, offset, end_offset)
    for epoch, sequence, code in (
        (java.epoch, java.last_sequence + 2, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (java.epoch, java.last_sequence, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (java.epoch + 1, 1, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
    ):
        with pytest.raises(AppendRefused) as refused:
            append(b"x", b"y", epoch=epoch, sequence=sequence)
        assert refused.value.code is code
    assert append(b"from Octavo", epoch=java.epoch, sequence=java.last_sequence + 1).base_offset == end_offset
    assert append(b"of a new epoch", epoch=java.epoch + 1, sequence=0).base_offset == end_offset + 1
    with pytest.raises(AppendRefused) as refused:
        append(b"late", epoch=java.epoch, sequence=java.last_sequence + 2)
    assert refused.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
