"""Errors of producers and consumers, and of the coordinator that keeps their offsets and transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from octavo.errors.log_errors import Closed, LogError
from octavo.errors.root import ErrorCode

if TYPE_CHECKING:
    from octavo.log.names import TopicPartition


class ProducerClosed(Closed):
    """The producer was closed."""


class SendTimedOut(LogError):
    """The log could not be written within `delivery.timeout.ms`, or was in use for longer than `max.block.ms`."""

    code = ErrorCode.REQUEST_TIMED_OUT


class WrongTransactionOrder(LogError):
    """A transactional producer cannot do `what` in its present `state`; `hint` says what to do instead."""

    code = ErrorCode.INVALID_TXN_STATE

    def __init__(self, what: str, state: str, hint: str) -> None:
        super().__init__(what, state, hint)
        self.what = what
        self.state = state
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.what} cannot be done {self.state}: {self.hint}"


class TransactionAborted(LogError):
    """The record was dropped with its transaction, before it was appended."""

    code = ErrorCode.TRANSACTION_ABORTABLE


class TransactionFailed(LogError):
    """Something in the transaction failed. It can only be aborted. `__cause__` is the cause."""

    code = ErrorCode.TRANSACTION_ABORTABLE


class ConsumerError(LogError):
    """The consumer cannot do what it was asked to do."""


class ConsumerClosed(ConsumerError, Closed):
    """The consumer was closed."""


class NoOffset(ConsumerError):
    """There is no committed offset to begin at, and `auto.offset.reset` is `none`."""

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


class CoordinatorRefused(LogError):
    """The coordinator refuses a request."""


class ProducerFenced(CoordinatorRefused):
    """Another producer has the transactional id now."""

    code = ErrorCode.PRODUCER_FENCED


class UnknownProducer(CoordinatorRefused):
    """The transactional id does not belong to this producer id, or does not exist."""

    code = ErrorCode.INVALID_PRODUCER_ID_MAPPING


class WrongTransactionState(CoordinatorRefused):
    """The transaction is in a state that does not allow the request."""

    code = ErrorCode.INVALID_TXN_STATE


class TransactionIsEnding(CoordinatorRefused):
    """The last transaction is decided, but not yet ended in every partition. End it again, or start over."""

    code = ErrorCode.CONCURRENT_TRANSACTIONS


class WrongTimeout(CoordinatorRefused):
    """The transaction timeout is too long or too short."""

    code = ErrorCode.INVALID_TRANSACTION_TIMEOUT


class WrongGroup(CoordinatorRefused):
    """The group id is not valid."""

    code = ErrorCode.INVALID_GROUP_ID


class MemberFenced(CoordinatorRefused):
    """The consumer was a member of its group, and is none any more. It joins again with its next poll."""

    code = ErrorCode.FENCED_MEMBER_EPOCH


class MetadataTooLarge(CoordinatorRefused):
    """The metadata of a committed offset are too long."""

    code = ErrorCode.OFFSET_METADATA_TOO_LARGE
