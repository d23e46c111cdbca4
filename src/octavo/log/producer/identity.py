"""Identity of a producer in the logs: producer id, epoch, and the next sequence number of each partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from octavo.log.names import TopicPartition
from octavo.records.layout import MAX_INT16, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from octavo.records.sequence import increment_sequence

if TYPE_CHECKING:
    from octavo.log.coordinator import ProducerIdentity
    from octavo.log.directory.data_directory import DataDirectory


class Identity:
    """Producer id, epoch and sequence numbers for a producer's batches. Without idempotence all of them are -1."""

    def __init__(self, data: DataDirectory, *, idempotent: bool) -> None:
        self._data: Final = data
        self.is_idempotent: Final = idempotent
        self.producer_id = NO_PRODUCER_ID
        self.epoch = NO_PRODUCER_EPOCH
        self._sequences: dict[TopicPartition, int] = {}  # next sequence number of each partition

    def ensure(self) -> None:
        """Get a producer id from the coordinator, if one is needed and there is none yet."""
        if self.is_idempotent and self.producer_id == NO_PRODUCER_ID:
            self._begin_anew()

    def become(self, given: ProducerIdentity) -> None:
        """Adopt the id and epoch that the coordinator assigned. Sequence numbers start again at 0."""
        self._sequences.clear()
        self.producer_id, self.epoch = given

    def bump(self) -> None:
        """Take the next epoch; after the last epoch, another id. All sequence numbers start again.

        Only for a producer without transactions: nobody else keeps track of its epochs (KIP-360).
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
        """The sequence number of the partition's next record."""
        return self._sequences.get(partition, 0) if self.is_idempotent else NO_SEQUENCE

    def advance(self, partition: TopicPartition, sequence: int, count: int) -> None:
        """Advance the partition's sequence number after `count` records were appended, the first with `sequence`."""
        if self.is_idempotent:
            self._sequences[partition] = increment_sequence(sequence, count)
