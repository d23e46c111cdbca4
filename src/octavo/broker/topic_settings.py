"""The settings of topics as DescribeConfigs and CreateTopics show them: value, type, where it comes from, synonyms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from octavo.log.config.broker_defaults import STAND_INS
from octavo.log.config.log_config import TOPIC_OPTIONS
from octavo.log.config.values import Integer, Member, Ratio, Switch, Throttled, Word, Words

# The numbers of ConfigDef.Type on the wire.
_BOOLEAN: Final = 1
_STRING: Final = 2
_INT: Final = 3
_LONG: Final = 5
_DOUBLE: Final = 6
LIST: Final = 7
_TYPES: Final = {Switch: _BOOLEAN, Ratio: _DOUBLE, Word: _STRING, Member: _STRING, Words: LIST, Throttled: LIST}

# Where a value comes from.
FROM_TOPIC: Final = 1
FROM_BROKER: Final = 4
DEFAULT: Final = 5

# Settings of a broker that have no value unless one is given: then another setting, in hours, counts.
_WITHOUT_DEFAULT: Final = {"log.roll.ms", "log.roll.jitter.ms", "log.retention.ms", "log.flush.interval.ms"}


class Synonym(NamedTuple):
    """A setting that gives a topic's setting its value, unless one before it does."""

    name: str
    value: str
    source: int


class Setting(NamedTuple):
    """One setting of a topic."""

    name: str
    value: str
    source: int
    type: int
    synonyms: tuple[Synonym, ...]


def topic_settings(
    config: Mapping[str, str], broker: Mapping[str, str], names: Iterable[str] | None = None
) -> list[Setting]:
    """Return the settings of a topic.

    config: what the topic itself has
    broker: what the broker was started with
    names: the settings that are wanted; those that do not exist are left out. None for all
    """
    wanted = None if names is None else set(names)
    return [_setting(option, config, broker) for option in TOPIC_OPTIONS.all if wanted is None or option.name in wanted]


def _setting(option: Any, config: Mapping[str, str], broker: Mapping[str, str]) -> Setting:
    name = option.name
    synonyms = []
    if name in config:
        synonyms.append(Synonym(name, config[name], FROM_TOPIC))
    stand_ins = STAND_INS.get(name, ())
    synonyms += [Synonym(each, broker[each], FROM_BROKER) for each in stand_ins if each in broker]
    default = option.kind.write(option.default)
    if stand_ins and stand_ins[0] not in _WITHOUT_DEFAULT:
        synonyms.append(Synonym(stand_ins[0], default, DEFAULT))
    value = synonyms[0].value if synonyms and synonyms[0].source != DEFAULT else default
    source = synonyms[0].source if synonyms else DEFAULT
    return Setting(name, value, source, _type(option.kind), tuple(synonyms))


def _type(kind: object) -> int:
    if isinstance(kind, Integer):
        return _INT if kind.is_int32 else _LONG
    return _TYPES[type(kind)]
