"""The settings of a broker: those it was started with, and those that were changed since, for it or for all brokers.

    one broker      a record in the metadata for the broker's id
    all brokers     a record in the metadata for the name ""
    static          what the broker was started with
    default         Kafka's default

The first that has a value counts. `BROKER_SETTINGS` has the settings that are honoured, `MEMBER_SETTINGS` also those of
a member of a cluster; those that can be changed while the broker runs are dynamic. Other settings that Kafka can change
are kept in the metadata, and have no effect here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from octavo.broker.config import BROKER_OPTIONS, CONTROLLER_LISTENERS, BrokerConfig
from octavo.broker.kafka_settings import KAFKA_SETTINGS
from octavo.broker.kept_settings import KEPT_SETTINGS
from octavo.broker.member.config import BOOTSTRAP, INTER_BROKER, MEMBER_OPTIONS, ROLES, VOTERS
from octavo.broker.setting import Setting, SettingType, Source, Synonym, shown, type_of
from octavo.log.config.broker_defaults import STAND_INS, topic_values
from octavo.log.config.log_config import TOPIC_OPTIONS
from octavo.log.config.values import Kind, Text, int32, int64
from octavo.records.layout import MAX_INT64


class BrokerSetting(NamedTuple):
    """A setting of a broker that is honoured."""

    name: str
    kind: Kind
    type: int
    default: str | None  # None if there is none
    is_dynamic: bool


# Kafka does not show them either.
_HIDDEN: Final = {"log.initial.task.delay.ms", "group.consumer.regex.refresh.interval.ms"}
_DYNAMIC_OPTIONS: Final = {
    "max.connections",
    "max.connections.per.ip",
    "max.connections.per.ip.overrides",
    "max.connection.creation.rate",
    "log.cleaner.dedupe.buffer.size",
    "log.cleaner.backoff.ms",
    "group.consumer.assignment.interval.ms",
    "transaction.partition.verification.enable",
}
_INTERVAL: Final = "group_consumer_assignment_interval_ms"
# Settings that topics inherit, where a broker's differs from that of a topic: kind, default, whether it is dynamic.
_OF_TOPICS: Final[dict[str, tuple[Kind, str | None, bool]]] = {
    "log.segment.bytes": (int32(1 << 20), str(1 << 30), True),
    "log.roll.ms": (int64(1), None, True),
    "log.roll.hours": (int32(1), "168", False),
    "log.roll.jitter.ms": (int64(0), None, True),
    "log.roll.jitter.hours": (int32(0), "0", False),
    "log.flush.interval.ms": (int64(), None, True),
    "log.flush.scheduler.interval.ms": (int64(), str(MAX_INT64), False),
    "log.retention.ms": (int64(), None, True),
    "log.retention.minutes": (int32(), None, False),
    "log.retention.hours": (int32(), "168", False),
}
_PLACES: Final = (
    BrokerSetting("node.id", int32(0), SettingType.INT, None, is_dynamic=False),
    BrokerSetting("listeners", Text(), SettingType.LIST, None, is_dynamic=False),
    BrokerSetting("advertised.listeners", Text(), SettingType.LIST, None, is_dynamic=False),
    BrokerSetting("log.dirs", Text(), SettingType.LIST, None, is_dynamic=False),
)

_PLACES_OF_MEMBERS: Final = (
    BrokerSetting(ROLES, Text(), SettingType.LIST, None, is_dynamic=False),
    BrokerSetting(VOTERS, Text(), SettingType.LIST, "", is_dynamic=False),
    BrokerSetting(BOOTSTRAP, Text(), SettingType.LIST, "", is_dynamic=False),
    BrokerSetting(CONTROLLER_LISTENERS, Text(), SettingType.LIST, None, is_dynamic=False),
    BrokerSetting(INTER_BROKER, Text(), SettingType.STRING, None, is_dynamic=False),
)


def _table() -> dict[str, BrokerSetting]:
    settings = list(_PLACES)
    for option in BROKER_OPTIONS.all:
        if option.name not in _HIDDEN:
            default = option.kind.write(option.default)
            is_dynamic = option.name in _DYNAMIC_OPTIONS
            settings.append(BrokerSetting(option.name, option.kind, type_of(option.kind), default, is_dynamic))
    options = {option.name: option for option in TOPIC_OPTIONS.all}
    for topic, names in STAND_INS.items():
        for name in names:
            option = options[topic]
            own = (option.kind, option.kind.write(option.default), True)
            kind, text, is_dynamic = _OF_TOPICS.get(name, own)
            settings.append(BrokerSetting(name, kind, type_of(kind), text, is_dynamic))
    return {setting.name: setting for setting in settings}


def _of_members() -> dict[str, BrokerSetting]:
    settings = list(_PLACES_OF_MEMBERS)
    for option in MEMBER_OPTIONS.all:
        default = option.kind.write(option.default) or None
        settings.append(BrokerSetting(option.name, option.kind, type_of(option.kind), default, is_dynamic=False))
    return {setting.name: setting for setting in settings}


_LISTS: Final = {"config.providers", "cordoned.log.dirs", "metric.reporters"}
_RATES: Final = (  # of replication; a member of a cluster honours the first two
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)


def _shown_once_set() -> dict[str, BrokerSetting]:
    """Return the settings that are no secret, and are shown only where somebody has set them."""
    settings = [BrokerSetting(name, int64(0), SettingType.LONG, None, is_dynamic=True) for name in _RATES]
    for name, kind in KEPT_SETTINGS.items():
        shown_as = SettingType.LIST if name in _LISTS else type_of(kind)
        settings.append(BrokerSetting(name, kind, shown_as, None, is_dynamic=True))
    return {setting.name: setting for setting in settings}


_SHOWN_ONCE_SET: Final = _shown_once_set()
BROKER_SETTINGS: Final = _table()
MEMBER_SETTINGS: Final = BROKER_SETTINGS | _of_members()


def is_read_only(name: str) -> bool:
    """Return whether Kafka has a setting of this name that cannot be changed while the broker runs."""
    known = BROKER_SETTINGS.get(name)
    if known is not None:
        return not known.is_dynamic
    return name in KAFKA_SETTINGS and name not in KEPT_SETTINGS


class BrokerSettings:
    """All settings of one broker at one moment."""

    def __init__(
        self,
        static: Mapping[str, str],
        all_brokers: Mapping[str, str],
        one_broker: Mapping[str, str],
        *,
        is_member: bool = False,
    ) -> None:
        """`is_member`: the broker honours those of a member of a cluster, too."""
        self._known: Final = MEMBER_SETTINGS if is_member else BROKER_SETTINGS
        self._by_source: Final = {
            Source.BROKER: one_broker,
            Source.ALL_BROKERS: all_brokers,
            Source.STATIC: static,
        }
        self._dynamic: Final = {**all_brokers, **one_broker}
        # What topics inherit, by the names of topics' settings.
        self.of_topics: Final = topic_values({**static, **self._dynamic})

    def changed(self, config: BrokerConfig) -> BrokerConfig:
        """Return a configuration with what was changed since the broker was started. Raises `InvalidConfig`."""
        changes = {name: value for name, value in self._dynamic.items() if name in _DYNAMIC_OPTIONS}
        if not changes:
            return config
        read = BROKER_OPTIONS.read(changes)
        if _INTERVAL in read:  # unlike a value that it was started with, it need not be within its bounds
            least, most = (
                config.group_consumer_min_assignment_interval_ms,
                config.group_consumer_max_assignment_interval_ms,
            )
            read[_INTERVAL] = min(max(read[_INTERVAL], least), most)
        return replace(config, **read)

    def static(self, name: str) -> str | None:
        """Return what the broker was started with; None if that says nothing of a setting."""
        return self._by_source[Source.STATIC].get(name)

    def synonyms(self, name: str, names: Sequence[str]) -> tuple[Synonym, ...]:
        """Return what gives a setting its value, the best first. Several settings, `names`, may do so together.

        Kafka shows only what comes after the first value under the name itself.
        """
        found = [
            Synonym(each, values[each], source)
            for source, values in self._by_source.items()
            for each in names
            if each in values
        ]
        found += [
            Synonym(each, setting.default, Source.DEFAULT)
            for each in names
            if (setting := self._known.get(each)) is not None and setting.default is not None
        ]
        first = next((number for number, synonym in enumerate(found) if synonym.name == name), len(found))
        return tuple(found[first:])

    def of_all_brokers(self, names: Iterable[str] | None) -> list[Setting]:
        """Return the settings that were changed for all brokers."""
        source = Source.ALL_BROKERS
        wanted = set(names or ())
        return [
            self._shown(name, (Synonym(name, value, source),))
            for name, value in self._by_source[source].items()
            if not wanted or name in wanted
        ]

    def of_this_broker(self, names: Iterable[str] | None) -> list[Setting]:
        """Return the settings of the broker. Those that do not exist are left out."""
        wanted = set(names or ())
        changed = {*self._by_source[Source.ALL_BROKERS], *self._by_source[Source.BROKER]}
        return [
            self._shown(name, self.synonyms(name, _GROUPS.get(name, (name,))))
            for name in {**self._known, **dict.fromkeys(sorted(changed))}
            if not wanted or name in wanted
        ]

    def _shown(self, name: str, synonyms: tuple[Synonym, ...]) -> Setting:
        known = self._known.get(name) or _SHOWN_ONCE_SET.get(name)
        is_sensitive = known is None  # it may be anything, perhaps a password
        if is_sensitive:
            synonyms = tuple(synonym._replace(value=None) for synonym in synonyms)
        value = synonyms[0].value if synonyms else None
        return Setting(
            name,
            value if known is None or value is None else shown(known.kind, value),
            synonyms[0].source if synonyms else Source.DEFAULT,
            SettingType.UNKNOWN if known is None else known.type,
            synonyms,
            is_read_only=known is None or not known.is_dynamic,
            is_sensitive=is_sensitive,
        )


# Settings that give each other values.
_GROUPS: Final = {name: names for names in STAND_INS.values() for name in names if len(names) > 1}
