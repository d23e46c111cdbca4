"""Transaction markers, which end transactions in their partitions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from octavo.coordinator.shard import Producer
from octavo.coordinator.transactions.epochs import LARGEST_EPOCH
from octavo.coordinator.transactions.requests import Partition, WriteMarkers
from octavo.coordinator.transactions.transaction_shard import TransactionShard
from octavo.errors import AppendRefused, ErrorCode, UnknownPartition
from octavo.log.append.readiness import ALLOWANCE, MustWait, TakesLong, Unperformed
from octavo.log.coordinator.host import Host
from octavo.log.log import Log
from octavo.log.names import CONSUMER_OFFSETS, TopicPartition
from octavo.log.origin import Origin
from octavo.log.ownership.fork_safe import make_lock
from octavo.log.view import Isolation
from octavo.records.control import end_transaction_marker
from octavo.schemas.transaction_state import TransactionLogValue

if TYPE_CHECKING:
    from octavo.log.coordinator.groups import Groups
    from octavo.log.directory.data_directory import DataDirectory


_FEW: Final = 16  # partitions


class Markers:
    """Writes the markers of decided transactions into the logs of a directory. Any thread may use it."""

    def __init__(self, data: DataDirectory, groups: Groups) -> None:
        self._data: Final = data
        self._groups: Final = groups
        self._lock: Final = make_lock()
        self._writing: Final[set[tuple[str, Producer]]] = set()  # the transactions whose markers a thread writes now

    def write(self, host: Host[TransactionShard], wanted: WriteMarkers, durable: bool) -> None:
        """Write the marker into every partition of a transaction, and complete the transaction.

        durable: the transaction is not complete before the markers of a commit are on the disk; always so if they are
            repeated, as nobody knows then what was promised

        A thread with an `ALLOWANCE` writes only markers that `are_few`, and does not wait for others: what is left is
        `Unperformed`.

        If another thread writes them now, which may take long, nothing is done: they are tried again if it fails.
        """
        identity = (wanted.transactional_id, wanted.producer)
        is_first = False
        try:
            with self._lock:
                is_first = identity not in self._writing
                if is_first:
                    self._writing.add(identity)
            if is_first:
                self._write(host, wanted, durable)
        finally:
            if is_first:
                self._writing.discard(identity)

    def _write(self, host: Host[TransactionShard], wanted: WriteMarkers, durable: bool) -> None:
        done = 0
        try:
            if not host.ask(lambda shard: shard.is_decided(wanted)):
                return  # what was left of them was written by another thread, and the next transaction may be open
            for partition in wanted.partitions:
                if not (wanted.is_repeated and self._has_ended(wanted, partition)):
                    self._mark(host, wanted.producer, partition, commit=wanted.commit, since_ms=wanted.decided_ms)
                done += 1
            if wanted.commit and (durable or wanted.is_repeated):
                self.flush(wanted.partitions)
            host.run(lambda shard: shard.markers_written(wanted.transactional_id, wanted.producer))
        except TakesLong:
            raise Unperformed(wanted._replace(partitions=wanted.partitions[done:])) from None

    def are_few(self, wanted: WriteMarkers) -> bool:
        """Return whether the markers can be written without a noticeable pause, unless somebody is at a log.

        A marker among the offsets of groups is told to their coordinator, which may have to be waited for.
        """
        is_short = len(wanted.partitions) <= _FEW and not wanted.is_repeated
        return is_short and all(topic != CONSUMER_OFFSETS for topic, _ in wanted.partitions)

    def abort_strays(
        self, host: Host[TransactionShard], value: TransactionLogValue, producer_id: int | None = None
    ) -> None:
        """Abort transactions that a producer id has open in any log, though it should have none.

        producer_id: the one of before, where the epochs were used up since
        """
        strays = {value.producer_id: value.producer_epoch}
        if producer_id is not None and producer_id != value.producer_id:
            strays[producer_id] = LARGEST_EPOCH
        for stray, epoch in strays.items():
            fenced = Producer(stray, min(epoch + 1, LARGEST_EPOCH))
            for log in self._data.logs:
                if open_since(log, stray) is not None:
                    updated_ms = value.transaction_last_update_timestamp_ms
                    self._mark(host, fenced, log.partition, commit=False, since_ms=updated_ms)

    def flush(self, partitions: Iterable[Partition]) -> None:
        """Wait until what is in the logs of some partitions is on the disk."""
        for partition in partitions:
            log = self._log(partition)
            if log is not None:
                log.flush()

    def _has_ended(self, wanted: WriteMarkers, partition: Partition) -> bool:
        """Whether a partition has the marker, and already data of the next transaction after it."""
        log = self._log(partition)
        since = None if log is None else open_since(log, wanted.producer.id)
        if log is None or since is None:
            return False
        return has_marker(log, wanted.producer.id, wanted.decided_ms, before=since)

    def _mark(
        self, host: Host[TransactionShard], producer: Producer, partition: Partition, *, commit: bool, since_ms: int
    ) -> None:
        log = self._log(partition)
        if log is None:
            return  # deleted meanwhile
        if ALLOWANCE.left is not None and log.would_wait():
            raise MustWait
        timestamp_ms = max(self._data.now_ms(), since_ms)
        epoch = host.log.leader_epoch
        try:
            write_marker(log, producer.id, producer.epoch, epoch, commit=commit, timestamp_ms=timestamp_ms)
        except AppendRefused as refused:
            if refused.code is not ErrorCode.INVALID_PRODUCER_EPOCH:
                raise
            return  # the log has seen a later epoch, so the transaction has ended there
        if partition[0] == CONSUMER_OFFSETS:
            self._groups.note_marker(TopicPartition(*partition), producer, commit=commit)

    def _log(self, partition: Partition) -> Log | None:
        try:
            return self._data.log(*partition)
        except UnknownPartition:
            return None


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
