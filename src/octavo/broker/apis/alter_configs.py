"""IncrementalAlterConfigs (44) and AlterConfigs (33): change the settings of topics.

The first changes single settings: it sets, deletes, appends to or subtracts from a list. The other replaces all of
them: settings that are not named are deleted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from octavo.broker.answers import Later, Parts
from octavo.broker.apis.describe_configs import TOPIC
from octavo.broker.cluster_image import TopicImage
from octavo.broker.kafka_words import config_problem
from octavo.broker.refused import Refused
from octavo.broker.request import Request
from octavo.broker.topic_settings import LIST, topic_settings
from octavo.broker.wire.api_keys import ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS
from octavo.broker.wire.messages import Struct, write_response
from octavo.errors import ErrorCode, InvalidConfig, OctavoError
from octavo.log.config.log_config import LogConfig

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_SET: Final = 0
_DELETE: Final = 1
_APPEND: Final = 2
_SUBTRACT: Final = 3
_OPERATIONS: Final = {_APPEND: "APPEND", _SUBTRACT: "SUBTRACT"}

Changes = dict[str, str | None]


def incremental_alter_configs(broker: Broker, request: Request) -> Later:
    """Answer an IncrementalAlterConfigs request."""
    return _answer(broker, request, INCREMENTAL_ALTER_CONFIGS, _incremental)


def alter_configs(broker: Broker, request: Request) -> Later:
    """Answer an AlterConfigs request."""
    return _answer(broker, request, ALTER_CONFIGS, _whole)


def _answer(
    broker: Broker, request: Request, api_key: int, changes_of: Callable[[Broker, TopicImage, Struct], Changes]
) -> Later:
    asked, version = request.read(), request.version

    def work() -> Parts:
        counts = Counter((each.resource_type, each.resource_name) for each in asked.resources)
        responses = []
        for each in asked.resources:
            error, message = 0, None
            try:
                if counts[each.resource_type, each.resource_name] > 1:
                    raise Refused(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
                _change(broker, each, changes_of, only_check=asked.validate_only)
            except Refused as refused:
                error, message = refused.code, refused.message
            responses.append(
                {
                    "error_code": error,
                    "error_message": message,
                    "resource_type": each.resource_type,
                    "resource_name": each.resource_name,
                }
            )
        return [write_response(api_key, version, {"throttle_time_ms": 0, "responses": responses})]

    return Later(work)


def _change(
    broker: Broker,
    asked: Struct,
    changes_of: Callable[[Broker, TopicImage, Struct], Changes],
    *,
    only_check: bool,
) -> None:
    if asked.resource_type != TOPIC:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Unknown resource type {asked.resource_type}")
    topic = broker.image.topics.get(asked.resource_name)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{asked.resource_name}' does not exist.")
    if any(count > 1 for count in Counter(each.name for each in asked.configs).values()):
        raise Refused(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    changes = changes_of(broker, topic, asked)
    merged = {name: value for name, value in {**topic.config, **changes}.items() if value is not None}
    try:
        LogConfig.from_properties(merged)
        if not only_check:
            broker.set_config(topic.name, changes)
    except InvalidConfig as error:
        raise Refused(ErrorCode.INVALID_CONFIG, config_problem(error)) from None
    except (OctavoError, OSError) as error:
        broker.say(f"the settings of topic {topic.name} could not be changed: {error}")
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from None


def _whole(broker: Broker, topic: TopicImage, asked: Struct) -> Changes:
    changes: Changes = dict.fromkeys(topic.config)
    for each in asked.configs:
        if each.value is None:
            raise Refused(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {each.name}")
        changes[each.name] = each.value
    return changes


def _incremental(broker: Broker, topic: TopicImage, asked: Struct) -> Changes:
    changes: Changes = {}
    for each in asked.configs:
        changes[each.name] = _changed(broker, topic, each)
    return changes


def _changed(broker: Broker, topic: TopicImage, each: Struct) -> str | None:
    """Return the new value of a setting; None if it is deleted."""
    operation, name, value = each.config_operation, each.name, each.value
    if operation == _DELETE:
        return None
    if value is None:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {name}")
    text: str = value
    if operation == _SET:
        return text
    if operation not in _OPERATIONS:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, None)
    settings: list[Any] = topic_settings(topic.config, broker.properties, [name])
    if not settings or settings[0].type != LIST:
        why = f"Can't {_OPERATIONS[operation]} to key {name} because its type is not LIST."
        raise Refused(ErrorCode.INVALID_CONFIG, why)
    present = [item for item in settings[0].value.split(",") if item]
    given = [item.strip() for item in text.split(",")]
    if operation == _APPEND:
        present += [item for item in given if item not in present]
    else:
        present = [item for item in present if item not in given]
    return ",".join(present)
