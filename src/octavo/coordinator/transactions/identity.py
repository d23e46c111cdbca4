"""Which producer id and epoch a producer gets, and who is fenced: `next_identity`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from octavo.coordinator.shard import Producer
from octavo.coordinator.transactions.config import TransactionConfig
from octavo.coordinator.transactions.epochs import BUMPS_EPOCHS, LAST_EPOCH, NONE
from octavo.coordinator.transactions.requests import InitRequest
from octavo.errors import ErrorCode
from octavo.schemas.transaction_state import TransactionLogValue


class Identity(NamedTuple):
    """An identity, and the epoch that its producer says it had before; NONE if it says nothing."""

    producer: Producer
    last_epoch: int = NONE


def init_problem(config: TransactionConfig, request: InitRequest) -> ErrorCode:
    """Return what is wrong with a request for an identity, whatever the state of its transactional id is."""
    if not request.transactional_id:
        return ErrorCode.INVALID_REQUEST
    if request.enable_2_pc:
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if request.keep_prepared_txn:
        return ErrorCode.UNSUPPORTED_VERSION
    if not 0 < request.transaction_timeout_ms <= config.transaction_max_timeout_ms:
        return ErrorCode.INVALID_TRANSACTION_TIMEOUT
    return ErrorCode.NONE


def is_fenced(value: TransactionLogValue, given: Producer) -> bool:
    """Return whether a producer that has an identity goes on with a transactional id that is somebody else's by now."""
    is_own = given.id in (NONE, value.producer_id)
    is_retry = given.id == value.previous_producer_id and given.epoch >= LAST_EPOCH
    return not is_own and not is_retry


def next_identity(
    value: TransactionLogValue | None, given: Producer, last_epoch: int, new_producer_id: Callable[[], int]
) -> Identity | ErrorCode:
    """Return the identity for a producer that asks for one, or why it gets none.

    value: the last record of its transactional id
    given: the identity that it goes on with, if any
    last_epoch: the one before the present epoch, as far as that is known
    """
    if value is None:
        return Identity(Producer(new_producer_id(), 0))
    epoch, is_continued = value.producer_epoch, given.id != NONE
    if epoch >= LAST_EPOCH:
        if is_continued and given.epoch != epoch:  # Kafka has no better word for it
            return ErrorCode.UNKNOWN_SERVER_ERROR
        return Identity(Producer(new_producer_id(), 0), epoch if is_continued else NONE)
    if not is_continued or given.epoch == epoch:
        return Identity(Producer(value.producer_id, epoch + 1), epoch if is_continued else NONE)
    if given.epoch == last_epoch:  # its answer was lost
        return Identity(Producer(value.producer_id, epoch), given.epoch)
    return ErrorCode.PRODUCER_FENCED


def completed_identity(value: TransactionLogValue) -> Producer:
    """Return the identity after a transaction that is decided: a new one where the epochs are used up."""
    if value.client_transaction_version >= BUMPS_EPOCHS and value.next_producer_id != NONE:
        return Producer(value.next_producer_id, 0)
    return Producer(value.producer_id, value.producer_epoch)
