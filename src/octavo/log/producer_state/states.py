"""The producer state of a partition: each producer's epoch, its last batches, and its open transaction.

With this state, a batch that is sent again is answered with its existing offset, a batch out of order is refused, and a
producer with an old epoch is fenced (Kafka's `ProducerStateManager` and `ProducerAppendInfo`). The state is written to
`.snapshot` files (`snapshot`), and restored from them and the batches after them (`replay`).

An entry with its five remembered batches takes about 500 bytes, because these are kept as numbers, not as objects.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from octavo.errors import AppendRefused, ErrorCode
from octavo.log.origin import Origin
from octavo.log.producer_state.producer_batch import ProducerBatch
from octavo.log.segment.transaction_index import AbortedEntry, TransactionIndex
from octavo.records.layout import MAX_SEQUENCE, NO_OFFSET, NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP
from octavo.records.sequence import decrement_sequence

EXPIRATION_MS: Final = 86_400_000  # producer.id.expiration.ms: an idle producer is forgotten after this time
REMEMBERED: Final = 5  # batches per producer, as many as a client may have in flight
NO_COORDINATOR_EPOCH: Final = -1

# Positions of the fields of a remembered batch. An entry holds the batches one after the other in one array.
_LAST_SEQUENCE: Final = 0
_LAST_OFFSET: Final = 1
_OFFSET_DELTA: Final = 2
_TIMESTAMP: Final = 3
_FIELDS: Final = 4
_FULL: Final = REMEMBERED * _FIELDS


class RememberedBatch(NamedTuple):
    """One of the last batches of a producer."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int

    @property
    def first_sequence(self) -> int:
        """The sequence number of the first record in the batch."""
        return decrement_sequence(self.last_sequence, self.offset_delta)

    @property
    def first_offset(self) -> int:
        """The offset of the first record in the batch."""
        return self.last_offset - self.offset_delta


class CompletedTransaction(NamedTuple):
    """A transaction with data in this partition that was ended by a marker."""

    producer_id: int
    first_offset: int
    last_offset: int  # offset of the marker
    is_aborted: bool


class ProducerEntry:
    """The state of one producer."""

    __slots__ = ("coordinator_epoch", "epoch", "last_timestamp_ms", "numbers", "txn_first_offset")

    def __init__(
        self,
        epoch: int = NO_PRODUCER_EPOCH,
        coordinator_epoch: int = NO_COORDINATOR_EPOCH,
        last_timestamp_ms: int = NO_TIMESTAMP,
        txn_first_offset: int = NO_OFFSET,
        batch: RememberedBatch | None = None,
    ) -> None:
        self.epoch = epoch
        self.coordinator_epoch = coordinator_epoch  # epoch of the coordinator that wrote the producer's last marker
        self.last_timestamp_ms = last_timestamp_ms
        self.txn_first_offset = txn_first_offset  # -1 if no transaction is open
        self.numbers = array("q", () if batch is None else batch)  # fields of the remembered batches

    @property
    def batches(self) -> list[RememberedBatch]:
        """The producer's last batches in its current epoch, the oldest first."""
        numbers = self.numbers
        return [RememberedBatch(*numbers[at : at + _FIELDS]) for at in range(0, len(numbers), _FIELDS)]

    @property
    def last_sequence(self) -> int:
        """The sequence number of the producer's last record; -1 if no batch of its epoch is known."""
        return self.numbers[_LAST_SEQUENCE - _FIELDS] if self.numbers else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        """The offset of the producer's last record; -1 if no batch of its epoch is known."""
        return self.numbers[_LAST_OFFSET - _FIELDS] if self.numbers else NO_OFFSET

    @property
    def offset_delta(self) -> int:
        """The difference between the last and the first offset of the producer's last batch."""
        return self.numbers[_OFFSET_DELTA - _FIELDS] if self.numbers else 0

    def copy(self) -> ProducerEntry:
        """Return an independent copy."""
        other = ProducerEntry(self.epoch, self.coordinator_epoch, self.last_timestamp_ms, self.txn_first_offset)
        other.numbers = self.numbers[:]
        return other

    def goes_on(self, batch: ProducerBatch) -> bool:
        """Return whether `batch` is a data batch that directly follows the producer's last one, as nearly all do."""
        numbers = self.numbers
        return (
            len(numbers) > 0
            and batch.base_sequence == numbers[_LAST_SEQUENCE - _FIELDS] + 1
            and batch.producer_epoch == self.epoch
            and (batch.is_transactional or self.txn_first_offset < 0)
            and not batch.is_control
        )

    def find_duplicate(self, batch: ProducerBatch) -> RememberedBatch | None:
        """Return the remembered batch with the same epoch and sequence numbers, if there is one."""
        if batch.producer_epoch == self.epoch:
            for at in range(_LAST_SEQUENCE, len(self.numbers), _FIELDS):
                if self.numbers[at] == batch.last_sequence:
                    known = RememberedBatch(*self.numbers[at : at + _FIELDS])
                    if known.first_sequence == batch.base_sequence:
                        return known
        return None

    def take_data(self, batch: ProducerBatch) -> None:
        """Remember a data batch that is in the log."""
        _, epoch, _, last_sequence, base_offset, last_offset, timestamp_ms, is_transactional, _, _ = batch
        numbers = self.numbers
        if self.epoch != epoch:
            del numbers[:]
            self.epoch = epoch
        elif len(numbers) == _FULL:
            del numbers[:_FIELDS]
        numbers.fromlist([last_sequence, last_offset, last_offset - base_offset, timestamp_ms])
        self.last_timestamp_ms = timestamp_ms
        if is_transactional and self.txn_first_offset < 0:
            self.txn_first_offset = base_offset

    def take_marker(self, epoch: int, coordinator_epoch: int, timestamp_ms: int) -> None:
        """Apply a marker that is in the log: the producer's transaction ends."""
        if self.epoch != epoch:
            del self.numbers[:]
            self.epoch = epoch
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp_ms = timestamp_ms
        self.txn_first_offset = NO_OFFSET


class ProducerStates:
    """The producers of one partition. Only the thread that changes the log changes them; any thread may read."""

    def __init__(self) -> None:
        self.entries: dict[int, ProducerEntry] = {}
        self._ongoing: dict[int, int] = {}  # producers with open transactions, by first offset, in order
        self._unreplicated: dict[int, CompletedTransaction] = {}  # by first offset, until consumers may see the marker
        self._has_forgotten = False  # there are forgotten producers whose batches may still be in the log

    @property
    def has_any(self) -> bool:
        """Whether the log may hold batches of producers, known or forgotten."""
        return bool(self.entries) or self._has_forgotten

    # -------------------------------------------------------------------------------------------------------- appends

    def admit(self, batches: Sequence[ProducerBatch], origin: Origin) -> RememberedBatch | None:
        """Check batches that are about to be appended. Returns the batch already in the log if they are duplicates.

        If only some of several batches are duplicates, all are refused; the sender can tell which it has sent before.
        Raises `AppendRefused`.
        """
        if len(batches) == 1:  # nearly always
            batch = batches[0]
            entry = self.entries.get(batch.producer_id)
            if entry is None or entry.goes_on(batch):
                return None  # the producer is unknown, or the batch directly follows its last one
            if origin is Origin.CLIENT:
                duplicate = entry.find_duplicate(batch)
                if duplicate is not None:
                    return duplicate
            _check(entry, batch, origin)
            return None
        return self._admit_several(batches, origin)

    def _admit_several(self, batches: Sequence[ProducerBatch], origin: Origin) -> RememberedBatch | None:
        changed: dict[int, ProducerEntry] = {}
        duplicates: list[RememberedBatch] = []
        for batch in batches:
            known = self.entries.get(batch.producer_id)
            duplicate = None if known is None or origin is not Origin.CLIENT else known.find_duplicate(batch)
            if duplicate is not None:
                duplicates.append(duplicate)
                continue
            entry = changed.get(batch.producer_id)
            if entry is None:
                entry = changed[batch.producer_id] = ProducerEntry() if known is None else known.copy()
            if entry.epoch != NO_PRODUCER_EPOCH:
                _check(entry, batch, origin)
            _apply(entry, batch)
        if not duplicates:
            return None
        if changed:
            raise AppendRefused(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"{len(duplicates)} of {len(batches)} batches are in the log already, and the others are not",
            )
        first_offset, last_offset = duplicates[0].first_offset, duplicates[-1].last_offset
        return duplicates[-1]._replace(last_offset=last_offset, offset_delta=last_offset - first_offset)

    def take(self, batch: ProducerBatch, index: TransactionIndex | None) -> None:
        """Apply a batch that is in the log. If it aborts a transaction, add that to `index`. Raises `OSError`."""
        entry = self.entries.get(batch.producer_id)
        if entry is not None and not (batch.is_transactional or batch.is_control):
            entry.take_data(batch)  # no transaction begins or ends
            return
        done = self._take(batch)
        if done is not None:
            if done.is_aborted and index is not None:
                stable = self._last_stable_offset(done)
                index.append(AbortedEntry(done.producer_id, done.first_offset, done.last_offset, stable))
            self._complete(done)

    def _take(self, batch: ProducerBatch) -> CompletedTransaction | None:
        """Apply a batch. Returns the transaction that it ends, if it ends one that is not empty."""
        entry = self.entries.get(batch.producer_id)
        if entry is None:
            if batch.marker is None and batch.is_control:
                return None  # everything of the transaction has been compacted away
            entry = self.entries[batch.producer_id] = ProducerEntry()
        was_open = entry.txn_first_offset
        _apply(entry, batch)
        if was_open < 0:
            if entry.txn_first_offset >= 0:
                self._ongoing[entry.txn_first_offset] = batch.producer_id
            return None
        if batch.marker is None:
            return None
        return CompletedTransaction(batch.producer_id, was_open, batch.base_offset, not batch.marker.is_commit)

    def _complete(self, transaction: CompletedTransaction) -> None:
        """Mark a transaction as completed. Its data stay unstable until the marker is below the high watermark."""
        self._ongoing.pop(transaction.first_offset, None)
        self._unreplicated[transaction.first_offset] = transaction

    def _last_stable_offset(self, transaction: CompletedTransaction) -> int:
        """Return the last stable offset once `transaction` is completed."""
        for first_offset, producer_id in self._ongoing.items():
            if producer_id != transaction.producer_id:
                return first_offset
        return transaction.last_offset + 1

    # ---------------------------------------------------------------------------------------------------- transactions

    @property
    def first_unstable_offset(self) -> int:
        """The first offset of a transaction that is open, or whose marker consumers may not see yet; -1 for none."""
        first = next(iter(self._ongoing)) if self._ongoing else NO_OFFSET
        if self._unreplicated:
            known = min(self._unreplicated)
            return known if first < 0 else min(first, known)
        return first

    def first_unstable_at(self, high_watermark: int) -> int:
        """Return the `first_unstable_offset` after `on_high_watermark(high_watermark)`."""
        if not self._ongoing and not self._unreplicated:  # nearly always
            return NO_OFFSET
        self.on_high_watermark(high_watermark)
        return self.first_unstable_offset

    def has_open(self, producer_id: int, epoch: int) -> bool:
        """Return whether a producer has a transaction open, with the same epoch."""
        entry = self.entries.get(producer_id)
        return entry is not None and entry.txn_first_offset >= 0 and entry.epoch == epoch

    @property
    def open_transactions(self) -> Mapping[int, int]:
        """The ids of producers with an open transaction, by the first offset of the transaction."""
        return self._ongoing

    def on_high_watermark(self, offset: int) -> None:
        """Treat transactions that ended below `offset` as decided: their markers are visible or deleted."""
        if self._unreplicated:
            over = [first for first, ended in self._unreplicated.items() if ended.last_offset < offset]
            for first in over:
                del self._unreplicated[first]

    # ------------------------------------------------------------------------------------------------------- all of it

    def load(self, entries: Mapping[int, ProducerEntry], now_ms: int, expiration_ms: int) -> None:
        """Replace the state by that of a snapshot, without producers that have expired since."""
        self.clear()
        self.entries = {
            producer_id: entry
            for producer_id, entry in entries.items()
            if not _is_expired(entry, now_ms, expiration_ms)
        }
        self._has_forgotten |= len(self.entries) < len(entries)
        opened = [(entry.txn_first_offset, producer_id) for producer_id, entry in self.entries.items()]
        self._ongoing = dict(sorted(pair for pair in opened if pair[0] >= 0))

    def clear(self) -> None:
        """Forget all producers."""
        self.entries = {}
        self._ongoing = {}
        self._unreplicated = {}

    def expire(self, now_ms: int, expiration_ms: int = EXPIRATION_MS) -> list[int]:
        """Forget producers that have been idle for `expiration_ms` and have no open transaction. Returns their ids."""
        gone = [key for key, entry in self.entries.items() if _is_expired(entry, now_ms, expiration_ms)]
        for producer_id in gone:
            del self.entries[producer_id]
        self._has_forgotten |= bool(gone)
        return gone


def _apply(entry: ProducerEntry, batch: ProducerBatch) -> None:
    if batch.marker is not None:
        entry.take_marker(batch.producer_epoch, batch.marker.coordinator_epoch, batch.marker.timestamp_ms)
    elif not batch.is_control:
        entry.take_data(batch)


def _is_expired(entry: ProducerEntry, now_ms: int, expiration_ms: int) -> bool:
    return entry.txn_first_offset < 0 and now_ms - entry.last_timestamp_ms >= expiration_ms


def _check(entry: ProducerEntry, batch: ProducerBatch, origin: Origin) -> None:
    """Check a batch against the state of its producer. Raises `AppendRefused` if they do not fit."""
    epoch = batch.producer_epoch
    if epoch < entry.epoch:
        raise _refused(
            ErrorCode.INVALID_PRODUCER_EPOCH, batch, f"its epoch {epoch} is over: epoch {entry.epoch} has begun"
        )
    if batch.marker is not None:
        if batch.marker.coordinator_epoch < entry.coordinator_epoch:
            raise _refused(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                batch,
                f"the coordinator's epoch {batch.marker.coordinator_epoch} is over: it had {entry.coordinator_epoch}",
            )
        return
    if origin is Origin.CLIENT:
        sequence = batch.base_sequence
        if epoch != entry.epoch:
            if sequence != 0:
                raise _refused(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, batch, f"epoch {epoch} begins with 0, not with {sequence}"
                )
        elif sequence != entry.last_sequence + 1 and (sequence != 0 or entry.last_sequence != MAX_SEQUENCE):
            raise _refused(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                batch,
                f"sequence {sequence} does not follow {entry.last_sequence}",
            )
    if entry.txn_first_offset >= 0 and not batch.is_transactional:
        raise _refused(ErrorCode.INVALID_TXN_STATE, batch, "its transaction is open, and this is not part of it")


def _refused(code: ErrorCode, batch: ProducerBatch, why: str) -> AppendRefused:
    return AppendRefused(code, f"producer {batch.producer_id}: {why}")
