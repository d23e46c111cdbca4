"""DescribeTransactions (65): the state of transactional ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from octavo.broker.answers import Answer, Parts
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import DESCRIBE_TRANSACTIONS
from octavo.broker.wire.messages import write_response
from octavo.coordinator.transactions.transaction_shard import TransactionShard
from octavo.errors import ErrorCode
from octavo.schemas.transaction_state import TransactionState

if TYPE_CHECKING:
    from collections.abc import Callable

    from octavo.broker.broker import Broker

_UNKNOWN: Final = "Unknown"  # what Kafka's clients call such a state


def state_name(state: int) -> str:
    """Return the name of a state in Kafka: `PrepareCommit`. One that only a foreign log has is `Unknown`."""
    names = [each.name for each in TransactionState if each == state]
    return names[0].title().replace("_", "") if names else _UNKNOWN


def describe_transactions(broker: Broker, request: Request) -> Answer:
    """Answer a DescribeTransactions request."""
    ids = list(request.read().transactional_ids)

    def describe(transactional_id: str) -> Callable[[TransactionShard], dict[str, Any]]:
        return lambda shard: _describe(shard, transactional_id)

    def refuse(number: int, code: ErrorCode) -> dict[str, Any]:
        return _refused(ids[number], code)

    def write(states: list[dict[str, Any]]) -> Parts:
        content = {"throttle_time_ms": 0, "transaction_states": states}
        return [write_response(DESCRIBE_TRANSACTIONS, request.version, content)]

    return broker.coordinators.run_transactions([(each, describe(each)) for each in ids], refuse, write)


def _refused(transactional_id: str, code: ErrorCode) -> dict[str, Any]:
    return {
        "error_code": code if transactional_id else ErrorCode.INVALID_REQUEST,
        "transactional_id": transactional_id,
        "transaction_state": "",
        "transaction_timeout_ms": 0,
        "transaction_start_time_ms": 0,
        "producer_id": 0,
        "producer_epoch": 0,
        "topics": [],
    }


def _describe(shard: TransactionShard, transactional_id: str) -> dict[str, Any]:
    value = shard.transactions.get(transactional_id)
    if value is None:
        return _refused(transactional_id, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    return {
        "error_code": ErrorCode.NONE,
        "transactional_id": transactional_id,
        "transaction_state": state_name(value.transaction_status),
        "transaction_timeout_ms": value.transaction_timeout_ms,
        "transaction_start_time_ms": value.transaction_start_timestamp_ms,
        "producer_id": value.producer_id,
        "producer_epoch": value.producer_epoch,
        "topics": [
            {"topic": each.topic, "partitions": list(each.partition_ids)} for each in value.transaction_partitions or ()
        ],
    }
