"""A topic's configuration: names, defaults, and what is taken and refused, as Apache Kafka has it."""

from __future__ import annotations

import pytest

from octavo.errors import InvalidConfig
from octavo.log.config.log_config import CONFIG_NAMES, LogConfig
from octavo.records import TimestampType
from octavo.records.layout import MAX_INT32, MAX_INT64
from tests.kafka.judge import Judge
from tests.kafka.log_questions import ask

NUMBERS = {
    *(str(number) for edge in (0, 4, 9, 14, 17, 22, -131072, 1 << 20) for number in (edge - 1, edge, edge + 1)),
    *(
        str(number)
        for edge in (MAX_INT32, -MAX_INT32 - 1, MAX_INT64, -MAX_INT64 - 1)
        for number in (edge - 1, edge, edge + 1)
    ),
    *("", " ", "+5", "-2", " 5 ", "\t5\n", "\x015\x1f", "\xa05", "5\xa0", "\u0665"),
    *("1_0", "1e3", "0x10", "5L", "--5", "+"),
    *("0.5", ".5", "1.", ".", "1e-1", "0.5f", "0.5D", "NaN", "nan", "-NaN", "Infinity", "inf", "-0.0", "1.0000001"),
    *("0x1p-2", "0x.8p0", "0x1.p-1d", "0x1", "0xp1", "1e400", "-1e-400", "9" * 30, "9" * 5000, "0" * 30 + "5"),
}
WORDS = {
    *("true", "TRUE", " False ", "yes", "1", "truee"),
    *("gzip", " gzip ", "GZIP", "none", "uncompressed", "producer", "snappy", "lz4", "zstd"),
    *("CreateTime", "LogAppendTime", "createtime", " LogAppendTime", "NoTimestampType"),
    *("delete", "compact", "delete,delete", "compact , delete", "delete,compact", "Delete", ",", ",delete", "delete,"),
    *("*", "* ", "*,*", "0:1", "0:1,1:2", "0:1 , 1:2", "0:1,", "0:1,*", "a", "-1:1", "0:1\xa0,1:2", "0:1\x0b,\x1c1:2"),
}
COMBINATIONS: list[dict[str, str]] = [
    {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "9"},
    {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "10"},
    {"segment.bytes": "2000000", "internal.segment.bytes": "1000"},
    {"internal.segment.bytes": "1000", "segment.bytes": "1000"},
    {"cleanup.policy": "compact", "max.compaction.lag.ms": "1000", "segment.ms": "2000"},
    {"cleanup.policy": "compact", "max.compaction.lag.ms": "3000", "segment.ms": "2000"},
    {"cleanup.policy": "delete", "max.compaction.lag.ms": "1000", "segment.ms": "2000"},
    {"no.such.name": "1"},
    {"segment.ms": "1", "Segment.ms": "1"},
    {"message.format.version": "3.0"},
]
TIERED: list[dict[str, str]] = [
    {"cleanup.policy": "compact"},
    {"cleanup.policy": "compact,delete"},
    {"cleanup.policy": ""},
    {"remote.log.copy.disable": "true"},
    *(
        {f"retention.{unit}": str(whole), f"local.retention.{unit}": str(local), "remote.log.copy.disable": copied}
        for unit in ("ms", "bytes")
        for whole in (-1, 0, 100)
        for local in (-2, -1, 0, 99, 100, 101)
        for copied in ("true", "false")
    ),
]


def text_of(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case frozenset():
            return ",".join(sorted(value))
        case tuple():
            return ",".join(value)
    return str(value)


def values_of(config: LogConfig) -> dict[str, str]:
    """Every value in the words of Java."""
    values = {name.replace("_", "."): getattr(config, name) for name in LogConfig.__dataclass_fields__}
    texts = {name: text_of(value) for name, value in values.items()}
    append_time = config.message_timestamp_type is TimestampType.LOG_APPEND_TIME
    texts["message.timestamp.type"] = "LogAppendTime" if append_time else "CreateTime"
    texts["min.cleanable.dirty.ratio"] = str(config.min_cleanable_dirty_ratio).replace("nan", "NaN")
    texts["max.segment.ms"] = str(config.max_segment_ms)
    return texts


def in_order(values: dict[str, str]) -> dict[str, str]:
    return values | {"cleanup.policy": ",".join(sorted(values["cleanup.policy"].split(",")))}


def test_configurations_have_kafkas_names_and_defaults(kafka_broker: Judge) -> None:
    defaults = kafka_broker.ask("files.configNames")
    assert set(defaults) == CONFIG_NAMES
    assert defaults.pop("internal.segment.bytes") == "null"
    ours = values_of(LogConfig())
    del ours["max.segment.ms"]
    assert ours == defaults


@pytest.mark.parametrize("tiered", [False, True])
def test_configurations_are_taken_and_refused_as_kafka_does(kafka_broker: Judge, tiered: bool) -> None:
    cases = [*COMBINATIONS, *TIERED] + [{name: text} for name in CONFIG_NAMES for text in sorted(NUMBERS | WORDS)]
    if tiered:
        cases = [{**case, "remote.storage.enable": "true"} for case in cases if "remote.storage.enable" not in case]
    taken = 0
    for case, answer in zip(cases, ask(kafka_broker, "config", cases), strict=True):
        try:
            config = LogConfig.from_properties(case)
        except InvalidConfig:
            assert answer.error is not None, case
            continue
        assert answer.error is None, (case, answer)
        assert values_of(config) == in_order(answer.value), case
        properties = config.to_properties()
        assert LogConfig.from_properties(properties).to_properties() == properties, case
        taken += 1
    assert taken > 300  # not all refused
