"""What becomes of a request to end a transaction: tables of states and attempts, for both versions of the protocol.

What a table does not have is `OTHER_STATE`: the transaction is in a state that does not allow it.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from octavo.errors import ErrorCode
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
