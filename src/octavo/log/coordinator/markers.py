"""The markers that end transactions, in the partitions that they are for."""

from __future__ import annotations

from octavo.log.log import Log
from octavo.log.reading import Isolation
from octavo.log.span import Origin
from octavo.records.control import end_transaction_marker


def open_since(log: Log, producer_id: int) -> int | None:
    """Where the open transaction of a producer begins; None where it has none in this partition."""
    entry = log.producers.entries.get(producer_id)
    return None if entry is None or entry.txn_first_offset < 0 else entry.txn_first_offset


def write_marker(
    log: Log, producer_id: int, producer_epoch: int, coordinator_epoch: int, *, commit: bool, timestamp_ms: int
) -> None:
    """End a transaction in one partition. Raises `AppendRefused`.

    There is one coordinator as long as the directory is open. So its epoch, that of the leader of
    `__transaction_state`, is raised where a log has seen a later one: then that topic has been made anew.
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
    """Whether the producer has a marker of that time or a later one before an offset."""
    first = log.offset_for_timestamp(since_ms)
    if first is None or first.offset >= before:
        return False
    for batch in log.reader(first.offset, isolation=Isolation.LOG_END, buffer_size=1 << 20):
        if batch.base_offset >= before:
            break
        if batch.is_control and batch.producer_id == producer_id and batch.max_timestamp_ms >= since_ms:
            return True
    return False
