"""Appends batches to the logs of their partitions, once and in order: `Deliverer`.

A batch that the log refuses was not appended, so its sequence numbers go to the next batch, as in Kafka's client. A
failed write is repeated until `delivery.timeout.ms` is over. An idempotent producer then takes another epoch, because
nobody can tell what reached the disk. It also takes another epoch if the log reports a sequence number out of order, as
after a truncation.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from octavo.errors import AppendRefused, ErrorCode, SendTimedOut, UnknownPartition
from octavo.log.names import TopicPartition
from octavo.log.producer.config import ProducerConfig
from octavo.log.producer.encoder import Parcel, Sealed, halves, renumbered
from octavo.log.producer.identity import Identity
from octavo.records.layout import BATCH_HEADER, NO_TIMESTAMP, Buffer
from octavo.records.sequence import increment_sequence

if TYPE_CHECKING:
    from octavo.log.directory.data_directory import DataDirectory
    from octavo.log.log import Log
    from octavo.log.producer.transactional import ProducerTransactions
    from octavo.log.writing.appender import Appended

_TOO_LARGE: Final = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
_OUT_OF_ORDER: Final = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


class Deliverer:
    """Appends a producer's batches."""

    def __init__(
        self,
        data: DataDirectory,
        config: ProducerConfig,
        identity: Identity,
        transactions: ProducerTransactions | None,
        *,
        on_unknown: Callable[[str], None],
    ) -> None:
        """`on_unknown` is called with a topic if the partition for a batch does not exist."""
        self._on_unknown: Final = on_unknown
        self._data: Final = data
        self._config: Final = config
        self._identity: Final = identity
        self._transactions: Final = transactions

    def deliver(self, parcel: Parcel) -> None:
        """Append the batches of a parcel. Afterwards its delivery knows the outcome for every record."""
        partition = TopicPartition(parcel.delivery.topic, parcel.partition)
        again = parcel.tries > 0
        parcel.tries += 1
        try:
            if self._transactions is not None:
                self._transactions.add_partition(partition)
            log = self._data.log(*partition)
        except Exception as error:  # whatever it is, the futures report it; same below
            if isinstance(error, UnknownPartition):
                self._on_unknown(partition.topic)
            self._fail(parcel, parcel.rows, error)
            return
        if again and not parcel.done and self._was_appended(parcel, partition, log):
            return
        if not self._is_next(parcel.data, partition):
            self._deliver_one_by_one(parcel, partition, log)
            return
        try:
            done = self._append(log, parcel.data)
        except AppendRefused:
            self._deliver_one_by_one(parcel, partition, log)
        except Exception as error:
            self._lose(parcel, parcel.rows, error)
        else:
            self._appended(parcel, parcel.rows, partition, done, parcel.count)

    def _deliver_one_by_one(self, parcel: Parcel, partition: TopicPartition, log: Log) -> None:
        for batch in parcel.batches[parcel.done :]:
            self._deliver_one(parcel, batch, partition, log)
            parcel.done += 1

    def _deliver_one(self, parcel: Parcel, batch: Sealed, partition: TopicPartition, log: Log) -> None:
        """Append one batch of a parcel. If the log refuses it as too large, append its halves."""
        has_bumped = False
        while True:
            rows = parcel.rows_of(batch)
            if self._transactions is not None and self._transactions.error is not None:
                parcel.delivery.fail(rows, self._transactions.failure())
                return
            try:
                done = self._append(log, self._numbered(batch.data, partition))
            except AppendRefused as refused:
                if refused.code in _TOO_LARGE and batch.last - batch.first > 1:
                    for half in halves(batch, self._config.level):
                        self._deliver_one(parcel, half, partition, log)
                    return
                if refused.code == _OUT_OF_ORDER and self._may_bump() and not has_bumped:
                    self._identity.bump()
                    has_bumped = True
                    continue
                self._fail(parcel, rows, refused)
            except Exception as error:
                self._lose(parcel, rows, error)
            else:
                self._appended(parcel, rows, partition, done, batch.last - batch.first)
            return

    def _append(self, log: Log, data: Buffer) -> Appended:
        """Append batches to a log. After an `OSError`, try again for as long as the configuration allows."""
        config = self._config
        tries = 0
        pause_ms = config.retry_backoff_ms
        deadline = time.monotonic() + config.delivery_timeout_ms / 1000
        while True:
            try:
                return log.append(data)
            except OSError as error:
                tries += 1
                if log.failure is not None or tries > config.retries:
                    raise
                if time.monotonic() + pause_ms / 1000 > deadline:
                    raise SendTimedOut(
                        f"{log.partition} could not be written for {config.delivery_timeout_ms} ms "
                        f"(delivery.timeout.ms): {error}"
                    ) from error
                time.sleep(pause_ms / 1000)
                pause_ms = min(2 * pause_ms, config.retry_backoff_max_ms)

    def _appended(self, parcel: Parcel, rows: Any, partition: TopicPartition, done: Appended, count: int) -> None:
        offsets = np.arange(done.base_offset, done.base_offset + count)
        parcel.delivery.appended(rows, offsets, NO_TIMESTAMP if done.is_duplicate else done.append_time_ms)
        self._identity.advance(partition, self._identity.sequence(partition), count)

    def _was_appended(self, parcel: Parcel, partition: TopicPartition, log: Log) -> bool:
        """Whether an interrupted attempt appended the parcel. Either all of its batches are in the log, or none."""
        identity = self._identity
        entry = log.producers.entries.get(identity.producer_id)
        if not identity.is_idempotent or entry is None or entry.epoch != identity.epoch:
            return False
        sequence = BATCH_HEADER.read(parcel.data).base_sequence
        if entry.last_sequence != increment_sequence(sequence, parcel.count - 1):
            return False
        offsets = np.arange(entry.last_offset - parcel.count, entry.last_offset) + 1
        parcel.delivery.appended(parcel.rows, offsets, NO_TIMESTAMP)
        identity.advance(partition, sequence, parcel.count)
        return True

    def _is_next(self, batch: Buffer, partition: TopicPartition) -> bool:
        """Whether a batch has the current producer id and epoch, and the next sequence number."""
        identity = self._identity
        header = BATCH_HEADER.read(batch)
        written = (header.producer_id, header.producer_epoch, header.base_sequence)
        return written == (identity.producer_id, identity.epoch, identity.sequence(partition))

    def _numbered(self, batch: Buffer, partition: TopicPartition) -> Buffer:
        """Return the batch with the current identity and sequence number: batches before it may have been refused."""
        if self._is_next(batch, partition):
            return batch
        identity = self._identity
        return renumbered(batch, identity.producer_id, identity.epoch, identity.sequence(partition))

    def _may_bump(self) -> bool:
        return self._identity.is_idempotent and self._transactions is None

    def _lose(self, parcel: Parcel, rows: Any, error: Exception) -> None:
        """Fail these records after an error that leaves it unknown whether they are in the log."""
        self._fail(parcel, rows, error)
        if self._may_bump():
            self._identity.bump()

    def _fail(self, parcel: Parcel, rows: Any, error: Exception) -> None:
        if self._transactions is not None:
            self._transactions.fail(error)
        parcel.delivery.fail(rows, error)
