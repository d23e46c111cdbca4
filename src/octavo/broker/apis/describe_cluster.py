"""DescribeCluster (60): the brokers of the cluster.

Version 1 can ask for the controllers, which a broker does not tell; 2 asks whether fenced brokers are wanted, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from octavo.broker.answers import Parts
from octavo.broker.apis.metadata import CLUSTER_OPERATIONS, NOT_ASKED, controller_id
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import DESCRIBE_CLUSTER
from octavo.broker.wire.messages import write_response
from octavo.errors import ErrorCode

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_BROKERS: Final = 1
_CONTROLLERS: Final = 2


def describe_cluster(broker: Broker, request: Request) -> Parts:
    """Answer a DescribeCluster request."""
    asked = request.read()
    content: dict[str, Any] = {
        "throttle_time_ms": 0,
        "error_code": 0,
        "error_message": None,
        "endpoint_type": _BROKERS,
        "cluster_id": "",
        "controller_id": -1,
        "brokers": [],
        "cluster_authorized_operations": NOT_ASKED,
    }
    if asked.endpoint_type == _CONTROLLERS:
        content["error_code"] = ErrorCode.MISMATCHED_ENDPOINT_TYPE
        content["error_message"] = (
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
        )
    elif asked.endpoint_type != _BROKERS:
        content["error_code"] = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        content["error_message"] = f"Unsupported endpoint type {asked.endpoint_type}"
    else:
        content["cluster_id"] = broker.image.cluster_id
        content["controller_id"] = controller_id(broker.image)
        content["brokers"] = [
            {
                "broker_id": node.id,
                "host": node.host,
                "port": node.port,
                "rack": node.rack,
                "is_fenced": node.is_fenced,
            }
            for node in broker.listener_for(request.client).nodes.values()
            if asked.include_fenced_brokers or not node.is_fenced
        ]
        if asked.include_cluster_authorized_operations:
            content["cluster_authorized_operations"] = CLUSTER_OPERATIONS
    return [write_response(DESCRIBE_CLUSTER, request.version, content)]
