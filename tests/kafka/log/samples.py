"""Batches for the tests of logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from octavo.records import end_transaction_marker
from octavo.records.layout import BATCH_HEADER
from tests.batches import TIME_MS, build
from tests.corruption import forge
from tests.kafka.answers import BatchSpec, RecordSpec


def batch(count: int = 1, *, size: int = 10, timestamp_ms: int = TIME_MS, step_ms: int = 0, **fields: Any) -> bytes:
    """A client's batch: `count` records with values of `size` bytes, `step_ms` apart; `fields` are `BatchSpec`'s."""
    return build(
        BatchSpec(
            records=[
                RecordSpec(timestamp_ms=timestamp_ms + number * step_ms, key=b"key", value=bytes(size))
                for number in range(count)
            ],
            **fields,
        )
    )


def stamped(*timestamps_ms: int, **fields: Any) -> bytes:
    """A batch with a record for each timestamp."""
    return build(BatchSpec(records=[RecordSpec(timestamp_ms=t, key=b"k", value=b"v") for t in timestamps_ms], **fields))


def keyed(*keys: bytes | None, **fields: Any) -> bytes:
    """A batch with a record for each key."""
    return build(BatchSpec(records=[RecordSpec(timestamp_ms=TIME_MS, key=key, value=b"v") for key in keys], **fields))


def produced(producer_id: int, epoch: int, sequence: int, count: int = 1, **fields: Any) -> bytes:
    """A batch of an idempotent producer."""
    return batch(count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, **fields)


def transacted(producer_id: int, epoch: int, sequence: int, count: int = 1, **fields: Any) -> bytes:
    """A batch of a transaction."""
    return produced(producer_id, epoch, sequence, count, transactional=True, **fields)


def marker(
    commit: bool, producer_id: int, epoch: int, coordinator_epoch: int = 0, timestamp_ms: int = TIME_MS
) -> bytes:
    """What ends a transaction."""
    return end_transaction_marker(
        commit,
        timestamp_ms=timestamp_ms,
        producer_id=producer_id,
        producer_epoch=epoch,
        coordinator_epoch=coordinator_epoch,
    )


def changed(data: bytes, **fields: int) -> bytes:
    """A batch of magic 2 with other header fields, and the checksum put right."""
    header = BATCH_HEADER.read(data)._replace(**fields)
    return forge.sealed(BATCH_HEADER.write(header) + data[BATCH_HEADER.size :])


def forged(records: Sequence[bytes], **fields: Any) -> bytes:
    """A client's batch around these records, whatever they are."""
    return forge.batch(b"".join(records), **{"count": len(records), "base_offset": 0, **fields})


def replicated(data: bytes, offset: int, epoch: int = 0) -> bytes:
    """A batch of magic 2 as a leader sends it to its followers."""
    return changed(data, base_offset=offset, leader_epoch=epoch)
