"""UnregisterBroker (64): take a broker out of the cluster that is gone for good.

A broker that is alone knows of no other, and stays registered itself. Kafka removes whatever broker is named, also the
only one, which nobody can reach from then on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from octavo.broker.answers import Parts
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import UNREGISTER_BROKER
from octavo.broker.wire.messages import write_response
from octavo.errors import ErrorCode

if TYPE_CHECKING:
    from octavo.broker.broker import Broker


def unregister_broker(broker: Broker, request: Request) -> Parts:
    """Answer an UnregisterBroker request."""
    number = request.read().broker_id
    if number == broker.node_id:
        code = ErrorCode.INVALID_REQUEST
        why = f"Broker {number} is the only one of its cluster, and serves: it cannot be unregistered."
    else:
        code = ErrorCode.BROKER_ID_NOT_REGISTERED
        why = f"Broker ID {number} is not currently registered"
    content = {"throttle_time_ms": 0, "error_code": code, "error_message": why}
    return [write_response(UNREGISTER_BROKER, request.version, content)]
