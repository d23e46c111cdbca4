"""Files of settings as brokers of Apache Kafka have them: most are taken as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.broker.config import Settings, read_settings
from octavo.broker.listeners import Address, read_addresses
from octavo.errors import InvalidConfig
from octavo.log.files.properties import read_properties

FILES = Path(__file__).parent / "settings_files"


def read(name: str) -> Settings:
    return read_settings(read_properties((FILES / f"{name}.properties").read_bytes()))


def test_the_stock_file_of_a_combined_node_is_taken() -> None:
    settings = read("kafka-server")
    assert settings.member is None
    assert read_addresses(None, settings.properties) == ([Address("0.0.0.0", 9092, ("localhost", 9092))], [])
    assert settings.config.num_partitions == 1


def test_the_stock_file_of_a_broker_is_taken() -> None:
    settings = read("kafka-broker")
    assert settings.member is not None
    assert settings.member.bootstrap == (("localhost", 9093),)
    assert settings.member.config.transaction_state_log_min_isr == 1
    assert read_addresses(None, settings.properties) == ([Address("localhost", 9092, ("localhost", 9092))], [])
    (warning,) = settings.warnings
    assert warning.startswith("settings without effect: num.network.threads, num.io.threads, num.recovery.threads.per")


def test_settings_of_vendors_have_no_effect() -> None:
    settings = read("confluent")
    assert settings.member is not None
    assert sorted(settings.member.voters) == [1, 2, 3]
    known, unknown = settings.warnings
    assert known == "settings without effect: num.network.threads, num.io.threads, metric.reporters"
    assert unknown.startswith("settings without effect, unknown to Kafka: confluent.metrics.reporter.bootstrap.servers")
    assert unknown.endswith("confluent.support.customer.id")


def test_settings_of_tls_have_no_effect_where_no_listener_uses_it() -> None:
    settings = read("cruise-control")
    assert [each.name for each in read_addresses(None, settings.properties).listening] == ["INTERNAL", "EXTERNAL"]
    known, unknown = settings.warnings
    for name in ("ssl.keystore.location", "listener.name.external.ssl.client.auth", "create.topic.policy.class.name"):
        assert name in known
    assert "changeit" not in known
    assert unknown.endswith("cruise.control.metrics.topic.replication.factor, external.kafka.statsd.host")


def test_what_kafka_has_removed_has_no_effect() -> None:
    removed, unknown, known = read("upgraded").warnings
    assert known == "settings without effect: num.replica.fetchers"
    assert removed.startswith("settings without effect, removed in Kafka 4: zookeeper.connect, zookeeper.connection.t")
    assert unknown == "settings without effect, unknown to Kafka: replica.lag.max.messages, quota.producer.default"


def test_a_broker_whose_listeners_have_tls_is_refused() -> None:
    with pytest.raises(InvalidConfig, match=r"^listeners cannot be .*: only PLAINTEXT is served, not SSL$"):
        read_addresses(None, read("strimzi").properties)
