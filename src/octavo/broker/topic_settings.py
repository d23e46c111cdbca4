"""The settings of topics as DescribeConfigs and CreateTopics show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from octavo.broker.broker_settings import BrokerSettings
from octavo.broker.kafka_words import NO_TIERS, config_problem
from octavo.broker.refused import Refused
from octavo.broker.setting import Setting, Source, Synonym, shown, type_of
from octavo.errors import ErrorCode, InvalidConfig
from octavo.log.config.broker_defaults import STAND_INS
from octavo.log.config.log_config import TOPIC_OPTIONS, LogConfig
from octavo.log.config.options import Option


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
        problem = config_problem(error) if unknown is None else f"Unknown topic config name: {unknown}"
        raise Refused(ErrorCode.INVALID_CONFIG, problem) from None
    if checked.remote_storage_enable:
        raise Refused(ErrorCode.INVALID_CONFIG, NO_TIERS)
