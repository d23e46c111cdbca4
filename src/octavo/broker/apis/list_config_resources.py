"""ListConfigResources (74): what has settings: topics, brokers and their loggers, groups, client metrics.

Version 0 lists subscriptions to client metrics alone; version 1 names the kinds that are wanted, none for all of them.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Any

from octavo.broker.answers import Parts
from octavo.broker.config_resources import ResourceType
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import LIST_CONFIG_RESOURCES
from octavo.broker.wire.messages import write_response
from octavo.errors import ErrorCode

if TYPE_CHECKING:
    from octavo.broker.broker import Broker


def list_config_resources(broker: Broker, request: Request) -> Parts:
    """Answer a ListConfigResources request."""
    asked = request.read()
    every = set(ResourceType)
    wanted = {ResourceType.CLIENT_METRICS} if request.version == 0 else set(asked.resource_types) or every
    content: dict[str, Any] = {"throttle_time_ms": 0, "error_code": 0, "config_resources": []}
    if wanted <= every:
        content["config_resources"] = [
            {"resource_name": name, "resource_type": kind} for kind in sorted(wanted) for name in _names(broker, kind)
        ]
    else:
        content["error_code"] = ErrorCode.UNSUPPORTED_VERSION
    return [write_response(LIST_CONFIG_RESOURCES, request.version, content)]


def _names(broker: Broker, kind: int) -> list[str]:
    image = broker.image
    if kind == ResourceType.TOPIC:
        return list(image.topics)
    if kind in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
        return [str(node) for node in image.nodes]
    found = takewhile(lambda item: item[0][0] == kind, image.configs.items_from((kind, "")))
    return [name for (_, name), config in found if config]
