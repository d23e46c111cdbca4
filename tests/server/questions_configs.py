"""Requests about settings: of topics, brokers, loggers, groups, and subscriptions to client metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from octavo.broker.broker_settings import BROKER_SETTINGS
from octavo.broker.wire import api_keys as keys
from octavo.log.config.broker_defaults import STAND_INS
from tests.server.question import Question, versions

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)

# What the two brokers in a test are not started with alike, or have no common default for.
_OWN = {
    "node.id",
    "listeners",
    "advertised.listeners",
    "log.dirs",
    "log.cleaner.dedupe.buffer.size",
    "replica.high.watermark.checkpoint.interval.ms",
    "socket.receive.buffer.bytes",
    "min.insync.replicas",
    "num.network.threads",
    "num.io.threads",
}
_COMMON = sorted(BROKER_SETTINGS.keys() - _OWN)


def config_questions() -> Iterator[Question]:
    """All of them. There is a topic t6."""
    for each in (_describe, _brokers, _topics, _others, _loggers):
        yield from each()


def describe(kind: int, name: str, wanted: Sequence[str] | None = None, version: int = 4) -> Question:
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": wanted}
    content = {"resources": [resource], "include_synonyms": True, "include_documentation": False}
    return Question(keys.DESCRIBE_CONFIGS, version, content)


def alter(kind: int, name: str, *operations: tuple[str, int, str | None], version: int = 1) -> Question:
    """Change settings one by one."""
    configs = [{"name": name, "config_operation": operation, "value": value} for name, operation, value in operations]
    resources = [{"resource_type": kind, "resource_name": name, "configs": configs}]
    return Question(keys.INCREMENTAL_ALTER_CONFIGS, version, {"resources": resources, "validate_only": False})


def replace(kind: int, name: str, *settings: tuple[str, str | None], version: int = 2) -> Question:
    """Change all settings."""
    configs = [{"name": name, "value": value} for name, value in settings]
    resources = [{"resource_type": kind, "resource_name": name, "configs": configs}]
    return Question(keys.ALTER_CONFIGS, version, {"resources": resources, "validate_only": False})


def _describe() -> Iterator[Question]:
    for version in versions(keys.DESCRIBE_CONFIGS):
        yield describe(BROKER, "1", _COMMON, version)
        yield describe(TOPIC, "t6", [], version)
        for name in ("x", "2", "-1", "+1", "01", "9999999999"):
            yield describe(BROKER, name, ["num.partitions", "nope"], version)
        for name in ("", "x", "2"):
            yield describe(LOGGER, name, None, version)
        for kind in (METRICS, GROUP):
            for name in ("", "g"):
                yield describe(kind, name, None, version)
            yield describe(kind, "g", ["match", "nope", "share.isolation.level"], version)


def _brokers() -> Iterator[Question]:
    for name in ("", "1"):
        for operation in _good_changes():
            yield alter(BROKER, name, operation)
        yield describe(BROKER, "1", _COMMON)
        yield describe(BROKER, name, ["log.retention.ms", "max.connections", "nope"])
        yield describe(TOPIC, "t6")
        for operations in _bad_changes():
            yield alter(BROKER, name, *operations)
    for version in versions(keys.INCREMENTAL_ALTER_CONFIGS):
        for name in ("1", "2", "x", " 1", "-1", "9999999999"):
            yield alter(BROKER, name, ("log.retention.ms", SET, "1"), version=version)
    for name in ("", "1"):
        changed = dict.fromkeys(key for key, _, _ in _good_changes())
        yield alter(BROKER, name, *[(key, DELETE, None) for key in changed])
    yield describe(BROKER, "1", _COMMON)
    yield describe(TOPIC, "t6")
    for version in versions(keys.ALTER_CONFIGS):
        for settings in (
            [("log.retention.ms", "7000"), ("max.connections", "1000")],
            [("log.retention.ms", "x")],
            [("log.retention.ms", None)],
            [("num.partitions", "3")],
            [("nope", "3")],
            [("log.retention.ms", "1"), ("log.retention.ms", "2")],
            [],
        ):
            yield replace(BROKER, "1", *settings, version=version)
        for name in ("7", "x"):
            yield replace(BROKER, name, ("log.retention.ms", "1"), version=version)


def _good_changes() -> Sequence[tuple[str, int, str]]:
    return (
        ("log.retention.ms", SET, "6000"),
        ("log.retention.bytes", SET, "-1"),
        ("max.connections", SET, "2000"),
        ("max.connections.per.ip", SET, "1999"),
        ("message.max.bytes", SET, "999999"),
        ("log.segment.bytes", SET, "2000000"),
        ("log.cleanup.policy", APPEND, "compact"),
        ("log.cleanup.policy", SUBTRACT, "delete"),
        ("compression.type", SET, "zstd"),
        ("log.message.timestamp.type", SET, "LogAppendTime"),
        ("log.cleaner.min.cleanable.ratio", SET, "0.25"),
        ("log.preallocate", SET, "FALSE"),
        ("nope", SET, "anything"),
    )


def _bad_values_of_kept() -> Iterator[tuple[str, int, str]]:
    """Values that Kafka refuses of settings that have no effect here."""
    for name in ("num.io.threads", "num.network.threads", "background.threads", "num.replica.fetchers"):
        for value in ("x", "0", "9999999999"):
            yield name, SET, value
    yield "log.cleaner.io.buffer.load.factor", SET, "x"
    yield "log.cleaner.threads", SET, "-1"
    yield "producer.id.expiration.ms", SET, "0"
    yield "remote.log.reader.threads", SET, "1.5"
    yield "transaction.partition.verification.enable", SET, "maybe"


def _bad_changes() -> Sequence[Sequence[tuple[str, int, str | None]]]:
    return (
        [("num.partitions", SET, "3")],
        [("log.dirs", SET, "/x")],
        [("log.retention.hours", SET, "3")],
        [("broker.rack", SET, "x")],
        [("ssl.keystore.location", SET, "x")],
        [("log.retention.ms", SET, "abc")],
        [("log.retention.ms", SET, "99999999999999999999")],
        [("log.retention.ms", SET, None)],
        [("log.retention.ms", APPEND, "1")],
        [("log.retention.ms", SUBTRACT, "1")],
        [("log.retention.ms", 9, "1")],
        [("nope2", APPEND, "1")],
        [("max.connections", SET, "-1")],
        [("max.connections", SET, "x")],
        [("message.max.bytes", SET, "-1")],
        [("log.segment.bytes", SET, "1")],
        [("log.index.size.max.bytes", SET, "1")],
        [("log.message.timestamp.type", SET, "Nope")],
        [("compression.type", SET, "nope")],
        [("compression.gzip.level", SET, "99")],
        [("log.cleanup.policy", SET, "nope")],
        [("log.cleaner.min.cleanable.ratio", SET, "3")],
        [("log.preallocate", SET, "maybe")],
        [("log.cleaner.dedupe.buffer.size", SET, "1")],
        *([each] for each in _bad_values_of_kept()),
        [("log.retention.ms", SET, "1"), ("log.retention.ms", SET, "2")],
        [("num.partitions", DELETE, None)],
        [("nope2", DELETE, None)],
    )


def _topics() -> Iterator[Question]:
    list_name = "leader.replication.throttled.replicas"
    for name in ("t6", "nope", "bad name", ""):
        for operations in (
            [("retention.ms", SET, "abc")],
            [("retention.ms", APPEND, "1")],
            [("retention.ms", SET, "")],
            [("retention.ms", DELETE, None)],
            [("retention.ms", SET, "99999999999999999999")],
            [("segment.ms", SET, "0")],
            [("zz", SET, "1")],
            [("zz", APPEND, "1")],
            [("zz", DELETE, None)],
            [("", SET, "1")],
            [("cleanup.policy", SET, "nope")],
            [("cleanup.policy", SET, "delete,nope")],
            [("message.timestamp.type", SET, "nope")],
            [("compression.type", SET, "nope")],
            [("compression.gzip.level", SET, "99")],
            [("compression.lz4.level", SET, "99")],
            [(list_name, SET, "zz")],
            [(list_name, APPEND, "0:1")],
            [(list_name, APPEND, "1:1,0:1")],
            [(list_name, SUBTRACT, "0:1")],
            [("min.compaction.lag.ms", SET, "9"), ("max.compaction.lag.ms", SET, "1")],
            [("remote.storage.enable", SET, "true")],
            [("preallocate", SET, "TRUE")],
            [],
        ):
            yield alter(TOPIC, name, *operations)
        yield replace(TOPIC, name, ("retention.ms", "abc"))
        yield replace(TOPIC, name, ("retention.ms", "5000"), ("zz", "1"))
        yield replace(TOPIC, name, ("retention.ms", None), ("zz", None))
        yield replace(TOPIC, name, ("retention.ms", "5000"))
    yield describe(TOPIC, "t6")
    yield replace(TOPIC, "t6")


def _others() -> Iterator[Question]:
    metrics: Sequence[Sequence[tuple[str, int, str | None]]] = (
        [("interval.ms", SET, "5000")],
        [("interval.ms", SET, "1")],
        [("interval.ms", SET, "x")],
        [("interval.ms", 9, "1")],
        [("match", SET, "client_id=x")],
        [("match", SET, "zz=x")],
        [("match", SET, "client_id=[")],
        [("match", SET, "bad")],
        [("metrics", SET, "a,b")],
        [("metrics", APPEND, "c")],
        [("nope", SET, "1")],
        [("nope", DELETE, None)],
    )
    groups: Sequence[Sequence[tuple[str, int, str | None]]] = (
        [("consumer.session.timeout.ms", SET, "50000")],
        [("consumer.session.timeout.ms", SET, "abc")],
        [("consumer.session.timeout.ms", APPEND, "1")],
        [("consumer.session.timeout.ms", 9, "1")],
        [("consumer.session.timeout.ms", SET, "44999")],
        [("consumer.session.timeout.ms", SET, "60001")],
        [("consumer.session.timeout.ms", SET, "60000"), ("consumer.heartbeat.interval.ms", SET, "15000")],
        [("consumer.heartbeat.interval.ms", SET, "4999")],
        [("consumer.heartbeat.interval.ms", SET, "15001")],
        [("consumer.heartbeat.interval.ms", SET, "0")],
        [("consumer.assignment.interval.ms", SET, "15001")],
        [("consumer.assignment.interval.ms", SET, "0")],
        [("consumer.heartbeat.interval.ms", SET, "1"), ("consumer.session.timeout.ms", SET, "1")],
        [("share.session.timeout.ms", SET, "1"), ("consumer.session.timeout.ms", SET, "99999")],
        [("share.heartbeat.interval.ms", SET, "16000")],
        [("share.record.lock.duration.ms", SET, "14999")],
        [("share.delivery.count.limit", SET, "11")],
        [("share.partition.max.record.locks", SET, "4001")],
        [("share.assignment.interval.ms", SET, "15001")],
        [("streams.session.timeout.ms", SET, "44999")],
        [("streams.heartbeat.interval.ms", SET, "15001")],
        [("streams.num.standby.replicas", SET, "3")],
        [("streams.assignment.interval.ms", SET, "15001")],
        [("share.isolation.level", SET, "x")],
        [("share.isolation.level", SET, "read_committed")],
        [("nope", SET, "1")],
        [("nope", DELETE, None)],
    )
    for kind, changes in ((METRICS, metrics), (GROUP, groups)):
        for name in ("g", ""):
            for operations in changes:
                yield alter(kind, name, *operations)
        yield describe(kind, "g")
        yield Question(keys.LIST_CONFIG_RESOURCES, 1, {"resource_types": [kind]})
        yield replace(kind, "g", ("nope", "1"))
        yield replace(kind, "g")
        yield describe(kind, "g")
        yield Question(keys.LIST_CONFIG_RESOURCES, 1, {"resource_types": [kind]})
    yield Question(keys.LIST_CONFIG_RESOURCES, 0, {})
    for kind in (0, 1, 99, -1):
        yield alter(kind, "g", ("nope", SET, "1"))
        yield replace(kind, "g", ("nope", "1"))


def _loggers() -> Iterator[Question]:
    for name in ("1", "", "2", "x"):
        for operation in (
            (SET, "INFO"),
            (APPEND, "INFO"),
            (SUBTRACT, "INFO"),
            (DELETE, None),
            (SET, None),
            (9, "INFO"),
        ):
            yield alter(LOGGER, name, ("no.such.logger", *operation))
    yield alter(LOGGER, "1")
    yield replace(LOGGER, "1", ("no.such.logger", "INFO"))


assert all(name in BROKER_SETTINGS for names in STAND_INS.values() for name in names)
