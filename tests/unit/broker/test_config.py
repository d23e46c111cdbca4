"""What becomes of the settings in a `server.properties`."""

from __future__ import annotations

import pytest

from octavo.broker.config import read_node_id, read_settings
from octavo.broker.listeners import Address, read_addresses
from octavo.errors import InvalidConfig


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
    assert read_settings({name: value}).warnings == [f"settings without effect: {name}"]


@pytest.mark.parametrize("name", ["ssl.keystore.location", "sasl.enabled.mechanisms", "connections.max.reauth.ms"])
def test_what_would_protect_listeners_is_not_refused_where_they_are_named(name: str) -> None:
    """They are judged by their protocols then."""
    settings = {name: "7", "listeners": "PLAINTEXT://:1"}
    assert read_settings(settings).warnings == [f"settings without effect: {name}"]


def test_an_authorizer_is_refused_whatever_the_listeners_are() -> None:
    with pytest.raises(InvalidConfig, match=r"^authorizer.class.name: it would protect the broker"):
        read_settings({"authorizer.class.name": "Mine", "listeners": "PLAINTEXT://:1"})


def test_the_file_of_a_broker_under_zookeeper_is_refused() -> None:
    with pytest.raises(InvalidConfig, match=r"^zookeeper.connect: Kafka 4 has no ZooKeeper, and process.roles is miss"):
        read_settings({"broker.id": "1", "zookeeper.connect": "zk:2181"})


def test_a_name_that_is_misspelt_is_told_with_the_one_that_may_be_meant() -> None:
    sentence = "num.partitons has no effect: Kafka has no setting of this name; is num.partitions meant?"
    assert read_settings({"num.partitons": "3"}).warnings == [sentence]


def test_names_without_number_are_all_told() -> None:
    names = [f"com.example.plugin.number.{number}" for number in range(100)]
    warnings = read_settings(dict.fromkeys(names, "1")).warnings
    assert max(map(len, warnings)) < 900
    assert [name for each in warnings for name in each.split(": ")[1].rstrip(",").split(", ")] == names


def test_a_value_that_only_a_provider_knows_is_refused() -> None:
    providers = {"config.providers": "file,env", "config.providers.env.class": "EnvVarConfigProvider"}
    with pytest.raises(InvalidConfig, match=r"^log.dirs cannot be .*: providers \(config.providers\) cannot be asked"):
        read_settings({**providers, "log.dirs": "/data/${env:DISK}"})
    with pytest.raises(InvalidConfig, match=r"^node.id cannot be .*: providers"):
        read_settings({**providers, "process.roles": "broker", "node.id": "${file:/etc/id:id}"})
    assert read_settings({**providers, "com.example.secret": "${file:/etc/secret:key}"}).warnings
    assert read_settings({"log.dirs": "/data/${env:DISK}"}).properties["log.dirs"] == "/data/${env:DISK}"


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"process.roles": "controller"}, "it must be broker, for a member of a cluster"),
        ({"process.roles": ""}, "it must be broker, for a member of a cluster"),
        ({"controller.quorum.voters": "1@a:9093,2@b:9093"}, "has no others; is process.roles=broker missing?"),
        ({"controller.quorum.bootstrap.servers": "a:9093,b:9093"}, "is process.roles=broker missing?"),
    ],
)
def test_a_controller_of_a_larger_cluster_is_refused(config: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidConfig, match=sentence):
        read_settings(config)


def addresses(listen: str | None = None, **config: str) -> tuple[list[Address], list[str]]:
    return read_addresses(listen, {name.replace("_", "."): value for name, value in config.items()})


def test_a_listener_may_have_any_name_that_is_plaintext() -> None:
    here = {
        "listeners": "Internal://h:1,outer://:2",
        "listener_security_protocol_map": "internal:plaintext,OUTER:PLAINTEXT",
    }
    assert addresses(**here) == ([Address("h", 1, None, "INTERNAL"), Address("0.0.0.0", 2, None, "OUTER")], [])
    assert addresses(**here, advertised_listeners="INTERNAL://x:9")[0][0] == Address("h", 1, ("x", 9), "INTERNAL")


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
    assert addresses("h:1", advertised_listeners="OUT://broker.example:9")[0] == [Address("h", 1, told, "OUT")]
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
