"""A record as a consumer receives it."""

from __future__ import annotations

from typing import Any, NamedTuple

from octavo.log.clients.ported_calls import OF_RECORDS, without
from octavo.log.names import TopicPartition
from octavo.records.layout import NO_LEADER_EPOCH, TimestampType
from octavo.records.record import Header


@without(**OF_RECORDS)
class ConsumerRecord(NamedTuple):
    """A record that a consumer returns. `None` is not `b""`: a record whose value is None is a tombstone.

    Keys and values are bytes, unless the consumer has deserializers for them.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: TimestampType
    key: Any
    value: Any
    headers: tuple[Header, ...] = ()
    leader_epoch: int = NO_LEADER_EPOCH  # -1 if unknown

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition of the record."""
        return TopicPartition(self.topic, self.partition)
