"""DescribeConfigs (32): the settings of topics, and of this broker.

Versions: 1 has sources and synonyms, 3 types and documentation, 4 is flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from octavo.broker.answers import Parts
from octavo.broker.kafka_words import MALFORMED, name_problem
from octavo.broker.request import Request
from octavo.broker.topic_settings import Setting, topic_settings
from octavo.broker.wire.api_keys import DESCRIBE_CONFIGS
from octavo.broker.wire.messages import Struct, write_response
from octavo.errors import ErrorCode

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

TOPIC: Final = 2
BROKER: Final = 4
_TYPES: Final = (TOPIC, BROKER)


def describe_configs(broker: Broker, request: Request) -> Parts:
    """Answer a DescribeConfigs request."""
    asked = request.read()
    if all(each.resource_type in _TYPES for each in asked.resources):
        results = [_resource(broker, each, asked) for each in asked.resources]
    else:  # Kafka answers none of them then
        results = [_malformed(each) for each in asked.resources]
    return [write_response(DESCRIBE_CONFIGS, request.version, {"throttle_time_ms": 0, "results": results})]


def _resource(broker: Broker, wanted: Struct, asked: Struct) -> dict[str, Any]:
    content: dict[str, Any] = {
        "error_code": 0,
        "error_message": "",
        "resource_type": wanted.resource_type,
        "resource_name": wanted.resource_name,
        "configs": [],
    }
    if wanted.resource_type == TOPIC:
        problem = name_problem(wanted.resource_name)
        if problem is not None:
            return content | {"error_code": ErrorCode.INVALID_TOPIC_EXCEPTION, "error_message": problem}
        topic = broker.image.topics.get(wanted.resource_name)
        if topic is None:
            return content | {"error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        settings = topic_settings(topic.config, broker.properties, wanted.configuration_keys)
        return content | {"configs": [setting_content(each, asked) for each in settings]}
    if wanted.resource_name not in ("", str(broker.node_id)):
        why = f"Unexpected broker id, expected {broker.node_id} or empty string, but received {wanted.resource_name}"
        return content | {"error_code": ErrorCode.INVALID_REQUEST, "error_message": why}
    return content


def _malformed(wanted: Struct) -> dict[str, Any]:
    return {
        "error_code": ErrorCode.INVALID_REQUEST,
        "error_message": MALFORMED,
        "resource_type": wanted.resource_type,
        "resource_name": wanted.resource_name,
        "configs": [],
    }


def setting_content(each: Setting, asked: Struct) -> dict[str, Any]:
    """Return a setting as an answer has it."""
    return {
        "name": each.name,
        "value": each.value,
        "read_only": False,
        "config_source": each.source,
        "is_sensitive": False,
        "synonyms": [
            {"name": synonym.name, "value": synonym.value, "source": synonym.source} for synonym in each.synonyms
        ]
        if asked.include_synonyms
        else [],
        "config_type": each.type,
        "documentation": None,
    }
