"""A record as a consumer gets it."""

from __future__ import annotations

from typing import Any, NamedTuple

from octavo.log.names import TopicPartition
from octavo.records.layout import NO_LEADER_EPOCH, TimestampType
from octavo.records.record import Header


class ConsumerRecord(NamedTuple):
    """One record. `None` is not `b""`: one whose value is None is a tombstone.

    Keys and values are bytes, unless the consumer was given functions that make something else of them.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: TimestampType
    key: Any
    value: Any
    headers: tuple[Header, ...] = ()
    leader_epoch: int = NO_LEADER_EPOCH  # -1 where it has none

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition that it comes from."""
        return TopicPartition(self.topic, self.partition)
