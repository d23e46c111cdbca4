"""Settings that a topic inherits: those of the broker, or else Kafka's defaults.

Where Apache Kafka has run, its settings are in its `server.properties`; the metadata hold only settings that were
changed while it ran. So the defaults cannot be trusted there. A topic's configuration counts as known only if every
setting that can cause records to be deleted is given by the topic, by the metadata, or by the `server.properties` that
the caller provides. A directory that only Octavo has written never had settings other than Kafka's defaults.

That is for programs. A broker has to do what its settings say, as Kafka would: those of the topic, those in the
metadata, those that it was started with, and defaults for all others. There is one exception, because what was deleted
by mistake is gone: where another broker has served, no default of Kafka's says how long records are kept. They are kept
for ever until one of these settings says otherwise, as if the broker had been started with `log.retention.ms=-1`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from octavo.errors import InvalidConfig
from octavo.log.config.log_config import UNLIMITED, LogConfig

if TYPE_CHECKING:
    from octavo.log.metadata import MetadataStore, Topic

BROKER_RESOURCE: Final = 4  # ConfigResource.Type
ALL_BROKERS: Final = ""  # the resource name for settings of all brokers

_POLICY: Final = "cleanup.policy"
_TIME: Final = "retention.ms"
# Settings that decide which records are removed, if the cleanup policy allows it.
_OF_DELETION: Final = (_TIME, "retention.bytes")
_OF_COMPACTION: Final = ("delete.retention.ms", "min.compaction.lag.ms")
_MINUTE_MS: Final = 60 * 1000
_HOUR_MS: Final = 60 * _MINUTE_MS

# Each topic setting, with the broker settings it falls back to: the first one set counts (ServerTopicConfigSynonyms).
STAND_INS: Final[dict[str, tuple[str, ...]]] = {
    "segment.bytes": ("log.segment.bytes",),
    "segment.ms": ("log.roll.ms", "log.roll.hours"),
    "segment.jitter.ms": ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    "segment.index.bytes": ("log.index.size.max.bytes",),
    "index.interval.bytes": ("log.index.interval.bytes",),
    "preallocate": ("log.preallocate",),
    "file.delete.delay.ms": ("log.segment.delete.delay.ms",),
    "flush.messages": ("log.flush.interval.messages",),
    "flush.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    _POLICY: ("log.cleanup.policy",),
    _TIME: ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    "retention.bytes": ("log.retention.bytes",),
    "delete.retention.ms": ("log.cleaner.delete.retention.ms",),
    "min.compaction.lag.ms": ("log.cleaner.min.compaction.lag.ms",),
    "max.compaction.lag.ms": ("log.cleaner.max.compaction.lag.ms",),
    "min.cleanable.dirty.ratio": ("log.cleaner.min.cleanable.ratio",),
    "max.message.bytes": ("message.max.bytes",),
    "compression.type": ("compression.type",),
    "compression.gzip.level": ("compression.gzip.level",),
    "compression.lz4.level": ("compression.lz4.level",),
    "compression.zstd.level": ("compression.zstd.level",),
    "message.timestamp.type": ("log.message.timestamp.type",),
    "message.timestamp.before.max.ms": ("log.message.timestamp.before.max.ms",),
    "message.timestamp.after.max.ms": ("log.message.timestamp.after.max.ms",),
    "min.insync.replicas": ("min.insync.replicas",),
    "unclean.leader.election.enable": ("unclean.leader.election.enable",),
    "local.retention.ms": ("log.local.retention.ms",),
    "local.retention.bytes": ("log.local.retention.bytes",),
}

RETENTION: Final = frozenset(STAND_INS[_TIME])
KEPT_BY_DEFAULT: Final = {"log.retention.ms": str(UNLIMITED)}


class TopicConfig(NamedTuple):
    """The configuration of a topic, as far as it is known."""

    config: LogConfig  # with unlimited retention where retention is not known
    is_known: bool  # every setting that can cause records to be removed is known; otherwise nothing may be removed
    may_be_compacted: bool


UNKNOWN: Final = TopicConfig(LogConfig(retention_ms=UNLIMITED), is_known=False, may_be_compacted=True)


class BrokerDefaults:
    """The settings of one broker, under the names of the topic settings."""

    def __init__(
        self,
        metadata: MetadataStore,
        server_properties: Mapping[str, str] | None = None,
        *,
        as_broker: bool = False,
        was_served: bool | None = None,
    ) -> None:
        """Read the settings. Raises `InvalidConfig`.

        server_properties: those of the broker; None if they are not known
        as_broker: the broker is this process, so what it was not told has Kafka's defaults, except for retention
        was_served: whether Apache Kafka has run on the directory; by default, whether a broker was registered there
        """
        was_served = bool(metadata.image.brokers) if was_served is None else was_served
        self._metadata = metadata
        self._server_properties = dict(server_properties or {})
        self._are_all = server_properties is not None or not was_served
        self.assumed: Final[Mapping[str, str]] = (
            KEPT_BY_DEFAULT if as_broker and was_served and not RETENTION & self._server_properties.keys() else {}
        )
        self._server_properties |= self.assumed
        self._as_broker = as_broker
        self._values = self._read(None, {})

    def check(self, broker: str, changes: Mapping[str, str | None]) -> None:
        """Check changes of a broker's configuration, or of that of `ALL_BROKERS`. Raises `InvalidConfig`."""
        self._read(broker, changes)

    def refresh(self) -> None:
        """Read the settings again after the metadata have changed."""
        self._values = self._read(None, {})

    def _read(self, changed: str | None, changes: Mapping[str, str | None]) -> dict[str, str]:
        dynamic: dict[str, str] = {}
        for broker in self._brokers:
            stored = self._metadata.image.configs.get((BROKER_RESOURCE, broker), {})
            merged = {**stored, **changes} if broker == changed else stored
            dynamic |= {name: value for name, value in merged.items() if value is not None}
        values = topic_values(self._server_properties | dynamic)
        LogConfig.from_stored(values)  # raises, before anything is changed
        return values

    def config_of(self, topic: Topic | None) -> TopicConfig:
        """Return the configuration of a topic, as far as it is known. Raises `InvalidConfig`.

        `topic` is None for a topic that is not in the metadata.
        """
        if topic is None:
            return UNKNOWN
        values = {**self._values, **topic.config}
        unknown = () if self._are_all else tuple(name for name in _decisive(values.get(_POLICY)) if name not in values)
        config = LogConfig.from_stored({**values, **{name: str(UNLIMITED) for name in unknown if name in _OF_DELETION}})
        return TopicConfig(config, not unknown or self._as_broker, config.is_compacted or _POLICY in unknown)

    def awaits_retention(self, topic: Topic) -> bool:
        """Return whether a topic's records are kept only because nobody has said for how long."""
        if not self.assumed or _TIME in topic.config or not self.config_of(topic).config.is_deleted:
            return False
        of_brokers = (self._metadata.image.configs.get((BROKER_RESOURCE, broker), {}) for broker in self._brokers)
        return not any(RETENTION & configs.keys() for configs in of_brokers)

    @property
    def _brokers(self) -> tuple[str, str]:
        return (ALL_BROKERS, str(self._metadata.node_id))


def _decisive(policy: str | None) -> tuple[str, ...]:
    """Return the settings that must be known before anything may be removed under this policy."""
    if policy is None:
        return (_POLICY, *_OF_DELETION)
    of_deletion = _OF_DELETION if "delete" in policy else ()
    return (*of_deletion, *_OF_COMPACTION) if "compact" in policy else of_deletion


def topic_values(settings: Mapping[str, str]) -> dict[str, str]:
    """Return what topics inherit of a broker's settings, by the names of topics' settings. Raises `InvalidConfig`."""
    values = {}
    for name, stand_ins in STAND_INS.items():
        found = next((stand_in for stand_in in stand_ins if stand_in in settings), None)
        if found is not None:
            values[name] = _value(found, settings[found])
    return values


def _value(name: str, text: str) -> str:
    """Convert a broker's value to the form of the topic setting: milliseconds, and unlimited (-1) if negative."""
    if name not in {"log.retention.ms", "log.retention.minutes"} and not name.endswith(".hours"):
        return text
    try:
        number = int(text)
    except ValueError:
        raise InvalidConfig(name, text, "it must be a whole number") from None
    factor = _HOUR_MS if name.endswith(".hours") else _MINUTE_MS if name.endswith(".minutes") else 1
    return str(max(number * factor, UNLIMITED))
