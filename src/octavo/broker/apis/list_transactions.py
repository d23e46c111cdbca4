"""ListTransactions (66): all transactional ids.

Version 1 can ask for transactions that have been open for long, 2 for transactional ids that match a pattern (of RE2;
Kafka takes Java's).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from octavo.broker.answers import Answer, Parts
from octavo.broker.apis.describe_transactions import state_name
from octavo.broker.at_once import leave_long
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import LIST_TRANSACTIONS
from octavo.broker.wire.messages import write_response
from octavo.coordinator.groups.consumer.regex import matching, regex_problem
from octavo.coordinator.transactions.transaction_shard import TransactionShard
from octavo.errors import ErrorCode
from octavo.schemas.transaction_state import TransactionState

if TYPE_CHECKING:
    from octavo.broker.broker import Broker


def list_transactions(broker: Broker, request: Request) -> Answer:
    """Answer a ListTransactions request."""
    asked = request.read()
    states, producer_ids = set(asked.state_filters), set(asked.producer_id_filters)
    known = {state_name(each) for each in TransactionState} | {"Dead", "PrepareEpochFence"}
    duration_ms = getattr(asked, "duration_filter", -1)
    now_ms = broker.directory.now_ms()
    pattern = getattr(asked, "transactional_id_pattern", None)

    def found_by(shard: TransactionShard) -> list[dict[str, Any]]:
        leave_long(pattern, 0)  # it may take long to match it with all transactional ids
        wanted = matching(pattern, shard.transactions) if pattern else shard.transactions.keys()
        return [
            {
                "transactional_id": transactional_id,
                "producer_id": value.producer_id,
                "transaction_state": state_name(value.transaction_status),
            }
            for transactional_id, value in shard.transactions.items()
            if transactional_id in wanted
            and (not producer_ids or value.producer_id in producer_ids)
            and (not states or state_name(value.transaction_status) in states)
            and (duration_ms < 0 or now_ms - value.transaction_start_timestamp_ms > duration_ms)
        ]

    def write(found: list[dict[str, Any]]) -> Parts:
        leave_long(pattern)
        code = ErrorCode.INVALID_REGULAR_EXPRESSION if pattern and regex_problem(pattern) else ErrorCode.NONE
        content = {
            "throttle_time_ms": 0,
            "error_code": code,
            "unknown_state_filters": sorted(states - known) if code is ErrorCode.NONE else [],
            "transaction_states": found,
        }
        return [write_response(LIST_TRANSACTIONS, request.version, content)]

    return broker.coordinators.ask_all_transactions(found_by, write)
