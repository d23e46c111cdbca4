"""InitProducerId (22): the identity of an idempotent or transactional producer.

Versions: 2 is flexible, 3 lets a producer ask for a new epoch of the id that it has, 4 knows PRODUCER_FENCED.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from octavo.broker.answers import Answer, Later, Parts, Work
from octavo.broker.request import Request
from octavo.broker.transactions import fenced_before
from octavo.broker.wire.api_keys import INIT_PRODUCER_ID
from octavo.broker.wire.messages import Struct, write_response
from octavo.coordinator.shard import Producer
from octavo.coordinator.transactions.identity import init_problem
from octavo.coordinator.transactions.requests import InitAnswer, InitRequest
from octavo.errors import ErrorCode, LogError

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_NONE: Final = -1
_FENCED_SINCE: Final = 4  # the first version whose clients know PRODUCER_FENCED


def init_producer_id(broker: Broker, request: Request) -> Answer:
    """Answer an InitProducerId request."""
    asked = request.read()
    version = request.version
    if (asked.producer_id == _NONE) != (asked.producer_epoch == _NONE):
        return _answer(version, error=ErrorCode.INVALID_REQUEST)
    if asked.transactional_id is not None:
        return _init(broker, asked, version)

    if broker.controller is not None:
        producer_id = broker.controller.producer_ids.take()
        if producer_id is None:
            return _answer(version, error=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return _answer(version, producer_id=producer_id, producer_epoch=0)

    def allocate() -> Parts:
        try:
            return _answer(version, producer_id=broker.next_producer_id(), producer_epoch=0)
        except LogError as error:
            return _answer(version, error=error.code)
        except OSError as error:
            broker.troubles.failed("no producer id could be allocated", error)
            return _answer(version, error=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    return Later(allocate, Work.QUERY)


def _init(broker: Broker, asked: Struct, version: int) -> Answer:
    init = InitRequest(
        asked.transactional_id,
        asked.transaction_timeout_ms,
        Producer(asked.producer_id, asked.producer_epoch),
        getattr(asked, "enable_2_pc", False),
        getattr(asked, "keep_prepared_txn", False),
    )

    def write(answer: InitAnswer) -> Parts:
        code = fenced_before(version, _FENCED_SINCE, answer.error_code)
        return _answer(version, error=code, producer_id=answer.producer.id, producer_epoch=answer.producer.epoch)

    problem = init_problem(broker.config.transactions, init)
    if problem is not ErrorCode.NONE:
        return write(InitAnswer(problem))
    return broker.coordinators.run_transaction(
        init.transactional_id, lambda shard, ticket: shard.init(ticket, init), write, InitAnswer
    )


def _answer(version: int, *, error: int = 0, producer_id: int = -1, producer_epoch: int = -1) -> Parts:
    content = {
        "throttle_time_ms": 0,
        "error_code": error,
        "producer_id": producer_id,
        "producer_epoch": producer_epoch,
    }
    return [write_response(INIT_PRODUCER_ID, version, content)]
