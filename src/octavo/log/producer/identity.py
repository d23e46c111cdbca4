"""Who a producer is to the logs: id, epoch and the sequence number of the next record of each partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from octavo.log.names import TopicPartition
from octavo.records.layout import MAX_INT16, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from octavo.records.sequence import increment_sequence

if TYPE_CHECKING:
    from octavo.log.coordinator import ProducerIdentity
    from octavo.log.directory import DataDirectory


class Identity:
    """What a producer's batches say of it. One that is not idempotent says nothing."""

    def __init__(self, data: DataDirectory, *, idempotent: bool) -> None:
        self._data: Final = data
        self.is_idempotent: Final = idempotent
        self.producer_id = NO_PRODUCER_ID
        self.epoch = NO_PRODUCER_EPOCH
        self._sequences: dict[TopicPartition, int] = {}  # of the next record

    def ensure(self) -> None:
        """Have an id, if one is needed."""
        if self.is_idempotent and self.producer_id == NO_PRODUCER_ID:
            self._begin_anew()

    def become(self, given: ProducerIdentity) -> None:
        """Be who the coordinator says. Sequences begin again."""
        self._sequences.clear()
        self.producer_id, self.epoch = given

    def bump(self) -> None:
        """Take the next epoch, with which all sequences begin again; after the last one another id.

        For a producer without transactions, which nobody else knows the epochs of (KIP-360).
        """
        if self.epoch >= MAX_INT16 - 1:
            self._begin_anew()
        else:
            self._sequences.clear()
            self.epoch += 1

    def _begin_anew(self) -> None:
        from octavo.log.coordinator import Coordinator

        self.become(Coordinator.of(self._data).init_producer_id(None))

    def sequence(self, partition: TopicPartition) -> int:
        """The number of the next record."""
        return self._sequences.get(partition, 0) if self.is_idempotent else NO_SEQUENCE

    def advance(self, partition: TopicPartition, sequence: int, count: int) -> None:
        """The records from `sequence` on are in the log."""
        if self.is_idempotent:
            self._sequences[partition] = increment_sequence(sequence, count)
