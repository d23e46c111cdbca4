"""The values of fields: plausible ones, and odd ones.

`VALUES` has whole fields, `ITEMS` the items of arrays, `LENGTHS` the lengths of arrays; None stands for null. The key
is a field's name, with its API or with the field around it where the name alone says too little.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tests.server.generated.batches import TIMES, some_records
from tests.server.generated.maker import LEAVE_OUT, Maker
from tests.server.generated.symbols import LogDir, SessionId, TopicId

Choose = Callable[[Maker], Any]

INTERNAL: Final = "__consumer_offsets"
# Topics that exist on both sides, with their partitions. No case changes them.
FIXED: Final = {"a-empty": 1, "a-data": 3, "a-compact": 1, "a-tuned": 2, "a-trimmed": 1}
_MISSING: Final = ("nope", "a", "a-data-", "A-DATA", "a.data")
_BAD: Final = ("", ".", "..", "bad name", "x" * 250, "ä", "a/b", "__cluster_metadata", "\0", "a:b")
_INT32: Final = 0x7FFFFFFF
_INT64: Final = (1 << 63) - 1


def of(*good: Any, odd: tuple[Any, ...] = ()) -> Choose:
    """Return a choice of good and odd values."""
    return lambda m: m.pick(good, odd)


def existing(m: Maker) -> str:
    """Return the name of a topic to read, mostly one that exists."""
    if m.own and m.rng.random() < 0.7:
        m.topic = m.rng.choice(m.own)
    else:
        m.topic = m.pick(("a-data", "a-data", *FIXED), (*_MISSING, *_BAD, INTERNAL))
    return m.topic


def own(m: Maker) -> str:
    """Return the name of a topic that this case may change."""
    return m.pick(m.own or ("nope",), (*_MISSING, *_BAD, f"{m.prefix}gone"))


def new(m: Maker) -> str:
    """Return the name of a topic to create."""
    number = m.rng.randrange(4)
    return m.pick((f"{m.prefix}{number}",), (*_BAD, "a-data", INTERNAL, f"{m.prefix}a.b", f"{m.prefix}a_b"))


def topic_id(m: Maker) -> Any:
    """Return the id of a topic."""
    if m.odd():
        return m.rng.choice((bytes(16), b"q" * 16, bytes(15) + b"\1", TopicId("nope")))
    m.topic = m.rng.choice(m.own) if m.own else m.rng.choice(("a-data", *FIXED))
    return TopicId(m.topic)


def partition(m: Maker) -> int:
    """Return a partition, mostly one that the topic has which was named last."""
    return m.pick(range(FIXED.get(m.topic, 3)), (-1, 3, 9, _INT32, -_INT32 - 1))


_SIZES: Final = ("0", "1", "1000", "1048576", "2097152", "-1", "abc", "", "9223372036854775807", " 5 ", "1.5")

# Good and bad values of topic configurations.
CONFIGS: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "retention.ms": (("5000", "-1", "604800000"), ("-2", *_SIZES)),
    "retention.bytes": (("-1", "1000000"), ("-7", *_SIZES)),
    "segment.bytes": (("1048576", "2000000"), ("14", "1048575", *_SIZES)),
    "segment.ms": (("1", "600000"), _SIZES),
    "cleanup.policy": (
        ("delete", "compact", "compact,delete", "delete,compact"),
        ("", "x", "delete,x", "DELETE", "delete,delete", ","),
    ),
    "compression.type": (("producer", "gzip", "lz4", "zstd", "snappy", "uncompressed"), ("none", "GZIP", "", "x")),
    "max.message.bytes": (("1000", "200", "1048588"), _SIZES),
    "message.timestamp.type": (("CreateTime", "LogAppendTime"), ("createtime", "", "x")),
    "message.timestamp.before.max.ms": (("9223372036854775807", "1000"), _SIZES),
    "message.timestamp.after.max.ms": (("3600000", "9223372036854775807"), _SIZES),
    "min.cleanable.dirty.ratio": (("0.5", "0", "1", "1e-3"), ("-0.1", "1.1", "x", "", "NaN")),
    "min.compaction.lag.ms": (("0", "100"), _SIZES),
    "max.compaction.lag.ms": (("1", "1000"), _SIZES),
    "delete.retention.ms": (("0", "1000"), _SIZES),
    "file.delete.delay.ms": (("0", "60000"), _SIZES),
    "flush.messages": (("1", "9223372036854775807"), _SIZES),
    "flush.ms": (("0", "9223372036854775807"), _SIZES),
    "index.interval.bytes": (("0", "4096"), _SIZES),
    "segment.index.bytes": (("4", "10485760"), _SIZES),
    "segment.jitter.ms": (("0", "5"), _SIZES),
    "preallocate": (("false", "true"), ("yes", "", "TRUE", "0")),
    "unclean.leader.election.enable": (("false",), ("maybe",)),
    "min.insync.replicas": (("1", "2"), _SIZES),
    "compression.gzip.level": (("1", "9", "-1"), ("0", "10", *_SIZES)),
    "compression.lz4.level": (("1", "17"), ("0", "18", *_SIZES)),
    "compression.zstd.level": (("3", "-5", "22"), ("23", "-131073", *_SIZES)),
    "leader.replication.throttled.replicas": (("*", "", "0:1,1:1"), ("x", "0", "0:1,", "0:1:2")),
    "follower.replication.throttled.replicas": (("*", "0:1"), ("none",)),
    "remote.storage.enable": (("false",), ("true", "x")),
    "remote.log.copy.disable": (("false",), ("true",)),
    "remote.log.delete.on.disable": (("false",), ("true",)),
    "local.retention.ms": (("-2", "1000"), ("-3", *_SIZES)),
    "local.retention.bytes": (("-2", "1000"), ("-3", *_SIZES)),
}
_UNKNOWN: Final = (
    "nope",
    "",
    "retention",
    "log.retention.ms",
    "Retention.ms",
    "message.format.version",
    "message.downconversion.enable",
    "leader.throttled",
    "num.partitions",
)


def config(m: Maker, *, operation: bool = False) -> dict[str, Any]:
    """Return a setting with its value."""
    if m.odd(0.3):
        return {"name": m.rng.choice(_UNKNOWN), "value": "1"} | ({"config_operation": 0} if operation else {})
    name = m.rng.choice([*CONFIGS])
    good, bad = CONFIGS[name]
    setting: dict[str, Any] = {"name": name, "value": None if m.odd(0.15) else m.pick(good, bad)}
    if operation:
        is_list = name in ("cleanup.policy", "leader.replication.throttled.replicas")
        setting["config_operation"] = m.pick((0, 0, 1, 2, 3) if is_list else (0, 0, 0, 1), (2, 3, 4, -1, 9))
        if setting["config_operation"] == 1 and m.rng.random() < 0.7:
            setting["value"] = None
    return setting


def configs(m: Maker, *, operation: bool = False) -> list[dict[str, Any]]:
    """Return some settings, each once unless it is odd."""
    some = [config(m, operation=operation) for _ in range(m.rng.choice((0, 1, 1, 1, 2, 3)))]
    unknown = [each for each in some if each["name"] in _UNKNOWN]
    some = [each for each in some if each not in unknown[1:]]
    wrong = [each for each in some if each.get("config_operation", 0) not in (0, 1)]
    for each in wrong[1:]:  # of several errors Kafka tells that of a hash map's first
        each["config_operation"] = 0
    return some if m.odd(0.4) else [*{each["name"]: each for each in some}.values()]


def assignments(m: Maker) -> list[dict[str, Any]]:
    """Return nothing, nearly always: replicas of partitions that are to be created."""
    if not m.odd(0.5) and m.rng.random() < 0.9:
        return []
    good = [{"partition_index": number, "broker_ids": [1]} for number in range(m.rng.choice((1, 2)))]
    if m.odd():
        good.append(
            {
                "partition_index": m.rng.choice((0, 1, 2, 5, -1)),
                "broker_ids": m.rng.choice(([1], [1, 1], [7], [], [1, 2])),
            }
        )
    return good


def resource_name(m: Maker) -> str:
    """Return the name of a resource, mostly a topic."""
    if m.own:
        return own(m)
    return m.pick(("a-data", "a-tuned", *FIXED), (*_MISSING, *_BAD, "1", "99", INTERNAL))


def session(m: Maker) -> Any:
    """Return the id of a fetch session."""
    return m.pick((SessionId(),) if m.session_epoch else (0,), (0, 5, -1, 2_000_000_000))


def _new_assignments(m: Maker) -> list[dict[str, Any]] | None:
    if m.odd():
        return [{"broker_ids": m.rng.choice(([1], [1, 1], [7], [], [1, 2]))} for _ in range(m.rng.choice((0, 1, 2)))]
    return [{"broker_ids": [1]}] if m.rng.random() < 0.1 else None


def _cursor(m: Maker) -> dict[str, Any] | None:
    if m.rng.random() < 0.5:
        return None
    topic = m.pick(("a-data", "a-compact", "a-tuned"), ("", "nope", "a-zzz", "zzzz", "bad name"))
    return {"topic_name": topic, "partition_index": m.pick((0, 1), (-1, 7, 100_000))}


_EPOCH: Final = of(-1, -1, 0, odd=(1, 5, -2, _INT32, -_INT32 - 1))
_OFFSET: Final = of(0, 0, 1, 2, 5, odd=(-1, -2, 40, 9999, _INT64, -_INT64 - 1))
_KEYS: Final = of(
    None, None, ["retention.ms"], ["cleanup.policy", "segment.bytes"], odd=([], ["nope"], ["retention.ms"] * 2, [""])
)

VALUES: Final[dict[str, Choose]] = {
    # Topics and partitions.
    "topic": existing,
    "topic_id": topic_id,
    "topics.name": existing,
    "Produce.name": own,
    "CreateTopics.topics.name": new,
    "CreatePartitions.topics.name": own,
    "DeleteRecords.topics.name": own,
    "DeleteTopics.topics.name": lambda m: None if m.odd(0.5) else own(m),
    "DeleteTopics.topic_id": lambda m: topic_id(m) if m.odd(0.5) else bytes(16),
    "Metadata.topics.name": lambda m: None if m.odd(0.3) else existing(m),
    "Metadata.topic_id": lambda m: topic_id(m) if m.odd(0.5) else bytes(16),
    "index": partition,
    "partition": partition,
    "partition_index": partition,
    "replicas": of([1], [1], None, odd=([], [7], [1, 1], [1, 2], [-1])),
    # Epochs, offsets and times.
    "current_leader_epoch": _EPOCH,
    "leader_epoch": of(0, 0, -1, 1, odd=(5, -2, _INT32)),
    "last_fetched_epoch": of(-1, -1, -1, 0, odd=(1, 5, -2)),
    "fetch_offset": _OFFSET,
    "offset": of(0, 1, 2, -1, odd=(-2, 40, 9999, _INT64)),
    "log_start_offset": of(-1, 0, odd=(5, -2)),
    "timestamp": of(-1, -2, -1, -2, -3, -4, -5, -6, *TIMES, odd=(-7, -100, 1 << 50, _INT64, -_INT64 - 1)),
    "timeout_ms": of(5000, 30_000, odd=(_INT32,)),
    "isolation_level": of(0, 0, 1, odd=(2, -1, 127)),
    "replica_id": of(-1, odd=(-2,)),
    # Fetch.
    "replica_state": lambda m: LEAVE_OUT,
    "cluster_id": lambda m: LEAVE_OUT if not m.odd() else m.rng.choice((None, "x")),
    "replica_directory_id": lambda m: LEAVE_OUT,
    "max_wait_ms": of(0, 1, odd=(-1, 20)),
    "min_bytes": of(0, 1, 100, odd=(-1, _INT32)),
    "max_bytes": of(10_000_000, 1000, odd=(0, 1, -1, _INT32)),
    "partition_max_bytes": of(1_000_000, 500, 100, odd=(0, 1, -1, _INT32)),
    "session_id": session,
    "session_epoch": lambda m: m.pick(
        (m.session_epoch,) if m.session_epoch else (-1, -1, 0), (-1, 0, 1, 2, 7, -2, _INT32)
    ),
    "rack_id": of("", "r", odd=("x" * 300, "ä")),
    # Produce.
    "transactional_id": of(None, odd=("",)),
    "acks": of(-1, 1, 1, 0, odd=(2, -2, 0x7FFF)),
    "records": lambda m: some_records(m.rng, m.odds * 2, idempotent=m.rng.random() < 0.4),
    # InitProducerId.
    "transaction_timeout_ms": of(1000, 60_000, odd=(0, -1, _INT32)),
    "producer_id": of(-1, odd=(5, 0, -2, _INT64)),
    "producer_epoch": of(-1, odd=(0, 3, -2, 0x7FFF)),
    # Administration.
    "num_partitions": of(1, 2, 3, odd=(-1, 0, -2, 20_000)),
    "replication_factor": of(1, odd=(-1, 0, -2, 2, 3, 0x7FFF)),
    "CreateTopics.topics.assignments": assignments,
    "CreateTopics.configs": configs,
    "AlterConfigs.configs": configs,
    "IncrementalAlterConfigs.configs": lambda m: configs(m, operation=True),
    "count": of(4, 5, 6, odd=(0, -1, 1, 2, 3)),
    "CreatePartitions.topics.assignments": _new_assignments,
    "resource_type": of(2, odd=(0, 77, -1, 3, 4, 8, 16, 32, 127)),
    "resource_name": resource_name,
    "configuration_keys": _KEYS,
    "election_type": of(0, 1, odd=(2, -1)),
    "endpoint_type": of(1, odd=(2, 0, 9, -1)),
    "response_partition_limit": of(2000, 1, 2, 3, odd=(0, -1, _INT32)),
    "cursor": _cursor,
    "client_software_name": of("octavo", "a", "a-b.c", odd=("", "-", "ä", "a b", "x" * 300, "a-")),
    "client_software_version": of("1", "4.3.1", odd=("", ".", "1.", "1 2")),
    "path": of(LogDir(), odd=("/nowhere", "relative", "")),
    "feature": of("metadata.version", odd=("nope", "")),
    "max_version_level": of(30, odd=(31, 99, -1)),
    "upgrade_type": of(1, odd=(0, 2, 3, 9)),
    "UpdateFeatures.validate_only": of(True),
    "DescribeQuorum.topic_name": of("__cluster_metadata", odd=("a-data", "nope")),
    "DescribeQuorum.partition_index": of(0, odd=(1, -1)),
    # Quotas.
    "entity_type": of("user", "client-id", odd=("", "x")),
    "entity_name": lambda m: f"{m.prefix}{m.pick(('u', 'v'), ('', ' '))}",
    "match_type": of(0, odd=(1, 3, -1)),
    "match": lambda m: f"{m.prefix}{m.pick(('u', 'v'), ('', ' '))}",
    "ops.key": of("producer_byte_rate", "consumer_byte_rate", odd=("nope", "", "connection_creation_rate")),
    "ops.value": of(1000.0, 1024.0, odd=(0.0, -1.0, 0.5, 1e300)),
    "ops.remove": lambda m: m.rng.random() < 0.2,
    # Security: there is none.
    "SaslHandshake.mechanism": of("PLAIN", "SCRAM-SHA-256", odd=("", "x")),
    "users.name": lambda m: f"{m.prefix}{m.pick(('u', 'v'))}",
    "deletions.name": lambda m: f"{m.prefix}{m.pick(('u', 'v'))}",
    "upsertions.name": lambda m: f"{m.prefix}{m.pick(('u', 'v'))}",
    "AlterUserScramCredentials.mechanism": of(1, 2, odd=(0, 3, -1)),
    "iterations": of(4096, 8192, odd=(0, 4095, 16_384, 16_385, -1)),
    "salt": of(b"0123456789abcdef", odd=(b"",)),
    "salted_password": of(b"0123456789abcdef" * 2, odd=(b"",)),
    "resource_type_filter": of(2, 1, odd=(0, 99, -1)),
    "resource_name_filter": of(None, "a-data", odd=("",)),
    "pattern_type_filter": of(3, 1, 2, odd=(0, 9)),
    "resource_pattern_type": of(3, 4, odd=(0, 1, 9)),
    "operation": of(2, 3, odd=(0, 1, 99)),
    "permission_type": of(3, 2, odd=(0, 1, 9)),
    "principal": of("User:x", odd=("x", "")),
    "host": of("*", odd=("",)),
    "CreateAcls.resource_type": of(2, 3, odd=(0, 1, 99)),
    "CreateAcls.resource_name": of("a-data", "*", odd=("",)),
    "principal_filter": of(None, "User:x", odd=("",)),
    "host_filter": of(None, "*", odd=("",)),
}

_FEW: Final[Choose] = of(1, 1, 2, 3, odd=(0,))
ITEMS: Final[dict[str, Choose]] = {
    "partitions": partition,
    "partition_indexes": partition,
    "DeleteTopics.topic_names": own,
    "resource_types": of(2, 4, 8, 16, 32, odd=(0, 77, -1)),
}
LENGTHS: Final[dict[str, Choose]] = {
    "partitions": _FEW,
    "partition_indexes": _FEW,
    "CreatePartitions.topics": of(1, odd=(0, 2)),  # there is one topic: two are the same
    "Metadata.topics": of(1, 2, 3, odd=(None, 0)),
    "DescribeLogDirs.topics": of(None, 1, 2, odd=(0,)),
    "topic_partitions": of(None, 1, 2, odd=(0,)),
    "ListPartitionReassignments.topics": of(None, 1, 2, odd=(0,)),
    "DescribeTopicPartitions.topics": of(0, 1, 3, odd=(2,)),
    "resource_types": of(0, 1, 2),
    "components": of(1, 1, 2),
    "users": of(1, 2),
    "entity": of(1),
    "deletions": of(0, 0, 1),
    "forgotten_topics_data": of(0, 0, 0, 1, odd=(2,)),
}
