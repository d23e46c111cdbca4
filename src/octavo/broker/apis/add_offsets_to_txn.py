"""AddOffsetsToTxn (25): a transaction will commit offsets of a group.

Versions: 2 knows PRODUCER_FENCED, 3 is flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from octavo.broker.answers import Answer, Later, Parts, Wait
from octavo.broker.member.elsewhere import CoordinatorsElsewhere
from octavo.broker.request import Request
from octavo.broker.transactions import fenced_before
from octavo.broker.wire.api_keys import ADD_OFFSETS_TO_TXN
from octavo.broker.wire.messages import write_response
from octavo.coordinator.shard import Producer
from octavo.coordinator.transactions.requests import AddRequest
from octavo.errors import ErrorCode
from octavo.log.names import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_FENCED_SINCE: Final = 2


def add_offsets_to_txn(broker: Broker, request: Request) -> Answer:
    """Answer an AddOffsetsToTxn request."""
    asked, version = request.read(), request.version
    coordinators = broker.coordinators

    def write(code: ErrorCode) -> Parts:
        content = {"throttle_time_ms": 0, "error_code": fenced_before(version, _FENCED_SINCE, code)}
        return [write_response(ADD_OFFSETS_TO_TXN, version, content)]

    if isinstance(coordinators, CoordinatorsElsewhere):
        return write(coordinators.transaction_error(asked.transactional_id))

    def add() -> Answer:
        partition = coordinators.find_group_partition(asked.group_id)
        if partition is None:
            return write(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        wanted = AddRequest(asked.transactional_id, Producer(asked.producer_id, asked.producer_epoch), [partition])
        return coordinators.run_transaction(
            wanted.transactional_id,
            lambda shard, ticket: shard.add_partitions(ticket, wanted),
            write,
            lambda code: code,
        )

    def create_and_add() -> Parts | Wait | None:
        coordinators.create_topic(CONSUMER_OFFSETS)
        answer = add()
        if isinstance(answer, Later):
            return answer.work()
        assert answer is None or isinstance(answer, list | Wait)
        return answer

    # Clients ask this before they look for the coordinator of the group, and Kafka need not have the topic for it.
    return Later(create_and_add) if coordinators.is_topic_missing(CONSUMER_OFFSETS) else add()
