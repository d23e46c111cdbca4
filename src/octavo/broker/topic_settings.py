"""The settings of topics as DescribeConfigs and CreateTopics show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from octavo.broker.broker_settings import BrokerSettings
from octavo.broker.kafka_words import NO_TIERS, config_problem, value_problem
from octavo.broker.refused import Refused
from octavo.broker.setting import Setting, Source, Synonym, shown, type_of
from octavo.errors import ErrorCode, InvalidConfig
from octavo.log.config.broker_defaults import STAND_INS
from octavo.log.config.log_config import TOPIC_OPTIONS, LogConfig
from octavo.log.config.options import Option

# Kafka checks values in the order in which it defines the settings, and tells the first that is wrong.
_CHECKED: Final = (
    "segment.bytes",
    "segment.ms",
    "segment.jitter.ms",
    "segment.index.bytes",
    "flush.messages",
    "flush.ms",
    "retention.bytes",
    "retention.ms",
    "max.message.bytes",
    "index.interval.bytes",
    "delete.retention.ms",
    "min.compaction.lag.ms",
    "max.compaction.lag.ms",
    "file.delete.delay.ms",
    "min.cleanable.dirty.ratio",
    "cleanup.policy",
    "unclean.leader.election.enable",
    "min.insync.replicas",
    "compression.type",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.zstd.level",
    "preallocate",
    "message.timestamp.type",
    "message.timestamp.before.max.ms",
    "message.timestamp.after.max.ms",
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
    "remote.storage.enable",
    "local.retention.ms",
    "local.retention.bytes",
    "remote.log.copy.disable",
    "remote.log.delete.on.disable",
)


def topic_settings(
    config: Mapping[str, str], broker: BrokerSettings, names: Iterable[str] | None = None
) -> list[Setting]:
    """Return the settings of a topic.

    config: what the topic itself has
    broker: what it inherits
    names: the settings that are wanted; those that do not exist are left out. None, or no name at all, for all
    """
    wanted = set(names or ())
    return [_setting(option, config, broker) for option in TOPIC_OPTIONS.all if not wanted or option.name in wanted]


def _setting(option: Option, config: Mapping[str, str], broker: BrokerSettings) -> Setting:
    name = option.name
    default = option.kind.write(option.default)
    value = shown(option.kind, config.get(name, broker.of_topics.get(name, default)))
    stand_ins = STAND_INS.get(name, ())
    synonyms = broker.synonyms(stand_ins[0], stand_ins) if stand_ins else ()
    if name in config:
        synonyms = (Synonym(name, value, Source.TOPIC), *synonyms)
    return Setting(name, value, synonyms[0].source if synonyms else Source.DEFAULT, type_of(option.kind), synonyms)


def check_topic_config(config: Mapping[str, str]) -> None:
    """Check what a topic is to have. Raises `Refused`."""
    try:
        checked = LogConfig.from_properties(config)
    except InvalidConfig as error:
        unknown = next((each for each in config if each not in TOPIC_OPTIONS.names), None)  # names come before values
        if unknown is not None:
            raise Refused(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {unknown}") from None
        given = (each for each in _CHECKED if each in config)
        problems = (value_problem(each, TOPIC_OPTIONS.kind(each), config[each]) for each in given)
        problem = next(filter(None, problems), None) or config_problem(error)
        raise Refused(ErrorCode.INVALID_CONFIG, problem) from None
    if checked.remote_storage_enable:
        raise Refused(ErrorCode.INVALID_CONFIG, NO_TIERS)
