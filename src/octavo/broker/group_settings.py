"""The settings of groups and of subscriptions to client metrics. They are kept for Kafka, and have no effect here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from octavo.broker.kafka_words import value_problem
from octavo.broker.refused import Refused
from octavo.broker.setting import Setting, SettingType, Source, Synonym, shown, type_of
from octavo.errors import ErrorCode
from octavo.log.config.values import Kind, Switch, Text, Word, int32

# Kind, default, and the setting of a broker that stands in.
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


def group_settings(config: Mapping[str, str], names: Iterable[str] | None) -> list[Setting]:
    """Return the settings of a group that has `config`."""
    wanted = set(names or ())
    return [_group_setting(name, config) for name in _GROUP if not wanted or name in wanted]


def _group_setting(name: str, config: Mapping[str, str]) -> Setting:
    kind, default = _GROUP[name]
    stand_in = name if name in _WITHOUT_STAND_IN else f"group.{name}"
    synonyms: tuple[Synonym, ...] = (Synonym(stand_in, default, Source.DEFAULT),)
    if name in config:
        synonyms = (Synonym(name, config[name], Source.GROUP), *synonyms)
    return Setting(name, shown(kind, config.get(name, default)), synonyms[0].source, type_of(kind), synonyms)


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


def check_group(name: str, config: Mapping[str, str]) -> None:
    """Check what a group is to have. Raises `Refused`."""
    if not name:
        raise Refused(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    unknown = next((each for each in config if each not in _GROUP), None)
    if unknown is not None:
        raise Refused(ErrorCode.INVALID_CONFIG, f"Unknown group config name: {unknown}")
    for each, value in config.items():
        problem = value_problem(each, _GROUP[each][0], value)
        if problem is not None:
            raise Refused(ErrorCode.INVALID_CONFIG, problem)


def check_client_metrics(name: str, config: Mapping[str, str]) -> None:
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
