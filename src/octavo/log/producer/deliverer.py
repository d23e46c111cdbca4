"""Appends batches to the logs of their partitions, once and in order: `Deliverer`.

A batch that the log refuses was not appended, so its sequence numbers go to the next batch, as in Kafka's client. A
failed write is repeated until `delivery.timeout.ms` is over. An idempotent producer then takes another epoch, because
nobody can tell what reached the disk. It also takes another epoch if the log reports a sequence number out of order, as
after a truncation.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from octavo.errors import AppendRefused, ErrorCode, SendTimedOut, UnknownPartition
from octavo.log.names import TopicPartition
from octavo.log.producer.config import ProducerConfig
from octavo.log.producer.encoder import Attempt, Parcel, Sealed, halves, renumbered
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
        if parcel.done == len(parcel.batches):
            return  # it was interrupted after the last of them
        partition = TopicPartition(parcel.delivery.topic, parcel.partition)
        try:
            if self._transactions is not None:
                self._transactions.add_partition(partition)
            log = self._data.log(*partition)
            if parcel.attempt is not None:
                self._find_out(parcel, parcel.attempt, partition, log)
        except Exception as error:  # whatever it is, the futures report it; same below
            if isinstance(error, UnknownPartition):
                self._on_unknown(partition.topic)
            self._fail(parcel, parcel.batches[parcel.done :], error)
            return
        if parcel.done == 0 and self._is_next(parcel.data, partition):
            try:
                self._deliver(parcel, parcel.batches, parcel.data, partition, log)
            except AppendRefused:
                pass  # some of the batches may be accepted
            else:
                return
        while parcel.done < len(parcel.batches):
            self._deliver_one(parcel, partition, log)

    def _find_out(self, parcel: Parcel, attempt: Attempt, partition: TopicPartition, log: Log) -> None:
        """Find out in the log what became of an append that was interrupted. All of its batches are in it, or none."""
        log.settle()  # otherwise the next change might take back what is found
        entry = log.producers.entries.get(attempt.producer.producer_id)
        if not self._identity.is_idempotent or entry is None or entry.epoch != attempt.producer.epoch:
            return
        if entry.last_sequence == increment_sequence(attempt.sequence, attempt.record_count - 1):
            self._appended(parcel, attempt, partition, entry.last_offset - attempt.record_count + 1, NO_TIMESTAMP)

    def _deliver_one(self, parcel: Parcel, partition: TopicPartition, log: Log) -> None:
        """Append the next batch of a parcel. If the log refuses it as too large, put its halves in its place."""
        batch = parcel.batches[parcel.done]
        if self._transactions is not None and self._transactions.error is not None:
            self._note_failure(parcel, [batch], self._transactions.failure())
            return
        try:
            self._deliver(parcel, [batch], self._numbered(batch.data, partition), partition, log)
        except AppendRefused as refused:
            if refused.code in _TOO_LARGE and batch.last - batch.first > 1:
                parcel.batches[parcel.done : parcel.done + 1] = halves(batch, self._config.level)
            elif refused.code == _OUT_OF_ORDER and self._may_bump() and parcel.bumped_for != parcel.done:
                parcel.bumped_for = parcel.done
                self._identity.bump()
            else:
                self._fail(parcel, [batch], refused)

    def _deliver(
        self, parcel: Parcel, batches: Sequence[Sealed], data: Buffer, partition: TopicPartition, log: Log
    ) -> None:
        """Append the next batches of a parcel, and note the outcome. Raises `AppendRefused`: then they are not in it.

        The attempt is noted before anything is written, so that after an exception from outside the next call finds
        out what became of it, and an abort knows that the sequence numbers may have been used.
        """
        identity = self._identity
        rows = parcel.rows_of(batches)
        count = batches[-1].last - batches[0].first
        end = parcel.done + len(batches)
        attempt = Attempt(identity.producer, identity.sequence(partition), count, rows, end)
        identity.is_unsure = True
        parcel.attempt = attempt
        try:
            done = self._append(log, data)
        except AppendRefused:
            parcel.attempt = None
            identity.is_unsure = False
            raise
        except Exception as error:
            self._lose(parcel, batches, error)
        else:
            append_time_ms = NO_TIMESTAMP if done.is_duplicate else done.append_time_ms
            self._appended(parcel, attempt, partition, done.base_offset, append_time_ms)

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

    def _appended(
        self, parcel: Parcel, attempt: Attempt, partition: TopicPartition, base_offset: int, append_time_ms: int
    ) -> None:
        """Note that batches are in the log. Each step may be repeated."""
        offsets = np.arange(base_offset, base_offset + attempt.record_count)
        parcel.delivery.appended(attempt.rows, offsets, append_time_ms)
        self._identity.advance(attempt.producer, partition, attempt.sequence, attempt.record_count)
        parcel.done = attempt.end
        parcel.attempt = None
        self._identity.is_unsure = False

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

    def _lose(self, parcel: Parcel, batches: Sequence[Sealed], error: Exception) -> None:
        """Fail the next batches after an error that leaves it unknown whether they are in the log."""
        if self._may_bump():
            self._identity.bump()
        self._fail(parcel, batches, error)

    def _fail(self, parcel: Parcel, batches: Sequence[Sealed], error: Exception) -> None:
        if self._transactions is not None:
            self._transactions.fail(error)
        self._note_failure(parcel, batches, error)

    @staticmethod
    def _note_failure(parcel: Parcel, batches: Sequence[Sealed], error: Exception) -> None:
        """Note that the next batches of a parcel are not in the log, or that nobody knows."""
        parcel.delivery.fail(parcel.rows_of(batches), error)
        parcel.done += len(batches)
        parcel.attempt = None
