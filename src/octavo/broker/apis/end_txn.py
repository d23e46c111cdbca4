"""EndTxn (26): commit or abort a transaction.

Versions: 2 knows PRODUCER_FENCED, 3 is flexible, 5 is for clients whose epoch is bumped with each transaction, and has
the identity for the next one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from octavo.broker.answers import Answer, Parts
from octavo.broker.request import Request
from octavo.broker.transactions import fenced_before
from octavo.broker.wire.api_keys import END_TXN
from octavo.broker.wire.messages import write_response
from octavo.coordinator.shard import Producer
from octavo.coordinator.transactions.epochs import BUMPS_EPOCHS
from octavo.coordinator.transactions.requests import EndAnswer, EndRequest

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_FENCED_SINCE: Final = 2
_BUMPS_FROM: Final = 5


def end_txn(broker: Broker, request: Request) -> Answer:
    """Answer an EndTxn request."""
    asked, version = request.read(), request.version
    end = EndRequest(
        asked.transactional_id,
        Producer(asked.producer_id, asked.producer_epoch),
        asked.committed,
        BUMPS_EPOCHS if version >= _BUMPS_FROM else 0,
    )

    def write(answer: EndAnswer) -> Parts:
        content = {
            "throttle_time_ms": 0,
            "error_code": fenced_before(version, _FENCED_SINCE, answer.error_code),
            "producer_id": answer.producer.id,
            "producer_epoch": answer.producer.epoch,
        }
        return [write_response(END_TXN, version, content)]

    return broker.coordinators.run_transaction(
        end.transactional_id, lambda shard, ticket: shard.end(ticket, end), write, EndAnswer
    )
