"""What a coordinator refuses, with Kafka's code for each."""

from __future__ import annotations

from octavo.errors import ErrorCode, LogError


class CoordinatorRefused(LogError):
    """The coordinator does not do what it was asked for."""


class ProducerFenced(CoordinatorRefused):
    """Another producer has the transactional id now."""

    code = ErrorCode.PRODUCER_FENCED


class UnknownProducer(CoordinatorRefused):
    """The transactional id does not belong to this producer id, or there is none such."""

    code = ErrorCode.INVALID_PRODUCER_ID_MAPPING


class WrongTransactionState(CoordinatorRefused):
    """The transaction is not in a state in which that can be done."""

    code = ErrorCode.INVALID_TXN_STATE


class TransactionIsEnding(CoordinatorRefused):
    """The last transaction is decided, but could not be ended everywhere: end it again, or begin anew."""

    code = ErrorCode.CONCURRENT_TRANSACTIONS


class WrongTimeout(CoordinatorRefused):
    """Transactions cannot be given so long, or so short a time."""

    code = ErrorCode.INVALID_TRANSACTION_TIMEOUT


class WrongGroup(CoordinatorRefused):
    """A group cannot have this id."""

    code = ErrorCode.INVALID_GROUP_ID


class MetadataTooLarge(CoordinatorRefused):
    """What is to be kept beside an offset is too long."""

    code = ErrorCode.OFFSET_METADATA_TOO_LARGE
