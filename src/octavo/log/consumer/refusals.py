"""Errors of a consumer."""

from __future__ import annotations

from octavo.errors import Closed, LogError
from octavo.log.names import TopicPartition


class ConsumerError(LogError):
    """The consumer cannot do what it was asked to do."""


class ConsumerClosed(ConsumerError, Closed):
    """The consumer was closed."""


class NoOffset(ConsumerError):
    """There is no committed offset to begin at, and `auto.offset.reset` is none."""

    def __init__(self, partition: TopicPartition) -> None:
        super().__init__(partition)
        self.partition = partition

    def __str__(self) -> str:
        return f"there is no committed offset for {self.partition}, and auto.offset.reset is none: seek to one"


class DeserializationFailed(ConsumerError):
    """A deserializer failed on a record. To continue without the record, `seek` to the offset after it."""

    def __init__(self, partition: TopicPartition, offset: int, what: str) -> None:
        super().__init__(partition, offset, what)
        self.partition = partition
        self.offset = offset
        self.what = what  # "key" or "value"

    def __str__(self) -> str:
        return f"the {self.what} of the record at offset {self.offset} of {self.partition} cannot be deserialized"


class WokenUp(ConsumerError):
    """Another thread called `wakeup`."""
