"""IncrementalAlterConfigs (44) and AlterConfigs (33): change the settings of topics, brokers and other resources.

The first changes single settings: it sets, deletes, appends to or subtracts from a list. The other replaces all of
them: settings that are not named are deleted. A broker has its own settings, and the name "" has those of all brokers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from octavo.broker.answers import Later, Parts
from octavo.broker.broker_changes import broker_resource, check_broker_config, incremental_broker_changes
from octavo.broker.config_changes import Changes, Operation, changed_list, check_operation
from octavo.broker.config_resources import ResourceType
from octavo.broker.group_settings import check_client_metrics, check_group
from octavo.broker.kafka_words import name_problem
from octavo.broker.refused import Refused
from octavo.broker.request import Request
from octavo.broker.setting import SettingType
from octavo.broker.topic_settings import check_topic_config, topic_settings
from octavo.broker.troubles import reason, storage_error
from octavo.broker.wire.api_keys import ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS
from octavo.broker.wire.messages import Struct, write_response
from octavo.errors import ErrorCode, OctavoError

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_CHECKS: Final = {ResourceType.GROUP: check_group, ResourceType.CLIENT_METRICS: check_client_metrics}
_Changing = Callable[["Broker", Struct], None]  # raises `Refused`


def incremental_alter_configs(broker: Broker, request: Request) -> Later:
    """Answer an IncrementalAlterConfigs request."""
    return _answer(broker, request, INCREMENTAL_ALTER_CONFIGS)


def alter_configs(broker: Broker, request: Request) -> Later:
    """Answer an AlterConfigs request."""
    return _answer(broker, request, ALTER_CONFIGS)


def _answer(broker: Broker, request: Request, api_key: int) -> Later:
    asked, version = request.read(), request.version
    is_incremental = api_key == INCREMENTAL_ALTER_CONFIGS

    def work() -> Parts:
        counts = Counter((each.resource_type, each.resource_name) for each in asked.resources)
        responses = []
        for each in asked.resources:
            error, message = 0, None
            try:
                if counts[each.resource_type, each.resource_name] > 1:
                    raise Refused(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
                _change(broker, each, is_incremental=is_incremental, only_check=asked.validate_only)
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


def _change(broker: Broker, asked: Struct, *, is_incremental: bool, only_check: bool) -> None:
    """Change one resource. Raises `Refused`."""
    name = checked_name(broker, asked, is_incremental=is_incremental)
    if name is not None:
        changes = changes_of(broker, asked, name, is_incremental=is_incremental)
        if not only_check:
            _keep(broker, asked.resource_type, name, changes)


def checked_name(broker: Broker, asked: Struct, *, is_incremental: bool) -> str | None:
    """Check that there are such resources, and return the name of one in the metadata; None if it is not in them.

    Raises `Refused`.
    """
    if any(count > 1 for count in Counter(each.name for each in asked.configs).values()):
        raise Refused(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    nulls = [
        each.name
        for each in asked.configs
        if each.value is None and not (is_incremental and each.config_operation == Operation.DELETE)
    ]
    if nulls:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")
    kind, name = asked.resource_type, asked.resource_name
    if kind == ResourceType.BROKER:
        name = broker_resource(broker, name)
    elif kind == ResourceType.BROKER_LOGGER and is_incremental:
        _refuse_logger(broker, asked)
        return None
    elif kind not in (ResourceType.TOPIC, *_CHECKS):
        raise Refused(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")
    return str(name)


def changes_of(broker: Broker, asked: Struct, name: str, *, is_incremental: bool) -> Changes:
    """Return what is to be changed of a resource. Raises `Refused` if it cannot have that."""
    kind = asked.resource_type
    present = _present(broker, kind, name)
    changes: Changes = dict.fromkeys(present)
    if is_incremental:
        changes = _incremental(broker, kind, present, asked)
    else:
        changes |= {each.name: each.value for each in asked.configs}
    config = {key: value for key, value in {**present, **changes}.items() if value is not None}
    _check(broker, kind, name, config)
    return changes


def _present(broker: Broker, kind: int, name: str) -> Mapping[str, str]:
    if kind == ResourceType.TOPIC:
        topic = broker.image.topics.get(name)
        return {} if topic is None else topic.config
    return broker.image.configs.get((kind, name), {})


def _check(broker: Broker, kind: int, name: str, config: Mapping[str, str]) -> None:
    if kind == ResourceType.TOPIC:
        if not name:
            raise Refused(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
        problem = name_problem(name)
        if problem is not None:
            raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
        check_topic_config(config)
        if name not in broker.image.topics:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    elif kind == ResourceType.BROKER:
        check_broker_config(broker, name, config)
    else:
        _CHECKS[ResourceType(kind)](name, config, broker.settings)


def _keep(broker: Broker, kind: int, name: str, changes: Changes) -> None:
    try:
        if kind == ResourceType.TOPIC:
            broker.set_config(name, changes)
        elif kind == ResourceType.BROKER:
            broker.set_broker_config(name, changes)
        else:
            broker.set_resource_config(kind, name, changes)
    except (OctavoError, OSError) as error:
        broker.troubles.failed(f"the settings of {ResourceType(kind).name.lower()} {name} could not be changed", error)
        raise Refused(storage_error(error), reason(error)) from None


def _incremental(broker: Broker, kind: int, present: Mapping[str, str], asked: Struct) -> Changes:
    if kind == ResourceType.BROKER:
        return incremental_broker_changes(present, asked)
    changes: Changes = {}
    for each in asked.configs:
        operation = check_operation(each)
        if operation == Operation.DELETE:
            changes[each.name] = None
        elif operation == Operation.SET:
            changes[each.name] = each.value
        else:
            settings = topic_settings(present, broker.settings, [each.name]) if kind == ResourceType.TOPIC else []
            if not settings or settings[0].type != SettingType.LIST:
                why = f"Can't {operation.name} to key {each.name} because its type is not LIST."
                raise Refused(ErrorCode.INVALID_CONFIG, why)
            changes[each.name] = changed_list(operation, settings[0].value or "", each.value)
    return changes


def _refuse_logger(broker: Broker, asked: Struct) -> None:
    """Refuse to change loggers, because there are none. Raises `Refused`."""
    broker_resource(broker, asked.resource_name, is_logger=True)
    for each in asked.configs:
        operation = check_operation(each)
        if operation in (Operation.APPEND, Operation.SUBTRACT):
            why = f"{operation.name} operation is not allowed for the BROKER_LOGGER resource"
            raise Refused(ErrorCode.INVALID_REQUEST, why)
        raise Refused(ErrorCode.INVALID_CONFIG, f"Logger {each.name} does not exist!")
