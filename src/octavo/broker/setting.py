"""A setting as clients see it: its value, its type, where the value comes from, and what else could give it one."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

from octavo.log.config.values import Integer, Kind, Member, Ordered, Ratio, Switch, Text, Throttled, Word, Words
from octavo.records.layout import MAX_INT16


class SettingType(IntEnum):
    """The type of a setting's values (ConfigDef.Type)."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7


class Source(IntEnum):
    """Where a value comes from."""

    TOPIC = 1
    BROKER = 2  # changed for one broker while it ran
    ALL_BROKERS = 3  # changed for all brokers while they ran
    STATIC = 4  # what the broker was started with
    DEFAULT = 5
    CLIENT_METRICS = 7
    GROUP = 8


class Synonym(NamedTuple):
    """A setting that gives another one its value, unless one before it does."""

    name: str
    value: str | None
    source: int


class Setting(NamedTuple):
    """One setting."""

    name: str
    value: str | None
    source: int
    type: int
    synonyms: tuple[Synonym, ...] = ()
    is_read_only: bool = False
    is_sensitive: bool = False


_TYPES: Final = {
    Switch: SettingType.BOOLEAN,
    Ratio: SettingType.DOUBLE,
    Word: SettingType.STRING,
    Member: SettingType.STRING,
    Text: SettingType.STRING,
    Words: SettingType.LIST,
    Ordered: SettingType.LIST,
    Throttled: SettingType.LIST,
}


def type_of(kind: Kind) -> SettingType:
    """Return the type of a kind of values."""
    if isinstance(kind, Integer):
        if kind.maximum == MAX_INT16:
            return SettingType.SHORT
        return SettingType.INT if kind.is_int32 else SettingType.LONG
    return next(_TYPES[each] for each in type(kind).__mro__ if each in _TYPES)


def shown(kind: Kind, text: str) -> str:
    """Return a valid value as Kafka shows it: `true` for `TRUE`, and lists without blanks."""
    if isinstance(kind, (Words, Throttled)):
        return ",".join(item.strip() for item in text.split(",") if item.strip())
    try:
        return kind.write(kind.read(text))
    except ValueError:  # nobody has checked what a broker was started with
        return text
