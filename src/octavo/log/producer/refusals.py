"""Errors of a producer."""

from __future__ import annotations

from octavo.errors import Closed, ErrorCode, InvalidInput, LogError


class ProducerClosed(Closed):
    """The producer was closed."""


class RecordTooLarge(InvalidInput):
    """A record is too large for any batch of this producer. `size` is the upper bound of its size."""

    code = ErrorCode.MESSAGE_TOO_LARGE

    def __init__(self, size: int, limit: int, name: str) -> None:
        super().__init__(size, limit, name)
        self.size = size
        self.limit = limit
        self.name = name

    def __str__(self) -> str:
        return f"a record of up to {self.size:,} bytes is too large: {self.name} is {self.limit:,}"


class SendTimedOut(LogError):
    """The log could not be written for `delivery.timeout.ms`, or was in use for `max.block.ms`."""

    code = ErrorCode.REQUEST_TIMED_OUT


class WrongTransactionOrder(LogError):
    """A transactional producer cannot do this in its present state, which is `state`."""

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
