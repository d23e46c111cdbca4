"""DescribeConfigs (32): the settings of topics, brokers, groups and subscriptions to client metrics.

Of a broker those are told that are honoured. It has no loggers. Versions: 1 has sources and synonyms, 3 types and
documentation (there is none here), 4 is flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from octavo.broker.answers import Later, Parts, Work
from octavo.broker.config_resources import ResourceType
from octavo.broker.group_settings import client_metrics_settings, group_settings
from octavo.broker.kafka_words import MALFORMED, name_problem, read_node_id
from octavo.broker.refused import Refused
from octavo.broker.request import Request
from octavo.broker.setting import Setting
from octavo.broker.topic_settings import topic_settings
from octavo.broker.wire.api_keys import DESCRIBE_CONFIGS
from octavo.broker.wire.messages import Struct, write_response
from octavo.errors import ErrorCode

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_FEW: Final = 5  # resources, of which each takes half a millisecond


def describe_configs(broker: Broker, request: Request) -> Parts | Later:
    """Answer a DescribeConfigs request. Another thread does it if it is about many resources."""
    asked, version = request.read(), request.version
    if len(asked.resources) > _FEW:
        return Later(lambda: _answer(broker, version, asked), Work.QUERY)
    return _answer(broker, version, asked)


def _answer(broker: Broker, version: int, asked: Struct) -> Parts:
    if all(each.resource_type in set(ResourceType) for each in asked.resources):
        results = [_resource(broker, each, asked) for each in asked.resources]
    else:  # Kafka answers none of them then
        results = [_result(each, ErrorCode.INVALID_REQUEST, MALFORMED) for each in asked.resources]
    return [write_response(DESCRIBE_CONFIGS, version, {"throttle_time_ms": 0, "results": results})]


def _resource(broker: Broker, wanted: Struct, asked: Struct) -> dict[str, Any]:
    try:
        settings = _settings(broker, wanted)
    except Refused as refused:
        return _result(wanted, refused.code, refused.message)
    return _result(wanted) | {"configs": [_content(each, asked) for each in settings]}


def _result(wanted: Struct, code: int = 0, message: str | None = "") -> dict[str, Any]:
    return {
        "error_code": code,
        "error_message": message,
        "resource_type": wanted.resource_type,
        "resource_name": wanted.resource_name,
        "configs": [],
    }


def _settings(broker: Broker, wanted: Struct) -> list[Setting]:
    """Return the settings of a resource. Raises `Refused`."""
    kind, name, names = wanted.resource_type, wanted.resource_name, wanted.configuration_keys
    if kind == ResourceType.TOPIC:
        return _of_topic(broker, name, names)
    if kind == ResourceType.BROKER:
        if not name:
            return broker.settings.of_all_brokers(names)
        if _broker_id(name) != broker.node_id:
            why = f"Unexpected broker id, expected {broker.node_id} or empty string, but received {name}"
            raise Refused(ErrorCode.INVALID_REQUEST, why)
        return broker.settings.of_this_broker(names)
    if kind == ResourceType.BROKER_LOGGER:
        if not name:
            raise Refused(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
        if _broker_id(name) != broker.node_id:
            why = f"Unexpected broker id, expected {broker.node_id} but received {name}"
            raise Refused(ErrorCode.INVALID_REQUEST, why)
        return []
    config = broker.image.configs.get((kind, name), {})
    if kind == ResourceType.GROUP:
        if not name:
            raise Refused(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
        return group_settings(config, names, broker.settings)
    if not name:
        raise Refused(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
    return client_metrics_settings(config, names)


def _of_topic(broker: Broker, name: str, names: tuple[str, ...] | None) -> list[Setting]:
    problem = name_problem(name)
    if problem is not None:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    topic = broker.image.topics.get(name)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
    return topic_settings(topic.config, broker.settings, names)


def _broker_id(name: str) -> int:
    node_id = read_node_id(name)
    if node_id is None:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    return node_id


def _content(each: Setting, asked: Struct) -> dict[str, Any]:
    synonyms = each.synonyms if asked.include_synonyms else ()
    return {
        "name": each.name,
        "value": each.value,
        "read_only": each.is_read_only,
        "config_source": each.source,
        "is_sensitive": each.is_sensitive,
        "synonyms": [{"name": name, "value": value, "source": source} for name, value, source in synonyms],
        "config_type": each.type,
        "documentation": None,
    }
