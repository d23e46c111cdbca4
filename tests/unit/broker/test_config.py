"""What becomes of the settings in a `server.properties`."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.broker.config import read_node_id, read_settings
from octavo.broker.listeners import Address, read_addresses
from octavo.errors import InvalidConfig
from octavo.log.files.properties import read_properties

STOCK = read_properties((Path(__file__).parent / "stock.properties").read_bytes())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ssl.keystore.location", "/secret"),
        ("listener.name.plaintext.ssl.keystore.location", "/secret"),
        ("listener.name.internal.ssl.client.auth", "required"),
        ("listener.name.internal.sasl.enabled.mechanisms", "PLAIN"),
        ("listener.name.internal.plain.sasl.jaas.config", "secret"),
        ("listener.name.internal.connections.max.reauth.ms", "1"),
        ("security.inter.broker.protocol", "SSL"),
        ("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"),
    ],
)
def test_what_would_protect_the_broker_is_refused(name: str, value: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        read_settings({name: value})
    assert str(caught.value) == f"{name}: it would protect the broker, and that is not done here"
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("security.inter.broker.protocol", "PLAINTEXT"),
        ("authorizer.class.name", ""),
        ("super.users", " "),
        ("ssl.client.auth", "none"),
        ("ssl.enabled.protocols", "TLSv1.2, TLSv1.3"),
        ("sasl.enabled.mechanisms", "GSSAPI"),
        ("connections.max.reauth.ms", "0"),
        ("remote.log.storage.system.enable", "False"),
        ("listener.name.plaintext.ssl.client.auth", "none"),
        ("listener.name.plaintext.max.connections", "7"),
    ],
)
def test_a_value_that_changes_nothing_is_not_refused(name: str, value: str) -> None:
    assert read_settings({name: value}).warnings == [f"{name} has no effect"]


@pytest.mark.parametrize("name", ["zookeeper.connect", "inter.broker.protocol.version", "log.message.format.version"])
def test_what_kafka_4_has_removed_is_refused(name: str) -> None:
    with pytest.raises(InvalidConfig, match=f"^{name}: Kafka 4 has removed it$"):
        read_settings({name: "3.9"})


def test_an_unknown_name_is_refused_whatever_its_value() -> None:
    with pytest.raises(InvalidConfig) as caught:
        read_settings({"num.partitons": "3"})
    sentence = "num.partitons: Kafka has no broker configuration of this name; is num.partitions meant?"
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        (
            {"process.roles": "broker", "controller.quorum.voters": "1@a:9093"},
            "only a node that is a cluster of its own",
        ),
        ({"process.roles": "controller"}, "only a node that is a cluster of its own"),
        ({"controller.quorum.voters": "1@a:9093,2@b:9093"}, "only a cluster of one node is served"),
        ({"controller.quorum.bootstrap.servers": "a:9093,b:9093"}, "only a cluster of one node is served"),
    ],
)
def test_a_node_of_a_larger_cluster_is_refused(config: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidConfig, match=sentence):
        read_settings(config)


def test_the_stock_file_of_kafka_is_taken() -> None:
    settings = read_settings(STOCK)
    assert read_addresses(None, settings.properties) == ([Address("0.0.0.0", 9092, ("localhost", 9092))], [])
    assert settings.config.num_partitions == 1


def addresses(listen: str | None = None, **config: str) -> tuple[list[Address], list[str]]:
    return read_addresses(listen, {name.replace("_", "."): value for name, value in config.items()})


def test_a_listener_may_have_any_name_that_is_plaintext() -> None:
    here = {
        "listeners": "Internal://h:1,outer://:2",
        "listener_security_protocol_map": "internal:plaintext,OUTER:PLAINTEXT",
    }
    assert addresses(**here) == ([Address("h", 1), Address("0.0.0.0", 2)], [])
    assert addresses(**here, advertised_listeners="INTERNAL://x:9")[0][0] == Address("h", 1, ("x", 9))


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"listeners": "SSL://:1"}, "only PLAINTEXT is served, not SSL"),
        ({"listeners": "OUT://:1", "listener_security_protocol_map": "OUT:SASL_SSL"}, "not SASL_SSL"),
        ({"listeners": "PLAINTEXT://:1", "listener_security_protocol_map": "PLAINTEXT:SSL"}, "not SSL"),
        ({"listener_security_protocol_map": "PLAINTEXT:SSL"}, "not SSL"),
        ({"listeners": "OUT://:1"}, "it gives the listener OUT no protocol"),
        ({"listener_security_protocol_map": "PLAINTEXT:TLS"}, "it must be NAME:PROTOCOL"),
        ({"listeners": "CTL://:1", "controller_listener_names": "CTL"}, "none is left for clients"),
        ({"listeners": "PLAINTEXT"}, "it must be NAME://HOST:PORT"),
        ({"advertised_listeners": "PLAINTEXT://0.0.0.0:1"}, "clients cannot connect to 0.0.0.0"),
    ],
)
@pytest.mark.parametrize("listen", [None, "127.0.0.1:0"])
def test_a_listener_that_is_not_served_is_refused(config: dict[str, str], sentence: str, listen: str | None) -> None:
    with pytest.raises(InvalidConfig, match=sentence):
        addresses(listen, **config)


def test_clients_are_told_the_advertised_address() -> None:
    told = ("broker.example", 9)
    assert addresses(advertised_listeners="plaintext://broker.example:9")[0] == [Address("127.0.0.1", 0, told)]
    assert addresses("h:1", advertised_listeners="OUT://broker.example:9")[0] == [Address("h", 1, told)]
    both = {"listeners": "Plaintext://:1", "advertised_listeners": "PLAINTEXT://broker.example:9"}
    assert addresses("h:1", **both) == ([Address("h", 1, told)], [])
    assert addresses(**both) == ([Address("0.0.0.0", 1, told)], [])
    assert addresses(advertised_listeners="PLAINTEXT://:9")[0] == [Address("127.0.0.1", 0, (None, 9))]


def test_an_advertised_address_of_no_listener_is_told() -> None:
    listening, warnings = addresses(listeners="PLAINTEXT://:1", advertised_listeners="OUT://h:9")
    assert listening == [Address("0.0.0.0", 1)]
    assert warnings == ["advertised.listeners has no effect for OUT: there is no such listener"]


def test_the_id_of_the_node() -> None:
    assert read_node_id({}) is None
    assert read_node_id({"broker.id": "-1"}) is None
    assert read_node_id({"node.id": " 7 ", "broker.id": "-1"}) == 7
    assert read_node_id({"broker.id": "0"}) == 0
    for config in ({"node.id": "-1"}, {"node.id": "x"}, {"node.id": "3000000000"}, {"node.id": "1", "broker.id": "2"}):
        with pytest.raises(InvalidConfig, match=r"^node\.id cannot be"):
            read_node_id(config)


@pytest.mark.parametrize(
    ("config", "name", "sentence"),
    [
        ({"session.timeout.ms": "44999"}, "session.timeout.ms", "greater than or equal to group.consumer.min.session"),
        ({"session.timeout.ms": "60001"}, "session.timeout.ms", "less than or equal to group.consumer.max.session"),
        ({"heartbeat.interval.ms": "4999"}, "heartbeat.interval.ms", "greater than or equal to group.consumer.min.hea"),
        ({"heartbeat.interval.ms": "15001"}, "heartbeat.interval.ms", "less than or equal to group.consumer.max.hear"),
        ({"assignment.interval.ms": "15001"}, "assignment.interval.ms", "less than or equal to group.consumer.max.as"),
        ({"max.session.timeout.ms": "1"}, "max.session.timeout.ms", "greater than or equal to group.consumer.min.ses"),
        ({"min.heartbeat.interval.ms": "20000"}, "max.heartbeat.interval.ms", "greater than or equal to group.consum"),
        (
            {"max.heartbeat.interval.ms": "45000", "heartbeat.interval.ms": "45000"},
            "heartbeat.interval.ms",
            "less than group.consumer.session.timeout.ms",
        ),
        ({"assignors": ""}, "assignors", "one or more of uniform, range"),
        ({"assignors": "range,range"}, "assignors", "none of them twice"),
        ({"assignors": "org.example.Mine"}, "assignors", "one or more of uniform, range"),
    ],
)
def test_settings_of_groups_that_contradict_each_other(config: dict[str, str], name: str, sentence: str) -> None:
    with pytest.raises(InvalidConfig) as refused:
        read_settings({f"group.consumer.{key}": value for key, value in config.items()})
    assert str(refused.value).startswith(f"group.consumer.{name} ")
    assert sentence in str(refused.value)


def test_assignors_have_an_order() -> None:
    assert read_settings({}).config.groups.group_consumer_assignors == ("uniform", "range")
    ordered = read_settings({"group.consumer.assignors": "range , uniform"})
    assert ordered.config.groups.group_consumer_assignors == ("range", "uniform")
