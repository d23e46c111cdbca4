"""InitProducerId (22): the id of an idempotent producer. Transactions are not served yet.

Versions: 2 is flexible, 3 lets a producer ask for a new epoch of the id that it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from octavo.broker.answers import Later, Parts, Work
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import INIT_PRODUCER_ID
from octavo.broker.wire.messages import write_response
from octavo.errors import ErrorCode, LogError

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_NONE: Final = -1


def init_producer_id(broker: Broker, request: Request) -> Parts | Later:
    """Answer an InitProducerId request."""
    asked = request.read()
    version = request.version
    if asked.transactional_id == "":
        return _answer(version, error=ErrorCode.INVALID_REQUEST)
    if asked.transactional_id is not None:
        return _answer(version, error=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if (asked.producer_id == _NONE) != (asked.producer_epoch == _NONE):
        return _answer(version, error=ErrorCode.INVALID_REQUEST)

    def allocate() -> Parts:
        try:
            return _answer(version, producer_id=broker.next_producer_id(), producer_epoch=0)
        except LogError as error:
            return _answer(version, error=error.code)
        except OSError as error:
            broker.troubles.failed("no producer id could be allocated", error)
            return _answer(version, error=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    return Later(allocate, Work.QUERY)


def _answer(version: int, *, error: int = 0, producer_id: int = -1, producer_epoch: int = -1) -> Parts:
    content = {
        "throttle_time_ms": 0,
        "error_code": error,
        "producer_id": producer_id,
        "producer_epoch": producer_epoch,
    }
    return [write_response(INIT_PRODUCER_ID, version, content)]
