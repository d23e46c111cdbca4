"""Requests for every API that is served, valid and not, in the order in which they are asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from octavo.broker.wire import api_keys as keys
from octavo.records import BatchBuilder
from tests.server.question import Question, every_version, versions
from tests.server.questions_admin import admin_questions
from tests.server.questions_configs import config_questions
from tests.server.questions_topics import topic_questions


def batch(*values: bytes) -> bytes:
    """One batch with these values."""
    builder = BatchBuilder()
    for number, value in enumerate(values):
        builder.append(None, value, timestamp_ms=1000 + number)
    return bytes(builder.build())


def questions() -> Iterator[Question]:
    """All questions. Some depend on what earlier ones have created: topics t2 to t7, and t2x to t7x."""
    for each in (
        _api_versions,
        _create_topics,
        _metadata,
        _produce,
        _fetch,
        _list_offsets,
        _epochs,
        _describe_configs,
        _alter_configs,
        _create_partitions,
        _delete_records,
        _describe,
        _one_node,
        _init_producer_id,
        admin_questions,
        config_questions,
        topic_questions,
        _delete_topics,
    ):
        yield from each()


def _api_versions() -> Iterator[Question]:
    for version in versions(keys.API_VERSIONS):
        for name, software in (("a", "1"), ("", "1"), ("a-", "1"), ("ä", "1"), ("a", "")):
            content = {"client_software_name": name, "client_software_version": software}
            yield Question(keys.API_VERSIONS, version, content if version >= 3 else {})


_BY_NAME = 7  # a version of Fetch and of ListOffsets that names topics
_ASSIGNED = {"num_partitions": -1, "replication_factor": -1}


def _topic(name: str, **settings: Any) -> dict[str, Any]:
    return {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": [], **settings}


def _config(name: str, value: str | None) -> dict[str, Any]:
    return {"configs": [{"name": name, "value": value}]}


def _assigned(*partitions: tuple[int, list[int]]) -> dict[str, Any]:
    return {"assignments": [{"partition_index": number, "broker_ids": ids} for number, ids in partitions]}


def _create_topics() -> Iterator[Question]:
    def create(*topics: dict[str, Any], version: int = 7, only_check: bool = False) -> Question:
        content = {"topics": topics, "timeout_ms": 5000, "validate_only": only_check}
        return Question(keys.CREATE_TOPICS, version, content)

    for version in every_version(keys.CREATE_TOPICS):
        default = {"num_partitions": -1, "replication_factor": -1} if version >= 4 else {"num_partitions": 2}
        yield create(_topic(f"t{version}"), _topic(f"t{version}x", **default), version=version)
        yield create(_topic(f"t{version}"), _topic("bad name"), _topic("rf", replication_factor=3), version=version)
    yield create(*[_topic(name) for name in ("bad name", "", ".", "..", "x" * 250, "__cluster_metadata", "ä")])
    yield create(_topic("rf0", replication_factor=0), _topic("rf2", replication_factor=-2))
    yield create(_topic("p0", num_partitions=0), _topic("p2", num_partitions=-2))
    for name, value in (("nope", "1"), ("retention.ms", "abc"), ("retention.ms", None), ("retention.ms", "-2")):
        yield create(_topic("odd", **_config(name, value)))
    for name, value in (("min.cleanable.dirty.ratio", "7"), ("preallocate", "maybe"), ("segment.bytes", "1")):
        yield create(_topic("odd", **_config(name, value)))
    yield create(_topic("as1", **_ASSIGNED | _assigned((0, [1])) | {"replication_factor": 1}))
    yield create(_topic("as2", **_ASSIGNED | _assigned((0, [7]))))
    yield create(_topic("as3", **_ASSIGNED | _assigned((1, [1]))))
    yield create(_topic("as4", **_ASSIGNED | _assigned((0, [1, 1]))))
    yield create(_topic("as5", **_ASSIGNED | _assigned((0, [1]), (1, [1]))))
    yield create(_topic("twice"), _topic("twice"))
    yield create(_topic("large", num_partitions=20_000))
    yield create(_topic("checked", **_config("retention.ms", "5000")), only_check=True)
    yield create(_topic("a.b"))
    yield create(_topic("a_b"))


def _metadata() -> Iterator[Question]:
    for version in every_version(keys.METADATA):
        asks = {"include_cluster_authorized_operations": True, "include_topic_authorized_operations": True}
        names = [{"name": name, "topic_id": bytes(16)} for name in ("t7", "nope", "bad name", "t7")]
        yield Question(keys.METADATA, version, {"topics": names, "allow_auto_topic_creation": False, **asks})
        asks = dict.fromkeys(asks, False)
        yield Question(keys.METADATA, version, {"topics": [], "allow_auto_topic_creation": True, **asks})
        if version:
            yield Question(keys.METADATA, version, {"topics": None, "allow_auto_topic_creation": True, **asks})
    for version in (12, 13):
        wanted = [{"name": None, "topic_id": b"x" * 16}]
        yield Question(keys.METADATA, version, {"topics": wanted, "allow_auto_topic_creation": False, **asks})


def _produce() -> Iterator[Question]:
    good = batch(b"one", b"two")
    records = {
        "good": good,
        "cut": good[:-1],
        "wrong checksum": good[:-1] + b"z",
        "empty": b"",
        "two batches": good + good,
        "too large": batch(b"x" * 2_000_000),
        "old": good[:16] + b"\1" + good[17:],
    }
    for version in every_version(keys.PRODUCE):
        if version >= 13:
            break
        for topic, partition in (("t6", 0), ("nope", 0), ("t5", 5), ("t6", -1)):
            yield _to(version, topic, partition, good)
        for data in records.values():
            yield _to(version, "t6", 0, data, acks=-1)
        yield _to(version, "t6", 0, good, acks=5)
        yield _producing(version, [])
    yield _producing(13, [{"topic_id": b"x" * 16, "partition_data": [{"index": 0, "records": good}]}])


def _to(version: int, topic: str, partition: int, records: bytes, acks: int = 1) -> Question:
    return _producing(version, [{"name": topic, "partition_data": [{"index": partition, "records": records}]}], acks)


def _producing(version: int, topics: list[dict[str, Any]], acks: int = 1) -> Question:
    content = {"transactional_id": None, "acks": acks, "timeout_ms": 1000, "topic_data": topics}
    return Question(keys.PRODUCE, version, content)


def _fetch() -> Iterator[Question]:
    wanted = {"partition": 0, "current_leader_epoch": -1, "fetch_offset": 0, "partition_max_bytes": 1_000_000}
    request = {
        "replica_id": -1,
        "max_wait_ms": 10,
        "min_bytes": 1,
        "max_bytes": 10_000_000,
        "isolation_level": 0,
        "session_id": 0,
        "session_epoch": -1,
        "forgotten_topics_data": [],
        "rack_id": "",
    }
    for version in every_version(keys.FETCH):
        if version >= 13:
            topics: list[dict[str, Any]] = [{"topic_id": b"y" * 16, "partitions": [wanted]}]
            yield Question(keys.FETCH, version, {**request, "topics": topics})
            continue
        one = [{"topic": "t6", "partitions": [wanted]}]
        yield Question(keys.FETCH, version, {**request, "topics": one})
        yield Question(keys.FETCH, version, {**request, "topics": one, "isolation_level": 1})
        yield Question(keys.FETCH, version, {**request, "topics": []})
        for change in ({"fetch_offset": 9999}, {"fetch_offset": -5}, {"partition": 7}, {"partition_max_bytes": 1}):
            yield Question(
                keys.FETCH, version, {**request, "topics": [{"topic": "t6", "partitions": [wanted | change]}]}
            )
        several = [*one, {"topic": "t5", "partitions": [wanted]}, {"topic": "nope", "partitions": [wanted]}]
        yield Question(keys.FETCH, version, {**request, "topics": several})
        yield Question(keys.FETCH, version, {**request, "topics": several, "max_bytes": 1})
        if version >= 9:
            newer = [{"topic": "t6", "partitions": [wanted | {"current_leader_epoch": 5}]}]
            yield Question(keys.FETCH, version, {**request, "topics": newer})
        if version >= 7:
            for session_id, epoch in ((5, 3), (0, 3), (0, 0), (9, -1)):
                session = {"session_id": session_id, "session_epoch": epoch}
                yield Question(keys.FETCH, version, {**request, "topics": one, **session})


def fetch_from(topic: str, offset: int) -> Question:
    """Fetch from the first partition of a topic, without a session."""
    asked = next(each for each in _fetch() if each.version == _BY_NAME)
    partition = {"partition": 0, "fetch_offset": offset, "current_leader_epoch": -1, "partition_max_bytes": 1_000_000}
    return asked._replace(content={**asked.content, "topics": [{"topic": topic, "partitions": [partition]}]})


def offset_at(topic: str, timestamp_ms: int) -> Question:
    """Ask for the offset of a time, or of a special timestamp, in the first partition of a topic."""
    return _offsets(_BY_NAME, topic, [{"partition_index": 0, "timestamp": timestamp_ms}])


def _list_offsets() -> Iterator[Question]:
    for version in every_version(keys.LIST_OFFSETS):
        for timestamp in (-1, -2, -3, -4, -5, -6, -7, 0, 1001, 99_999_999_999_999):
            yield _offsets(version, "t6", [{"partition_index": 0, "timestamp": timestamp}])
        yield _offsets(version, "t6", [{"partition_index": 0, "timestamp": -1}], isolation_level=1)
        twice = [{"partition_index": 0, "timestamp": -1}, {"partition_index": 0, "timestamp": -2}]
        yield _offsets(version, "t6", [*twice, {"partition_index": 9, "timestamp": -2}])
        yield _offsets(version, "nope", [{"partition_index": 0, "timestamp": -1}])
        if version >= 4:
            newer = [{"partition_index": 0, "timestamp": -1, "current_leader_epoch": 3}]
            yield _offsets(version, "t6", newer)


def _offsets(version: int, topic: str, partitions: list[dict[str, Any]], isolation_level: int = 0) -> Question:
    content = {
        "replica_id": -1,
        "isolation_level": isolation_level,
        "topics": [{"name": topic, "partitions": partitions}],
        "timeout_ms": 1000,
    }
    return Question(keys.LIST_OFFSETS, version, content)


def _epochs() -> Iterator[Question]:
    for version in versions(keys.OFFSET_FOR_LEADER_EPOCH):
        for topic, partition in (("t6", 0), ("t6", 8), ("nope", 0)):
            for epoch, current in ((-1, -1), (0, -1), (1, -1), (5, -1), (0, 0), (0, 7)):
                wanted = {"partition": partition, "current_leader_epoch": current, "leader_epoch": epoch}
                topics = [{"topic": topic, "partitions": [wanted]}]
                yield Question(keys.OFFSET_FOR_LEADER_EPOCH, version, {"replica_id": -1, "topics": topics})


def _describe_configs() -> Iterator[Question]:
    for version in versions(keys.DESCRIBE_CONFIGS):
        for resource_type, name, wanted in (
            (2, "t6", None),
            (2, "nope", None),
            (2, "bad name", None),
            (2, "t5", ["retention.ms", "nope"]),
            (4, "99", None),
            (77, "99", None),
        ):
            resource = {"resource_type": resource_type, "resource_name": name, "configuration_keys": wanted}
            content = {"resources": [resource], "include_synonyms": True, "include_documentation": False}
            yield Question(keys.DESCRIBE_CONFIGS, version, content)


def _alter_configs() -> Iterator[Question]:
    for version in versions(keys.INCREMENTAL_ALTER_CONFIGS):
        for name, operation, value in (
            ("retention.ms", 0, "5000"),
            ("retention.ms", 1, None),
            ("retention.ms", 2, "5"),
            ("cleanup.policy", 2, "compact"),
            ("cleanup.policy", 2, "compact"),
            ("cleanup.policy", 3, "delete"),
            ("cleanup.policy", 3, "delete"),
            ("cleanup.policy", 0, "delete"),
            ("nope", 0, "1"),
            ("retention.ms", 0, "abc"),
            ("retention.ms", 0, None),
            ("retention.ms", 9, "1"),
        ):
            yield _alter(version, "t6", {"name": name, "config_operation": operation, "value": value})
        once = {"name": "retention.ms", "config_operation": 0, "value": "1"}
        yield _alter(version, "t6", once, once)
        yield _alter(version, "nope", once)
        yield Question(keys.DESCRIBE_CONFIGS, 4, _describing("t6"))
    for version in versions(keys.ALTER_CONFIGS):
        for topic, value in (("t6", "77777"), ("t6", None), ("t6", "x"), ("nope", "1")):
            configs = [{"name": "retention.ms", "value": value}]
            resources = [{"resource_type": 2, "resource_name": topic, "configs": configs}]
            yield Question(keys.ALTER_CONFIGS, version, {"validate_only": False, "resources": resources})
        yield Question(keys.DESCRIBE_CONFIGS, 4, _describing("t6"))


def _describing(topic: str) -> dict[str, Any]:
    resource = {"resource_type": 2, "resource_name": topic, "configuration_keys": None}
    return {"resources": [resource], "include_synonyms": False, "include_documentation": False}


def _alter(version: int, topic: str, *configs: dict[str, Any]) -> Question:
    resources = [{"resource_type": 2, "resource_name": topic, "configs": configs}]
    return Question(keys.INCREMENTAL_ALTER_CONFIGS, version, {"validate_only": False, "resources": resources})


def _create_partitions() -> Iterator[Question]:
    for version in versions(keys.CREATE_PARTITIONS):
        for topic, number, assignments in (
            ("t3x", 1, None),
            ("t3x", 0, None),
            ("t3x", version + 5, None),
            ("nope", 3, None),
            ("t2x", 9, [{"broker_ids": [1]}]),
            ("t4x", 2, [{"broker_ids": [8]}]),
        ):
            wanted = {"name": topic, "count": number, "assignments": assignments}
            content = {"timeout_ms": 5000, "validate_only": False, "topics": [wanted]}
            yield Question(keys.CREATE_PARTITIONS, version, content)
    # Only checked: Kafka says that it has failed, and creates 10,000 partitions.
    many = [{"name": "t3x", "count": 20_000, "assignments": None}]
    yield Question(keys.CREATE_PARTITIONS, 3, {"timeout_ms": 5000, "validate_only": True, "topics": many})


def _delete_records() -> Iterator[Question]:
    for version in versions(keys.DELETE_RECORDS):
        for topic in ("t6", "nope"):
            for offset in (1, -1, 0, 9999, -2):
                wanted = {"name": topic, "partitions": [{"partition_index": 0, "offset": offset}]}
                yield Question(keys.DELETE_RECORDS, version, {"timeout_ms": 5000, "topics": [wanted]})


def _describe() -> Iterator[Question]:
    for version in versions(keys.DESCRIBE_CLUSTER):
        for kind in (1, 2, 9):
            asks = {"include_cluster_authorized_operations": kind == 1, "include_fenced_brokers": False}
            yield Question(keys.DESCRIBE_CLUSTER, version, {"endpoint_type": kind, **asks})
    for cursor in (None, {"topic_name": "t4", "partition_index": 0}):
        for limit in (2000, 1, 3, 0):
            for names in ((), ("t5", "nope", "bad name"), ("t4", "t5"), ("t4", "")):
                topics = [{"name": name} for name in names]
                content = {"topics": topics, "response_partition_limit": limit, "cursor": cursor}
                yield Question(keys.DESCRIBE_TOPIC_PARTITIONS, 0, content)
    for version in versions(keys.DESCRIBE_LOG_DIRS):
        for wanted in (None, [{"topic": "t6", "partitions": [0, 8]}], []):
            yield Question(keys.DESCRIBE_LOG_DIRS, version, {"topics": wanted})
    for name in ("t6", "nope", "bad name"):
        yield Question(keys.DESCRIBE_PRODUCERS, 0, {"topics": [{"name": name, "partition_indexes": [0, 9]}]})


def _one_node() -> Iterator[Question]:
    for version in versions(keys.ELECT_LEADERS):
        for kind in (0, 1, 7) if version else (0,):
            named = [{"topic": "t6", "partitions": [0, 9]}, {"topic": "nope", "partitions": [0]}]
            for wanted in (named, None):
                content = {"election_type": kind, "topic_partitions": wanted, "timeout_ms": 5000}
                if kind != 7 or wanted:
                    yield Question(keys.ELECT_LEADERS, version, content)
    for version in versions(keys.ALTER_PARTITION_REASSIGNMENTS):
        for replicas in ([1], None, [5], [1, 1]):
            for topic, partition in (("t6", 0), ("t6", 9), ("nope", 0)):
                wanted = [{"name": topic, "partitions": [{"partition_index": partition, "replicas": replicas}]}]
                content = {"timeout_ms": 5000, "allow_replication_factor_change": True, "topics": wanted}
                yield Question(keys.ALTER_PARTITION_REASSIGNMENTS, version, content)
    for wanted in (None, [{"name": "nope", "partition_indexes": [0]}]):
        yield Question(keys.LIST_PARTITION_REASSIGNMENTS, 0, {"timeout_ms": 5000, "topics": wanted})


def _init_producer_id() -> Iterator[Question]:
    for version in versions(keys.INIT_PRODUCER_ID):
        for transactional_id, producer_id, epoch in ((None, -1, -1), (None, 7, -1), (None, -1, 3), ("", -1, -1)):
            content = {
                "transactional_id": transactional_id,
                "transaction_timeout_ms": 1000,
                "producer_id": producer_id,
                "producer_epoch": epoch,
            }
            yield Question(keys.INIT_PRODUCER_ID, version, content)


def _delete_topics() -> Iterator[Question]:
    for version in range(1, 6):
        for name in (f"t{version + 1}", f"t{version + 1}", "nope", "bad name"):
            yield Question(keys.DELETE_TOPICS, version, {"timeout_ms": 5000, "topic_names": [name]})
    named: tuple[tuple[str | None, bytes], ...] = (("t7", bytes(16)), (None, b"q" * 16), ("t7x", b"q" * 16))
    for topic, topic_id in (*named, (None, bytes(16))):
        wanted = {"timeout_ms": 5000, "topics": [{"name": topic, "topic_id": topic_id}]}
        yield Question(keys.DELETE_TOPICS, 6, wanted)
