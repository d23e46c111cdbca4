"""What a producer refuses, or gives up."""

from __future__ import annotations

from octavo.errors import Closed, ErrorCode, InvalidInput, LogError


class ProducerClosed(Closed):
    """The producer was closed."""


class RecordTooLarge(InvalidInput):
    """A record that no batch of this producer may hold; `size` is what it may take, at the most."""

    code = ErrorCode.MESSAGE_TOO_LARGE

    def __init__(self, size: int, limit: int, name: str) -> None:
        super().__init__(size, limit, name)
        self.size = size
        self.limit = limit
        self.name = name

    def __str__(self) -> str:
        return f"a record of up to {self.size:,} bytes is too large: {self.name} is {self.limit:,}"


class SendTimedOut(LogError):
    """The log could not be written for `delivery.timeout.ms`, or was not free for `max.block.ms`."""

    code = ErrorCode.REQUEST_TIMED_OUT


class WrongTransactionOrder(LogError):
    """What a transactional producer was asked for does not come next; `state` is where it is."""

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
    """Something in the transaction failed: it can only be aborted. The cause is its `__cause__`."""

    code = ErrorCode.TRANSACTION_ABORTABLE
