"""The configuration of a consumer."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.errors import InvalidConfig
from octavo.log import DataDirectory, Isolation
from octavo.log.consumer import Consumer, ConsumerConfig
from octavo.log.consumer.config import OffsetReset


def test_it_is_read_from_text_or_given_as_it_is() -> None:
    config = ConsumerConfig.of({"max.poll.records": "7", "isolation.level": "read_committed"}, group_id="g")
    assert config.max_poll_records == 7
    assert config.isolation_level is Isolation.READ_COMMITTED
    assert config.group_id == "g"
    assert ConsumerConfig.of({"max.poll.records": 7}).max_poll_records == 7
    assert ConsumerConfig.of() == ConsumerConfig()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("earliest", OffsetReset("earliest")),
        ("latest", OffsetReset("latest")),
        ("none", OffsetReset("none")),
        ("by_duration:PT1H", OffsetReset("by_duration:", 3_600_000)),
        ("by_duration:P1DT2H3M4.5S", OffsetReset("by_duration:", 93_784_500)),
        ("by_duration:pt0.001s", OffsetReset("by_duration:", 1)),
        ("by_duration:P2D", OffsetReset("by_duration:", 172_800_000)),
    ],
)
def test_where_to_begin(text: str, expected: OffsetReset) -> None:
    assert ConsumerConfig.of(auto_offset_reset=text).auto_offset_reset == expected


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("max.poll.records", "0", "from 1 to 2147483647"),
        ("max.poll.records", "many", "a whole number"),
        ("max.poll.records", 1.5, "a whole number"),
        ("group.id", "", "not empty"),
        ("auto.offset.reset", "EARLIEST", "earliest, latest, none"),
        ("auto.offset.reset", "by_duration:", "by_duration:P"),
        ("auto.offset.reset", "by_duration:P", "by_duration:P"),
        ("auto.offset.reset", "by_duration:PT", "by_duration:P"),
        ("auto.offset.reset", "by_duration:P1DT", "by_duration:P"),
        ("auto.offset.reset", "by_duration:-PT1S", "by_duration:P"),
        ("auto.offset.reset", "by_duration:P1Y", "by_duration:P"),
        ("auto.offset.reset", "by_duration:P99999999999999999999D", "by_duration:P"),
        ("isolation.level", "serializable", "read_uncommitted, read_committed"),
        ("check.crcs", "perhaps", "true or false"),
        ("enable.auto.commit", "true", "without group.id"),
        ("bootstrap.servers", "here:9092", "brokers"),
        ("ssl.protocol", "TLS", "brokers"),
        ("session.timeout.ms", "1", "as group.consumer.session.timeout.ms"),
        ("partition.assignment.strategy", "range", "group.remote.assignor"),
        ("group.protocol", "classic", "one of consumer"),
        ("max.poll.interval.ms", "0", "from 1"),
        ("key.deserializer", "x", "key_deserializer"),
        ("no.such.thing", "x", "no consumer configuration of this name$"),
        ("group", "x", "no consumer configuration of this name; is group.id meant"),
    ],
)
def test_what_it_does_not_take_is_refused_by_name(name: str, value: object, allowed: str) -> None:
    with pytest.raises(InvalidConfig, match=allowed) as refused:
        ConsumerConfig.of({name: value})
    assert refused.value.name == name


def test_fields_are_checked_as_options_are() -> None:
    with pytest.raises(InvalidConfig, match=r"max\.poll\.records cannot be 0: it must be a whole number from 1 to"):
        ConsumerConfig(max_poll_records=0)


def test_a_watched_directory_cannot_be_committed_to(tmp_path: Path) -> None:
    DataDirectory.open(tmp_path).close()
    with (
        DataDirectory.open(tmp_path, read_only=True) as watched,
        pytest.raises(InvalidConfig, match="only watched"),
    ):
        Consumer(watched, group_id="g", enable_auto_commit=True)
