from __future__ import annotations

import pytest

from octavo.errors import InvalidConfig
from octavo.log.producer import ProducerConfig
from octavo.records import Codec


def test_defaults_are_those_of_kafka_4() -> None:
    config = ProducerConfig.of({})
    assert (config.batch_size, config.linger_ms, config.buffer_memory) == (16_384, 5, 32 << 20)
    assert (config.max_request_size, config.max_block_ms) == (1 << 20, 60_000)
    assert (config.acks, config.retries, config.delivery_timeout_ms) == ("all", 2**31 - 1, 120_000)
    assert config.enable_idempotence
    assert config.transactional_id is None
    assert (config.compression_type, config.level) == (Codec.NONE, None)


def test_a_value_may_be_text_or_what_it_stands_for() -> None:
    text = ProducerConfig.of({"linger.ms": " 20 ", "compression.type": "lz4", "partitioner.ignore.keys": "TRUE"})
    given = ProducerConfig.of({"linger.ms": 20}, compression_type=Codec.LZ4, partitioner_ignore_keys=True)
    assert text == given


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("linger.ms", -1, "a whole number from 0 to"),
        ("linger.ms", "soon", "a whole number from 0 to"),
        ("linger.ms", True, "a whole number from 0 to"),
        ("batch.size", 2**31, "a whole number from 0 to 2147483647"),
        ("compression.type", "brotli", "one of none, gzip, snappy, lz4, zstd"),
        ("compression.lz4.level", 18, "a whole number from 1 to 17"),
        ("compression.gzip.level", 0, "a whole number from 1 to 9, or -1"),
        ("acks", "2", "one of all, -1, 0, 1"),
        ("transactional.id", "", "a text that is not empty"),
        ("enable.idempotence", "yes", "true or false"),
        ("linger", 5, "Kafka has no producer configuration of this name; is linger.ms meant?"),
        ("bootstrap.servers", "localhost:9092", "it is about brokers and connections"),
        ("ssl.protocol", "TLSv1.3", "it is about brokers and connections"),
        ("partitioner.class", "Mine", "give the producer a function as partitioner"),
    ],
)
def test_what_cannot_be_is_refused_with_its_name_and_what_can(name: str, value: object, allowed: str) -> None:
    with pytest.raises(InvalidConfig) as refused:
        ProducerConfig.of({name: value})
    assert refused.value.name == name
    assert str(refused.value).startswith(f"{name} cannot be {value!r}: ")
    assert allowed in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value"), [("acks", "1"), ("retries", 0), ("max.in.flight.requests.per.connection", 6)]
)
def test_what_idempotence_cannot_do_with_switches_it_off_unless_it_was_asked_for(name: str, value: object) -> None:
    assert not ProducerConfig.of({name: value}).enable_idempotence
    for asked in ({"enable.idempotence": True}, {"transactional.id": "t"}):
        with pytest.raises(InvalidConfig, match=r"with enable\.idempotence"):
            ProducerConfig.of({name: value, **asked})


def test_transactions_need_idempotence() -> None:
    with pytest.raises(InvalidConfig, match=r"it needs enable\.idempotence"):
        ProducerConfig.of({"transactional.id": "t", "enable.idempotence": False})


def test_a_delivery_may_take_as_long_as_lingering_and_a_request() -> None:
    assert ProducerConfig.of({"linger.ms": 200_000}).delivery_timeout_ms == 230_000
    with pytest.raises(InvalidConfig, match=r"must not be below linger\.ms and request\.timeout\.ms together"):
        ProducerConfig.of({"delivery.timeout.ms": 30_004})


def test_fields_are_checked_as_options_are() -> None:
    with pytest.raises(InvalidConfig, match=r"linger\.ms cannot be -1: it must be a whole number from 0 to"):
        ProducerConfig(linger_ms=-1)


def test_a_keyword_wins_over_the_mapping() -> None:
    assert ProducerConfig.of({"linger.ms": "soon"}, linger_ms=20).linger_ms == 20


def test_the_level_is_that_of_the_codec() -> None:
    for codec, level in (("none", None), ("snappy", None), ("gzip", None), ("lz4", 9), ("zstd", 3)):
        assert ProducerConfig.of({"compression.type": codec}).level == level
    assert ProducerConfig.of({"compression.type": "gzip", "compression.gzip.level": 1}).level == 1
