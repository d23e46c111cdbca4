"""Transaction markers, which end transactions in their partitions."""

from __future__ import annotations

from octavo.log.log import Log
from octavo.log.origin import Origin
from octavo.log.view import Isolation
from octavo.records.control import end_transaction_marker


def open_since(log: Log, producer_id: int) -> int | None:
    """The first offset of a producer's open transaction; None if it has none in this partition."""
    entry = log.producers.entries.get(producer_id)
    return None if entry is None or entry.txn_first_offset < 0 else entry.txn_first_offset


def write_marker(
    log: Log, producer_id: int, producer_epoch: int, coordinator_epoch: int, *, commit: bool, timestamp_ms: int
) -> None:
    """Write the marker that ends a transaction in one partition. Raises `AppendRefused`.

    There is one coordinator while the directory is open. Its epoch is the leader epoch of `__transaction_state`. If the
    log has seen a larger epoch, that topic has been recreated, and the marker gets the larger epoch.
    """
    entry = log.producers.entries.get(producer_id)
    if entry is not None:
        coordinator_epoch = max(coordinator_epoch, entry.coordinator_epoch)
    marker = end_transaction_marker(
        commit,
        timestamp_ms=timestamp_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        coordinator_epoch=coordinator_epoch,
    )
    log.append(marker, origin=Origin.COORDINATOR)


def has_marker(log: Log, producer_id: int, since_ms: int, *, before: int) -> bool:
    """Whether a log has a marker of the producer with time `since_ms` or later, before offset `before`."""
    first = log.offset_for_timestamp(since_ms)
    if first is None or first.offset >= before:
        return False
    for batch in log.reader(first.offset, isolation=Isolation.LOG_END, buffer_size=1 << 20):
        if batch.base_offset >= before:
            break
        if batch.is_control and batch.producer_id == producer_id and batch.max_timestamp_ms >= since_ms:
            return True
    return False
