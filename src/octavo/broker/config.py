"""The settings of a broker: `BrokerConfig` has those that are honoured, by Kafka's names and with Kafka's defaults.

A file of settings is that of an Apache Kafka (`server.properties`). Its settings are of three kinds:

    honoured          fields of `BrokerConfig`, the defaults of topics (`log.retention.ms`), and those that say who and
                      where the broker is (`listeners`, `log.dirs`, `node.id`); for a member of a cluster, also those
                      of `MemberConfig`
    refused           Kafka has them, and ignoring them would be unsafe
    without effect    all others, as in Kafka, which also ignores names that it does not know: there is a warning
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final, NamedTuple

from octavo.broker.ignored_settings import judge
from octavo.broker.member.config import MEMBER_NAMES, ROLES, MemberSettings, is_member, read_member
from octavo.coordinator.groups.config import ASSIGNORS, MIGRATION_POLICIES, GroupConfig
from octavo.coordinator.transactions.config import TransactionConfig
from octavo.errors import InvalidConfig
from octavo.log.config.broker_defaults import STAND_INS
from octavo.log.config.options import Options, option
from octavo.log.config.values import Ordered, Switch, Text, Word, int32, int64
from octavo.records.layout import MAX_INT32


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """The settings that are honoured. A field has Kafka's name, with `_` in place of `.`."""

    # Topics.
    auto_create_topics_enable: bool = option(True, Switch())
    delete_topic_enable: bool = option(True, Switch())
    num_partitions: int = option(1, int32(1))
    max_request_partition_size_limit: int = option(2000, int32(1))

    # Fetching.
    fetch_max_bytes: int = option(57_671_680, int32(1024))
    max_incremental_fetch_session_cache_slots: int = option(1000, int32(0))

    # Connections.
    socket_request_max_bytes: int = option(104_857_600, int32(1))
    socket_listen_backlog_size: int = option(50, int32(1))
    connections_max_idle_ms: int = option(600_000, int64())
    max_connections: int = option(MAX_INT32, int32(0))
    max_connections_per_ip: int = option(MAX_INT32, int32(0))
    max_connections_per_ip_overrides: str = option("", Text())
    max_connection_creation_rate: int = option(MAX_INT32, int32(0))
    queued_max_request_bytes: int = option(-1, int64())
    socket_send_buffer_bytes: int = option(102_400, int32(-1))
    socket_receive_buffer_bytes: int = option(-1, int32(-1))  # Kafka's default is 102400; the kernel knows better

    # Groups.
    offset_metadata_max_bytes: int = option(4096, int32())
    offsets_retention_minutes: int = option(10_080, int32(1))
    offsets_retention_check_interval_ms: int = option(600_000, int64(1))
    group_min_session_timeout_ms: int = option(6_000, int32())
    group_max_session_timeout_ms: int = option(1_800_000, int32())
    group_initial_rebalance_delay_ms: int = option(3_000, int32())
    group_max_size: int = option(MAX_INT32, int32(1))
    group_consumer_session_timeout_ms: int = option(45_000, int32(1))
    group_consumer_min_session_timeout_ms: int = option(45_000, int32(1))
    group_consumer_max_session_timeout_ms: int = option(60_000, int32(1))
    group_consumer_heartbeat_interval_ms: int = option(5_000, int32(1))
    group_consumer_min_heartbeat_interval_ms: int = option(5_000, int32(1))
    group_consumer_max_heartbeat_interval_ms: int = option(15_000, int32(1))
    group_consumer_assignment_interval_ms: int = option(1_000, int32(0))
    group_consumer_min_assignment_interval_ms: int = option(0, int32(0))
    group_consumer_max_assignment_interval_ms: int = option(15_000, int32(0))
    group_consumer_assignors: tuple[str, ...] = option(ASSIGNORS, Ordered(ASSIGNORS))
    group_consumer_max_size: int = option(MAX_INT32, int32(1))
    group_consumer_regex_refresh_interval_ms: int = option(600_000, int32(10_000))
    group_consumer_migration_policy: str = option("bidirectional", Word(MIGRATION_POLICIES))

    # Transactions.
    transaction_max_timeout_ms: int = option(900_000, int32(1))
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = option(10_000, int32(1))
    transaction_remove_expired_transaction_cleanup_interval_ms: int = option(3_600_000, int32(1))
    transactional_id_expiration_ms: int = option(604_800_000, int32(1))
    transaction_partition_verification_enable: bool = option(True, Switch())
    add_partitions_to_txn_retry_backoff_ms: int = option(20, int32(1))
    add_partitions_to_txn_retry_backoff_max_ms: int = option(100, int32(0))
    request_timeout_ms: int = option(30_000, int32(1))  # of what coordinators and leaders ask each other

    # Work in the background.
    log_retention_check_interval_ms: int = option(300_000, int64(1))
    log_initial_task_delay_ms: int = option(30_000, int64(0))
    log_cleaner_enable: bool = option(True, Switch())
    log_cleaner_dedupe_buffer_size: int = option(134_217_728, int64())
    log_cleaner_backoff_ms: int = option(15_000, int64(0))
    # Kafka's default is 5000. A reader of the directory lags behind by this much.
    replica_high_watermark_checkpoint_interval_ms: int = option(400, int64(1))

    def __post_init__(self) -> None:
        BROKER_OPTIONS.check(self)
        overrides = self.overrides_per_ip
        if not self.max_connections_per_ip and not overrides:
            raise InvalidConfig("max.connections.per.ip", "0", "it can be 0 only with max.connections.per.ip.overrides")
        if 0 < self.queued_max_request_bytes < self.socket_request_max_bytes:
            raise InvalidConfig(
                "queued.max.request.bytes",
                str(self.queued_max_request_bytes),
                "it must not be less than socket.request.max.bytes",
            )
        for name, relation, other in self.groups.contradictions():
            value = getattr(self, name.replace(".", "_"))
            raise InvalidConfig(name, str(value), f"it must be {relation} {other}")

    @property
    def groups(self) -> GroupConfig:
        """The settings of the coordinator of groups."""
        names = {each.name for each in fields(self)} & {each.name for each in fields(GroupConfig)}
        return GroupConfig(**{name: getattr(self, name) for name in names})

    @property
    def transactions(self) -> TransactionConfig:
        """The settings of the coordinator of transactions."""
        names = {each.name for each in fields(self)} & {each.name for each in fields(TransactionConfig)}
        return TransactionConfig(**{name: getattr(self, name) for name in names})

    @property
    def overrides_per_ip(self) -> dict[str, int]:
        """The numbers of connections that single hosts may have. Raises `InvalidConfig`."""
        return _read_overrides(self.max_connections_per_ip_overrides)


def _read_overrides(text: str) -> dict[str, int]:
    """Read `HOST:NUMBER,...`."""
    overrides = {}
    for each in filter(None, (part.strip() for part in text.split(","))):
        host, _, number = each.rpartition(":")
        if not host.strip() or not number.strip().isdecimal():
            raise InvalidConfig(_OVERRIDES, text, "it must be HOST:NUMBER, or several with commas between them")
        overrides[host.strip()] = int(number)
    return overrides


_OVERRIDES: Final = "max.connections.per.ip.overrides"
BROKER_OPTIONS: Final = Options(BrokerConfig, "broker")

# Settings that are read elsewhere.
LISTENERS: Final = "listeners"
ADVERTISED: Final = "advertised.listeners"
PROTOCOLS: Final = "listener.security.protocol.map"
CONTROLLER_LISTENERS: Final = "controller.listener.names"
NODE_IDS: Final = ("node.id", "broker.id")
LOG_DIRS: Final = ("log.dirs", "log.dir")
METADATA_DIR: Final = "metadata.log.dir"
_PLACES: Final = {LISTENERS, ADVERTISED, PROTOCOLS, CONTROLLER_LISTENERS, ROLES, *NODE_IDS, *LOG_DIRS, METADATA_DIR}
_GENERATED: Final = "-1"  # the default of broker.id
_ZOOKEEPER: Final = "zookeeper.connect"
_QUORUM: Final = ("controller.quorum.voters", "controller.quorum.bootstrap.servers")
_OF_TOPICS: Final = {name for names in STAND_INS.values() for name in names}
HONOURED: Final = frozenset({*BROKER_OPTIONS.names, *_PLACES, *_OF_TOPICS})


class Settings(NamedTuple):
    """What a file of settings says."""

    config: BrokerConfig
    properties: Mapping[str, str]  # all of it, by Kafka's names
    warnings: list[str]
    member: MemberSettings | None = None  # of a member of a cluster; None for a broker that is alone


def read_settings(properties: Mapping[str, str]) -> Settings:
    """Sort settings by their kinds. Raises `InvalidConfig`."""
    in_cluster = is_member(properties)
    warnings = judge(properties, HONOURED | MEMBER_NAMES if in_cluster else HONOURED, is_member=in_cluster)
    member = None
    if in_cluster:
        member = read_member(properties, read_node_id(properties))
    else:
        _check_alone(properties)
    given = {name: value for name, value in properties.items() if name in BROKER_OPTIONS.names}
    return Settings(BrokerConfig(**BROKER_OPTIONS.read(given)), dict(properties), warnings, member)


def read_node_id(properties: Mapping[str, str]) -> int | None:
    """Return the id of the node; None if the settings leave it open. Raises `InvalidConfig`."""
    given = {name: properties[name].strip() for name in NODE_IDS if properties.get(name, "").strip()}
    for name, value in given.items():
        if name == NODE_IDS[1] and value == _GENERATED:
            continue
        if not (value.isascii() and value.isdecimal()) or int(value) > MAX_INT32:
            raise InvalidConfig(name, value, f"it must be a whole number from 0 to {MAX_INT32}")
    ids = {int(value) for value in given.values() if value != _GENERATED}
    if len(ids) > 1:
        raise InvalidConfig(NODE_IDS[0], given[NODE_IDS[0]], f"{NODE_IDS[1]} is {given[NODE_IDS[1]]}")
    return next(iter(ids), None)


def _check_alone(properties: Mapping[str, str]) -> None:
    """Check that the settings are those of a cluster of one node. Raises `InvalidConfig`."""
    if ROLES not in properties and properties.get(_ZOOKEEPER, "").strip():
        raise InvalidConfig(_ZOOKEEPER, None, f"Kafka 4 has no ZooKeeper, and {ROLES} is missing")
    for name in _QUORUM:
        if "," in properties.get(name, "").strip(", "):
            raise InvalidConfig(
                name, properties[name], f"a node that is a cluster of its own has no others; is {ROLES}=broker missing?"
            )
