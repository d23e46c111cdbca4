"""The settings of a member of a cluster."""

from __future__ import annotations

import pytest

from octavo.broker.config import read_settings
from octavo.cluster.messages import Endpoint
from octavo.errors import InvalidConfig

MEMBER = {
    "process.roles": "broker",
    "node.id": "2",
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "a:9093, b:9094,[::1]:9095",
}


def test_a_member_knows_its_controllers_and_timers() -> None:
    settings = read_settings({**MEMBER, "broker.heartbeat.interval.ms": "500", "broker.session.timeout.ms": "3000"})
    assert settings.member is not None
    assert settings.member.bootstrap == (Endpoint("a", 9093), Endpoint("b", 9094), Endpoint("::1", 9095))
    assert settings.member.config.broker_heartbeat_interval_ms == 500
    assert settings.member.inter_broker_listener == "PLAINTEXT"
    assert settings.warnings == ["settings without effect: broker.session.timeout.ms"]  # one of controllers


def test_voters_stand_in_for_bootstrap_servers() -> None:
    given = {name: value for name, value in MEMBER.items() if "bootstrap" not in name}
    settings = read_settings({**given, "controller.quorum.voters": "1@a:9093,3@b:9093"})
    assert settings.member is not None
    assert settings.member.voters == {1: Endpoint("a", 9093), 3: Endpoint("b", 9093)}
    assert settings.member.bootstrap == (Endpoint("a", 9093), Endpoint("b", 9093))


def test_a_broker_that_is_alone_has_no_settings_of_a_member() -> None:
    settings = read_settings({"replica.lag.time.max.ms": "5"})
    assert settings.member is None
    assert settings.warnings == ["settings without effect: replica.lag.time.max.ms"]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"process.roles": "controller"}, "process.roles.*it must be broker, for a member of a cluster"),
        ({"node.id": ""}, "node.id: a member of a cluster needs one"),
        ({"controller.quorum.bootstrap.servers": ""}, "has to know its controllers"),
        ({"controller.quorum.bootstrap.servers": "a"}, "'a' is no address: it must be HOST:PORT"),
        ({"controller.quorum.bootstrap.servers": "a:0"}, "'a:0' is no address"),
        ({"controller.quorum.voters": "a:9093"}, "it must be ID@HOST:PORT"),
        ({"controller.quorum.voters": "2@a:9093"}, "node 2 is among them, and is no controller"),
        ({"controller.listener.names": ""}, "it must name the listener of the controllers"),
        ({"listeners": "PLAINTEXT://:1,controller://:2"}, "CONTROLLER is a listener of the controllers"),
        ({"broker.heartbeat.interval.ms": "0"}, "it must be a whole number"),
        ({"replica.lag.time.max.ms": "100"}, "it must not be less than replica.fetch.wait.max.ms"),
        ({"replica.fetch.min.bytes": "9999999"}, "it must not be more than replica.fetch.max.bytes"),
        ({"remote.log.storage.system.enable": "true"}, "there is no remote storage here"),
    ],
)
def test_what_a_member_cannot_be_is_refused(changes: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidConfig, match=sentence):
        read_settings({**MEMBER, **changes})
