"""Errors of a coordinator, with Kafka's code for each."""

from __future__ import annotations

from octavo.errors import ErrorCode, LogError


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
    """The last transaction is decided, but was not ended in every partition: end it again, or start over."""

    code = ErrorCode.CONCURRENT_TRANSACTIONS


class WrongTimeout(CoordinatorRefused):
    """The transaction timeout is too long or too short."""

    code = ErrorCode.INVALID_TRANSACTION_TIMEOUT


class WrongGroup(CoordinatorRefused):
    """The group id is not valid."""

    code = ErrorCode.INVALID_GROUP_ID


class MetadataTooLarge(CoordinatorRefused):
    """The metadata of a committed offset are too long."""

    code = ErrorCode.OFFSET_METADATA_TOO_LARGE
