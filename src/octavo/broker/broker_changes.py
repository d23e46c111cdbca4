"""Changes of a broker's settings while it runs, with the checks of Kafka's `DynamicBrokerConfig`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from octavo.broker.broker_settings import BROKER_SETTINGS, BrokerSettings, is_read_only
from octavo.broker.config_changes import Changes, Operation, changed_list
from octavo.broker.kafka_settings import KAFKA_SETTINGS
from octavo.broker.kafka_words import read_node_id, value_problem
from octavo.broker.kept_settings import KEPT_SETTINGS
from octavo.broker.refused import Refused
from octavo.broker.refused_settings import is_unsafe
from octavo.broker.setting import SettingType
from octavo.broker.wire.messages import Struct
from octavo.errors import ErrorCode, InvalidConfig
from octavo.log.config.broker_defaults import ALL_BROKERS

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_LISTENER: Final = re.compile(r"listener\.name\.[^.]*\.(.*)")
_BUFFER: Final = "log.cleaner.dedupe.buffer.size"
_LEAST_BUFFER: Final = 1 << 20


def broker_resource(broker: Broker, name: str, *, is_logger: bool = False) -> str:
    """Return the name of a broker's settings in the metadata. Raises `Refused` if it is not this broker."""
    if name == ALL_BROKERS and not is_logger:
        return name
    node_id = read_node_id(name)
    if node_id is None:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if node_id != broker.node_id:
        what = "Unexpected node id. Expected" if is_logger else "Unexpected broker id, expected"
        raise Refused(ErrorCode.INVALID_REQUEST, f"{what} {broker.node_id}, but received {name}")
    return str(broker.node_id)


def incremental_broker_changes(present: Mapping[str, str], asked: Struct) -> Changes:
    """Return what becomes of the settings that are named. Raises `Refused`."""
    for each in asked.configs:
        if each.config_operation not in set(Operation):
            raise Refused(ErrorCode.INVALID_REQUEST, f"Unknown operations type {each.config_operation}")
    changes: Changes = {}
    for each in asked.configs:
        operation = Operation(each.config_operation)
        if operation in (Operation.APPEND, Operation.SUBTRACT):
            known = BROKER_SETTINGS.get(each.name)
            if known is None and each.name not in KAFKA_SETTINGS:
                raise Refused(ErrorCode.INVALID_CONFIG, f"Unknown config name: {each.name}")
            if known is None or known.type != SettingType.LIST:
                why = f"Config value {operation.name.lower()} is not allowed for config key: {each.name}"
                raise Refused(ErrorCode.INVALID_CONFIG, why)
            changes[each.name] = changed_list(operation, present.get(each.name, known.default or ""), each.value)
        else:
            changes[each.name] = each.value if operation == Operation.SET else None
    return changes


def check_broker_config(broker: Broker, name: str, config: Mapping[str, str]) -> None:
    """Check what a broker, or all of them, are to have. Raises `Refused`."""
    fixed = [each for each in config if is_read_only(each) and not is_unsafe(each)]
    if fixed:
        _refuse(f"Cannot update these configs dynamically: [{', '.join(fixed)}]")
    secret = [each for each in config if is_unsafe(each)]
    if secret:
        _refuse(
            "These security configs can be dynamically updated only per-listener using the listener prefix: "
            f"[{', '.join(secret)}]"
        )
    for each, value in config.items():
        prefixed = _LISTENER.fullmatch(each)
        if prefixed is not None and is_unsafe(prefixed[1]):
            _refuse(f"{each} cannot be set: it would protect the broker, and that is not done here")
        known = BROKER_SETTINGS.get(each)
        kind = KEPT_SETTINGS.get(each) if known is None else known.kind
        problem = None if kind is None else value_problem(each, kind, value)
        if problem is not None:
            _refuse(problem)
    if _BUFFER in config and int(config[_BUFFER]) < _LEAST_BUFFER:
        _refuse(f"requirement failed: {_BUFFER} must be at least 1MB per cleaner thread.")
    try:
        BrokerSettings({}, config, {}).changed(broker.config)
    except InvalidConfig as error:
        _refuse(str(error))


def _refuse(why: str) -> None:
    raise Refused(ErrorCode.INVALID_REQUEST, why)
