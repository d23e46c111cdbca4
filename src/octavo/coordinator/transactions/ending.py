"""What becomes of a request to end a transaction: tables of states and attempts, for both versions of the protocol.

What a table does not have is `OTHER_STATE`: the transaction is in a state that does not allow it.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from octavo.coordinator.transactions.epochs import BUMPS_EPOCHS, LAST_EPOCH
from octavo.coordinator.transactions.requests import EndRequest
from octavo.errors import ErrorCode
from octavo.schemas.transaction_state import TransactionLogValue
from octavo.schemas.transaction_state import TransactionState as State


class Attempt(Enum):
    """What a producer asks for, and whether with the epoch of now or with the one before (version 2)."""

    COMMIT = auto()
    COMMIT_AGAIN = auto()
    ABORT = auto()
    ABORT_AGAIN = auto()


class Verdict(Enum):
    """No error, but something to do."""

    DECIDE = auto()


DECIDE: Final = Verdict.DECIDE
DONE: Final = ErrorCode.NONE  # it was done before, and its answer was lost
WAIT: Final = ErrorCode.CONCURRENT_TRANSACTIONS
FENCED: Final = ErrorCode.PRODUCER_FENCED
OTHER_STATE: Final = ErrorCode.INVALID_TXN_STATE

Table = dict[tuple[int, Attempt], ErrorCode | Verdict]  # the states are numbers, as in records

TABLE_1: Final[Table] = {
    (State.ONGOING, Attempt.COMMIT): DECIDE,
    (State.ONGOING, Attempt.ABORT): DECIDE,
    (State.PREPARE_COMMIT, Attempt.COMMIT): WAIT,
    (State.PREPARE_ABORT, Attempt.ABORT): WAIT,
    (State.COMPLETE_COMMIT, Attempt.COMMIT): DONE,
    (State.COMPLETE_ABORT, Attempt.ABORT): DONE,
}

TABLE_2: Final[Table] = {
    (State.ONGOING, Attempt.COMMIT): DECIDE,
    (State.ONGOING, Attempt.ABORT): DECIDE,
    (State.ONGOING, Attempt.COMMIT_AGAIN): FENCED,
    (State.ONGOING, Attempt.ABORT_AGAIN): FENCED,
    (State.EMPTY, Attempt.ABORT): DECIDE,
    (State.EMPTY, Attempt.COMMIT_AGAIN): FENCED,
    (State.EMPTY, Attempt.ABORT_AGAIN): FENCED,
    (State.PREPARE_COMMIT, Attempt.COMMIT): FENCED,
    (State.PREPARE_COMMIT, Attempt.ABORT): FENCED,
    (State.PREPARE_COMMIT, Attempt.COMMIT_AGAIN): WAIT,
    (State.PREPARE_ABORT, Attempt.COMMIT): FENCED,
    (State.PREPARE_ABORT, Attempt.ABORT): FENCED,
    (State.PREPARE_ABORT, Attempt.ABORT_AGAIN): WAIT,
    (State.COMPLETE_COMMIT, Attempt.ABORT): DECIDE,
    (State.COMPLETE_COMMIT, Attempt.COMMIT_AGAIN): DONE,
    (State.COMPLETE_ABORT, Attempt.ABORT): DECIDE,
    (State.COMPLETE_ABORT, Attempt.ABORT_AGAIN): DONE,
}


def verdict_on(value: TransactionLogValue | None, request: EndRequest) -> ErrorCode | Verdict:
    """Return what becomes of a request to end a transaction: an error, or that it is decided now."""
    if value is None:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    asked = request.producer
    is_2 = request.transaction_version >= BUMPS_EPOCHS
    has_wrapped = is_2 and asked == (value.previous_producer_id, LAST_EPOCH) and value.producer_epoch == 0
    if asked.id != value.producer_id and not has_wrapped:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if has_wrapped or (is_2 and asked.epoch == value.producer_epoch - 1):
        attempt = Attempt.COMMIT_AGAIN if request.committed else Attempt.ABORT_AGAIN
    elif asked.epoch == value.producer_epoch:
        attempt = Attempt.COMMIT if request.committed else Attempt.ABORT
    else:
        return ErrorCode.PRODUCER_FENCED
    table = TABLE_2 if is_2 else TABLE_1
    return table.get((value.transaction_status, attempt), OTHER_STATE)
