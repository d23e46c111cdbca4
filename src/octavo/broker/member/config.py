"""The settings of a broker that is a member of a cluster: `MemberConfig`, and `read_member` for who and where it is.

They are honoured where `process.roles` is `broker`. What a member cannot be yet is refused with a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from octavo.cluster.messages import Endpoint
from octavo.errors import InvalidConfig
from octavo.log.config.options import Options, option
from octavo.log.config.values import Switch, Text, int32, int64
from octavo.records.layout import MAX_INT16, MAX_INT32

ROLES: Final = "process.roles"
VOTERS: Final = "controller.quorum.voters"
BOOTSTRAP: Final = "controller.quorum.bootstrap.servers"
INTER_BROKER: Final = "inter.broker.listener.name"
RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
_SELECTORS: Final = ("", "org.apache.kafka.common.replica.LeaderSelector", RACK_AWARE)
_CONTROLLER_LISTENERS: Final = "controller.listener.names"
_LISTENERS: Final = "listeners"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberConfig:
    """The settings that only a member of a cluster honours. A field has Kafka's name, with `_` in place of `.`."""

    # The life of a broker.
    broker_heartbeat_interval_ms: int = option(2000, int32(1))
    broker_rack: str = option("", Text())
    controlled_shutdown_enable: bool = option(True, Switch())
    initial_broker_registration_timeout_ms: int = option(60_000, int32(1))
    log_dir_failure_timeout_ms: int = option(30_000, int64(1))

    # The metadata log.
    controller_quorum_request_timeout_ms: int = option(2000, int32(1))
    controller_quorum_retry_backoff_ms: int = option(20, int32(1))
    controller_socket_timeout_ms: int = option(30_000, int32(1))
    metadata_log_max_record_bytes_between_snapshots: int = option(20 << 20, int64(1))
    metadata_log_max_snapshot_interval_ms: int = option(3_600_000, int64(0))
    metadata_log_segment_bytes: int = option(1 << 30, int32(8 << 20))
    metadata_log_segment_ms: int = option(7 * 24 * 3_600_000, int64(1))
    metadata_max_retention_bytes: int = option(100 << 20, int64())
    metadata_max_retention_ms: int = option(7 * 24 * 3_600_000, int64())

    # Topics that are made when they are needed.
    default_replication_factor: int = option(1, int32())
    offsets_topic_num_partitions: int = option(50, int32(1))
    offsets_topic_replication_factor: int = option(3, int32(1, MAX_INT16))
    offsets_topic_segment_bytes: int = option(100 << 20, int32(1))
    share_coordinator_state_topic_min_isr: int = option(2, int32(1, MAX_INT16))
    share_coordinator_state_topic_num_partitions: int = option(50, int32(1))
    share_coordinator_state_topic_replication_factor: int = option(3, int32(1, MAX_INT16))
    share_coordinator_state_topic_segment_bytes: int = option(100 << 20, int32(1))
    transaction_state_log_min_isr: int = option(2, int32(1))
    transaction_state_log_num_partitions: int = option(50, int32(1))
    transaction_state_log_replication_factor: int = option(3, int32(1, MAX_INT16))
    transaction_state_log_segment_bytes: int = option(100 << 20, int32(1))

    # Replicas.
    replica_fetch_backoff_ms: int = option(1000, int32(0))
    replica_fetch_max_bytes: int = option(1 << 20, int32(0))
    replica_fetch_min_bytes: int = option(1, int32(0))
    replica_fetch_response_max_bytes: int = option(10 << 20, int32(0))
    replica_fetch_wait_max_ms: int = option(500, int32(0))
    replica_lag_time_max_ms: int = option(30_000, int64(1))
    replica_selector_class: str = option("", Text())
    replica_socket_timeout_ms: int = option(30_000, int32(1))

    def __post_init__(self) -> None:
        MEMBER_OPTIONS.check(self)
        if self.replica_selector_class not in _SELECTORS:
            raise InvalidConfig(
                "replica.selector.class", self.replica_selector_class, f"there is no other class than {RACK_AWARE}"
            )
        for name, least, other in (
            ("replica.socket.timeout.ms", self.replica_socket_timeout_ms, "replica.fetch.wait.max.ms"),
            ("replica.lag.time.max.ms", self.replica_lag_time_max_ms, "replica.fetch.wait.max.ms"),
        ):
            if least < self.replica_fetch_wait_max_ms:
                raise InvalidConfig(name, str(least), f"it must not be less than {other}")
        if self.replica_fetch_min_bytes > self.replica_fetch_max_bytes:
            raise InvalidConfig(
                "replica.fetch.min.bytes",
                str(self.replica_fetch_min_bytes),
                "it must not be more than replica.fetch.max.bytes",
            )


MEMBER_OPTIONS: Final = Options(MemberConfig, "broker")
MEMBER_NAMES: Final = frozenset({*MEMBER_OPTIONS.names, VOTERS, BOOTSTRAP, INTER_BROKER})


class MemberSettings(NamedTuple):
    """What a file of settings says of a member of a cluster."""

    config: MemberConfig
    bootstrap: tuple[Endpoint, ...]  # controllers to ask first
    voters: Mapping[int, Endpoint]  # controllers by their ids, where the settings have them
    inter_broker_listener: str  # the name of the listener by which brokers reach each other


def is_member(properties: Mapping[str, str]) -> bool:
    """Return whether settings are those of a broker in a cluster of several nodes. Raises `InvalidConfig`."""
    text = properties.get(ROLES)
    roles = sorted({role.strip() for role in (text or "").split(",")})
    if text is None or roles == ["broker", "controller"]:
        return False
    if roles != ["broker"]:
        raise InvalidConfig(
            ROLES,
            text,
            "it must be broker, for a member of a cluster whose controllers are others, or broker,controller, for a "
            "node that is a cluster of its own",
        )
    return True


def read_member(properties: Mapping[str, str], node_id: int | None) -> MemberSettings:
    """Return the settings of a member. Raises `InvalidConfig`."""
    given = {name: value for name, value in properties.items() if name in MEMBER_OPTIONS.names}
    config = MemberConfig(**MEMBER_OPTIONS.read(given))
    if node_id is None:
        raise InvalidConfig("node.id", None, "a member of a cluster needs one")
    voters = _read_voters(properties.get(VOTERS, ""))
    if node_id in voters:
        raise InvalidConfig(VOTERS, properties[VOTERS], f"node {node_id} is among them, and is no controller")
    bootstrap = _read_servers(properties.get(BOOTSTRAP, "")) or tuple(voters.values())
    if not bootstrap:
        raise InvalidConfig(BOOTSTRAP, None, f"a member of a cluster has to know its controllers, by this or {VOTERS}")
    _check_controller_listeners(properties)
    name = properties.get(INTER_BROKER, "").strip().upper() or "PLAINTEXT"
    return MemberSettings(config, bootstrap, voters, name)


def _check_controller_listeners(properties: Mapping[str, str]) -> None:
    text = properties.get(_CONTROLLER_LISTENERS, "")
    names = {name for name in (part.strip().upper() for part in text.split(",")) if name}
    if not names:
        raise InvalidConfig(_CONTROLLER_LISTENERS, text, "it must name the listener of the controllers")
    own = properties.get(_LISTENERS, "")
    for each in own.split(","):
        name = each.partition("://")[0].strip().upper()
        if name in names:
            raise InvalidConfig(_LISTENERS, own, f"{name} is a listener of the controllers, and this is no controller")


def _read_voters(text: str) -> dict[int, Endpoint]:
    """Read `ID@HOST:PORT,...`."""
    voters = {}
    for each in filter(None, (part.strip() for part in text.split(","))):
        number, _, place = each.partition("@")
        if not number.isdecimal() or int(number) > MAX_INT32:
            raise InvalidConfig(VOTERS, text, "it must be ID@HOST:PORT, or several with commas between them")
        voters[int(number)] = _endpoint(VOTERS, text, place)
    return voters


def _read_servers(text: str) -> tuple[Endpoint, ...]:
    """Read `HOST:PORT,...`."""
    places = filter(None, (part.strip() for part in text.split(",")))
    return tuple(_endpoint(BOOTSTRAP, text, place) for place in places)


def _endpoint(setting: str, text: str, place: str) -> Endpoint:
    host, _, port = place.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or not 0 < int(port) <= 0xFFFF:
        raise InvalidConfig(setting, text, f"{place!r} is no address: it must be HOST:PORT")
    return Endpoint(host, int(port))
