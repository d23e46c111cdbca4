"""The settings of single groups and of subscriptions to client metrics.

Those of the consumer protocol have effect. The others are kept for Kafka.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from octavo.broker.broker_settings import BrokerSettings
from octavo.broker.kafka_words import value_problem
from octavo.broker.refused import Refused
from octavo.broker.setting import Setting, SettingType, Source, Synonym, shown, type_of
from octavo.coordinator.groups.config import bounds
from octavo.errors import ErrorCode
from octavo.log.config.values import Kind, Switch, Text, Word, int32

# Kind and default.
_GROUP: Final[dict[str, tuple[Kind, str]]] = {
    "consumer.session.timeout.ms": (int32(1), "45000"),
    "consumer.heartbeat.interval.ms": (int32(1), "5000"),
    "consumer.assignment.interval.ms": (int32(0), "1000"),
    "share.session.timeout.ms": (int32(1), "45000"),
    "share.heartbeat.interval.ms": (int32(1), "5000"),
    "share.assignment.interval.ms": (int32(0), "1000"),
    "share.record.lock.duration.ms": (int32(1000), "30000"),
    "share.delivery.count.limit": (int32(2), "5"),
    "share.partition.max.record.locks": (int32(100), "2000"),
    "share.auto.offset.reset": (Text(), "latest"),
    "share.isolation.level": (Word(("read_committed", "read_uncommitted")), "read_uncommitted"),
    "share.renew.acknowledge.enable": (Switch(), "true"),
    "streams.session.timeout.ms": (int32(1), "45000"),
    "streams.heartbeat.interval.ms": (int32(1), "5000"),
    "streams.assignment.interval.ms": (int32(0), "1000"),
    "streams.num.standby.replicas": (int32(0), "0"),
    "streams.initial.rebalance.delay.ms": (int32(0), "3000"),
}
# The bounds, by default, in the order in which Kafka checks them.
_BOUNDS: Final = {
    "consumer.heartbeat.interval.ms": (5_000, 15_000),
    "consumer.session.timeout.ms": (45_000, 60_000),
    "consumer.assignment.interval.ms": (0, 15_000),
    "share.heartbeat.interval.ms": (5_000, 15_000),
    "share.session.timeout.ms": (45_000, 60_000),
    "share.record.lock.duration.ms": (15_000, 60_000),
    "share.delivery.count.limit": (2, 10),
    "share.partition.max.record.locks": (100, 4_000),
    "share.assignment.interval.ms": (0, 15_000),
    "streams.heartbeat.interval.ms": (5_000, 15_000),
    "streams.session.timeout.ms": (45_000, 60_000),
    "streams.num.standby.replicas": (0, 2),
    "streams.assignment.interval.ms": (0, 15_000),
}
_STANDBYS: Final = ("group.streams.min.standby.replicas", "group.streams.max.standby.replicas")  # there is no minimum
_PROTOCOLS: Final = ("consumer", "share", "streams")
_OF_NO_BROKER: Final = "assignment.interval.ms"  # of a broker it may change, so Kafka leaves it out
_WITHOUT_STAND_IN: Final = {"share.auto.offset.reset", "share.isolation.level", "share.renew.acknowledge.enable"}

_INTERVAL: Final = "interval.ms"
_METRICS: Final = "metrics"
_MATCH: Final = "match"
_METRICS_DEFAULTS: Final = {
    _INTERVAL: ("300000", SettingType.INT),
    _METRICS: ("", SettingType.LIST),
    _MATCH: ("", SettingType.LIST),
}
_INTERVALS: Final = (100, 3_600_000)
_MATCHED: Final = {
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
}


def group_settings(config: Mapping[str, str], names: Iterable[str] | None, broker: BrokerSettings) -> list[Setting]:
    """Return the settings of a group that has `config`. Those of the broker stand in for what it does not have."""
    wanted = set(names or ())
    return [_group_setting(name, config, broker) for name in _GROUP if not wanted or name in wanted]


def _group_setting(name: str, config: Mapping[str, str], broker: BrokerSettings) -> Setting:
    kind, default = _GROUP[name]
    if name in _WITHOUT_STAND_IN:
        synonyms: tuple[Synonym, ...] = (Synonym(name, default, Source.DEFAULT),)
    else:
        stand_in = f"group.{name}"
        synonyms = broker.synonyms(stand_in, (stand_in,))
        if not any(each.source == Source.DEFAULT for each in synonyms):
            synonyms = (*synonyms, Synonym(stand_in, default, Source.DEFAULT))
    if name in config:
        synonyms = (Synonym(name, config[name], Source.GROUP), *synonyms)
    value = config.get(name, _inherited(name, broker))
    return Setting(name, shown(kind, value), synonyms[0].source, type_of(kind), synonyms)


def _inherited(name: str, broker: BrokerSettings) -> str:
    """Return the value of a setting that a group does not have."""
    default = _GROUP[name][1]
    if name in _WITHOUT_STAND_IN or name.endswith(_OF_NO_BROKER):
        return default
    return broker.static(f"group.{name}") or default


def client_metrics_settings(config: Mapping[str, str], names: Iterable[str] | None) -> list[Setting]:
    """Return the settings of a subscription to client metrics that has `config`."""
    wanted = set(names or ())
    return [_metrics_setting(name, config) for name in _METRICS_DEFAULTS if not wanted or name in wanted]


def _metrics_setting(name: str, config: Mapping[str, str]) -> Setting:
    default, kind = _METRICS_DEFAULTS[name]
    if name not in config:
        return Setting(name, default, Source.DEFAULT, kind)
    return Setting(
        name, config[name], Source.CLIENT_METRICS, kind, (Synonym(name, config[name], Source.CLIENT_METRICS),)
    )


def check_group(name: str, config: Mapping[str, str], broker: BrokerSettings) -> None:
    """Check what a group is to have. Raises `Refused`."""
    if not name:
        raise Refused(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    unknown = next((each for each in config if each not in _GROUP), None)
    problem = None if unknown is None else f"Unknown group config name: {unknown}"
    for each, value in config.items():
        problem = problem or value_problem(each, _GROUP[each][0], value)
    problem = problem or _out_of_bounds(config, broker)
    if problem is not None:
        raise Refused(ErrorCode.INVALID_CONFIG, problem)


def _out_of_bounds(config: Mapping[str, str], broker: BrokerSettings) -> str | None:
    """Return which setting of a group does not go with the settings of the broker; None if all do."""
    values = {each: _number(config.get(each) or _inherited(each, broker), each) for each in _BOUNDS}
    for each, by_default in _BOUNDS.items():
        if each.endswith(_OF_NO_BROKER) and each not in config:
            continue
        least, most = _STANDBYS if each == "streams.num.standby.replicas" else bounds(each)
        lower, upper = (
            _number(broker.static(bound) or str(value), each)
            for bound, value in zip((least, most), by_default, strict=True)
        )
        if values[each] < lower:
            return f"{each} must be greater than or equal to {least}"
        if values[each] > upper:
            return f"{each} must be less than or equal to {most}"
    for protocol in _PROTOCOLS:
        session, heartbeat = f"{protocol}.session.timeout.ms", f"{protocol}.heartbeat.interval.ms"
        if values[session] <= values[heartbeat]:
            return f"{session} must be greater than {heartbeat}"
    return None


def _number(text: str, name: str) -> int:
    """Return a number; the default of a setting if nobody has checked that it is one."""
    kind, default = _GROUP[name]
    try:
        return int(kind.read(text))
    except ValueError:
        return int(default)


def check_client_metrics(name: str, config: Mapping[str, str], _: BrokerSettings) -> None:
    """Check what a subscription is to have. Raises `Refused`."""
    if not name:
        raise Refused(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    for each in config:
        if each not in _METRICS_DEFAULTS:
            raise Refused(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {each}")
    if _INTERVAL in config:
        problem = value_problem(_INTERVAL, int32(), config[_INTERVAL])
        if problem is not None:
            raise Refused(ErrorCode.INVALID_CONFIG, problem)
        interval = int(config[_INTERVAL])
        if not _INTERVALS[0] <= interval <= _INTERVALS[1]:
            why = f"Invalid value {interval} for {_INTERVAL}, interval must be between 100 and 3600000 (1 hour)"
            raise Refused(ErrorCode.INVALID_REQUEST, why)
    for pattern in filter(None, config.get(_MATCH, "").split(",")):
        key, separator, expression = pattern.partition("=")
        try:
            re.compile(expression)
        except (re.error, RecursionError):
            separator = ""
        if not separator or key.strip() not in _MATCHED:
            raise Refused(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {pattern}")
