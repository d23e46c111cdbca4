"""Identity of a producer in the logs: producer id, epoch, and the next sequence number of each partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from octavo.log.coordinator.producer_identity import ProducerIdentity
from octavo.log.names import TopicPartition
from octavo.records.layout import MAX_INT16, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from octavo.records.sequence import increment_sequence

if TYPE_CHECKING:
    from octavo.log.directory.data_directory import DataDirectory


class _Numbers(NamedTuple):
    """An id and an epoch with what was counted in it. Replaced as a whole: an interrupt never mixes two epochs."""

    producer: ProducerIdentity
    sequences: dict[TopicPartition, int]  # next sequence number of each partition


class Identity:
    """Producer id, epoch and sequence numbers for a producer's batches. Without idempotence all of them are -1.

    is_unsure: an append was begun, and its outcome is not noted yet. While it is, nobody can tell which sequence
        numbers the log has seen. Whoever drops the batch instead of sending it again has to take another epoch: the
        next batch would have the numbers of the dropped one, and could pass for its duplicate
    """

    def __init__(self, data: DataDirectory, *, idempotent: bool) -> None:
        self._data: Final = data
        self.is_idempotent: Final = idempotent
        self.is_unsure = False
        self._numbers = _Numbers(ProducerIdentity(NO_PRODUCER_ID, NO_PRODUCER_EPOCH), {})

    @property
    def producer(self) -> ProducerIdentity:
        """The producer id and epoch."""
        return self._numbers.producer

    @property
    def producer_id(self) -> int:
        """The producer id."""
        return self._numbers.producer.producer_id

    @property
    def epoch(self) -> int:
        """The epoch of the producer id."""
        return self._numbers.producer.epoch

    def ensure(self) -> None:
        """Get a producer id from the coordinator, if one is needed and there is none yet."""
        if self.is_idempotent and self.producer_id == NO_PRODUCER_ID:
            self._begin_anew()

    def become(self, given: ProducerIdentity) -> None:
        """Adopt the id and epoch that the coordinator assigned. Sequence numbers start again at 0."""
        self._numbers = _Numbers(given, {})
        self.is_unsure = False

    def bump(self) -> None:
        """Take the next epoch; after the last epoch, another id. All sequence numbers start again.

        Only for a producer without transactions: nobody else keeps track of its epochs (KIP-360).
        """
        if self.epoch >= MAX_INT16 - 1:
            self._begin_anew()
        else:
            self.become(ProducerIdentity(self.producer_id, self.epoch + 1))

    def _begin_anew(self) -> None:
        from octavo.log.coordinator import Coordinator

        self.become(Coordinator.of(self._data).init_producer_id(None))

    def sequence(self, partition: TopicPartition) -> int:
        """The sequence number of the partition's next record."""
        return self._numbers.sequences.get(partition, 0) if self.is_idempotent else NO_SEQUENCE

    def advance(self, producer: ProducerIdentity, partition: TopicPartition, sequence: int, count: int) -> None:
        """Advance the partition's sequence number after `count` records were appended, the first with `sequence`.

        `producer`: the identity that they were appended with. Numbers of another epoch are not changed.
        """
        numbers = self._numbers
        if self.is_idempotent and numbers.producer == producer:
            numbers.sequences[partition] = increment_sequence(sequence, count)
