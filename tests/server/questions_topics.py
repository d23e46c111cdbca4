"""Requests about topics and records that are unusual: things named twice, nothing named, limits, mixed outcomes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from octavo.broker.wire import api_keys as keys
from octavo.log.config.log_config import TOPIC_OPTIONS
from tests.server.question import Question, versions

MANY = 2**31 - 1
_Named = Sequence[tuple[str, Sequence[int]]]  # topics, with the numbers of partitions


def topic_questions() -> Iterator[Question]:
    """All of them. There are topics t4, t5 and t6; others whose names begin with `u` come and go."""
    for each in (
        _create_topics,
        _create_partitions,
        _delete_records,
        _list_offsets,
        _epochs,
        _metadata,
        _describe,
        _one_node,
        _delete_topics,
    ):
        yield from each()


def topic(name: str, **changes: Any) -> dict[str, Any]:
    return {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []} | changes


def configs(*pairs: tuple[str, str | None]) -> dict[str, Any]:
    return {"configs": [{"name": name, "value": value} for name, value in pairs]}


def assigned(*partitions: tuple[int, Sequence[int]]) -> dict[str, Any]:
    assignments = [{"partition_index": number, "broker_ids": ids} for number, ids in partitions]
    return {"num_partitions": -1, "replication_factor": -1, "assignments": assignments}


def create(*topics: dict[str, Any], version: int = 7, only_check: bool = False, timeout_ms: int = 5000) -> Question:
    content = {"topics": topics, "timeout_ms": timeout_ms, "validate_only": only_check}
    return Question(keys.CREATE_TOPICS, version, content)


def _create_topics() -> Iterator[Question]:
    for version in versions(keys.CREATE_TOPICS):
        for only_check in (True, False):
            name = f"u{version}"
            yield create(version=version, only_check=only_check)
            yield create(topic(name, num_partitions=3), topic("t6"), version=version, only_check=only_check)
            yield create(topic(name + "a", **assigned((0, [1]), (1, [1]))), version=version, only_check=only_check)
            yield create(topic(name, **configs(("nope", "1"))), version=version, only_check=only_check)
            yield create(topic("bad name", **configs(("nope", "1"))), version=version, only_check=only_check)
            yield create(
                *[topic("twice"), topic("twice"), topic("twice"), topic(name + "b")],
                version=version,
                only_check=only_check,
            )
    yield create(topic("u" * 249), topic("u" * 250))
    yield create(topic("u.u"), topic("u_u"))
    yield create(topic("u_u"), topic("u.u"), only_check=True)
    yield create(topic("u-c", **configs(("cleanup.policy", "compact"), ("retention.ms", "-1"))))
    yield create(topic("u-d", **configs(("retention.ms", "1"), ("retention.ms", "2"))))
    yield create(topic("u-e", **configs(("cleanup.policy", "delete,compact"), ("segment.bytes", " 1048576 "))))
    yield create(topic("u-f", **configs(("min.insync.replicas", "2"))))
    yield create(topic("u-g", **configs(("remote.storage.enable", "true"))))
    yield create(topic("u-h", **configs(("min.compaction.lag.ms", "9"), ("max.compaction.lag.ms", "8"))))
    yield create(topic("u-i", **configs(("retention.ms", None), ("nope", None))))
    names = [each for each in TOPIC_OPTIONS.names if not each.startswith("internal.")]
    pairs = [configs((one, "?"), (other, "?")) for one, other in pairwise((*names, names[0]))]
    yield create(*[topic(f"u-p{number}", **pair) for number, pair in enumerate(pairs)], only_check=True)
    of_partitions: Sequence[Sequence[tuple[int, Sequence[int]]]] = (
        [(0, [])],
        [(0, [1]), (0, [1])],
        [(0, [1]), (2, [1])],
        [(0, [1]), (1, [])],
        [(0, [-1])],
        [(-1, [1])],
        [(0, [1, 2])],
        [(0, [2, 2])],
        [(1, [1]), (0, [1])],
    )
    for number, partitions in enumerate(of_partitions):
        yield create(topic(f"u-as{number}", **assigned(*partitions)))
    yield create(topic("u-p", **assigned((0, [1])) | {"num_partitions": 1}))
    yield create(topic("u-q", **assigned((0, [1])) | {"num_partitions": 2, "replication_factor": 2}))
    for count, factor in ((-1, 1), (1, -1), (0, 0), (-5, 1), (1, -5), (2, 2), (MANY, 1), (1, 32767)):
        yield create(topic("u-r", num_partitions=count, replication_factor=factor), only_check=True)
    yield create(topic("u-s", num_partitions=6000), topic("u-t", num_partitions=6000))
    yield create(topic("u-u"), timeout_ms=-1)
    yield create(topic("u-v"), timeout_ms=0)


def _create_partitions() -> Iterator[Question]:
    def grow(*topics: tuple[str, int, Any], version: int = 3, only_check: bool = False) -> Question:
        wanted = [{"name": name, "count": count, "assignments": ids} for name, count, ids in topics]
        return Question(
            keys.CREATE_PARTITIONS, version, {"topics": wanted, "timeout_ms": 5000, "validate_only": only_check}
        )

    one: dict[str, Any] = {"broker_ids": [1]}
    none: dict[str, Any] = {"broker_ids": []}
    other: dict[str, Any] = {"broker_ids": [9]}
    for version in versions(keys.CREATE_PARTITIONS):
        yield grow(version=version)
        yield grow(("u7", 9, None), version=version, only_check=True)
        yield grow(("u7", 9, None), ("u7", 10, None), version=version)
        yield grow(("u7", -1, None), ("t6", 0, None), ("bad name", 2, None), ("", 2, None), version=version)
        yield grow(("u7", 3, None), ("u7a", 3, [one]), version=version)
        yield grow(("u7a", 4, [one, one]), ("u4a", 3, []), version=version)
        yield grow(("u7a", 5, [none]), ("u4a", 3, [other]), ("u2a", 3, [{"broker_ids": [1, 1]}]), version=version)
        yield grow(("u7a", MANY, None), version=version, only_check=True)
        yield grow(("u7a", 20_000, None), ("nope", 1, None), version=version, only_check=True)


def _delete_records() -> Iterator[Question]:
    def cut(*topics: tuple[str, Sequence[tuple[int, int]]], version: int = 2) -> Question:
        wanted = [
            {"name": name, "partitions": [{"partition_index": number, "offset": offset} for number, offset in offsets]}
            for name, offsets in topics
        ]
        return Question(keys.DELETE_RECORDS, version, {"topics": wanted, "timeout_ms": 1000})

    for version in versions(keys.DELETE_RECORDS):
        yield cut(version=version)
        yield cut(("t6", []), version=version)
        yield cut(("t6", [(0, -1), (0, 1)]), version=version)
        yield cut(("t6", [(0, 0), (7, 0), (-1, 0)]), ("nope", [(0, 0)]), version=version)
        yield cut(("t6", [(0, 2**62)]), ("t5", [(0, -1)]), version=version)
        yield cut(("t6", [(0, -5)]), ("bad name", [(0, 0)]), ("", [(0, 0)]), version=version)
        yield cut(("u-c", [(0, -1)]), ("u-e", [(0, -1)]), version=version)
        yield cut(("t6", [(0, -1)]), ("t6", [(0, 0)]), version=version)


def _list_offsets() -> Iterator[Question]:
    def ask(version: int, topics: Sequence[tuple[str, Sequence[dict[str, int]]]], **changes: int) -> Question:
        wanted = [{"name": name, "partitions": partitions} for name, partitions in topics]
        content = {"replica_id": -1, "isolation_level": 0, "topics": wanted, "timeout_ms": 1000} | changes
        return Question(keys.LIST_OFFSETS, version, content)

    last = {"partition_index": 0, "timestamp": -1, "current_leader_epoch": -1}
    for version in versions(keys.LIST_OFFSETS):
        yield ask(version, [])
        yield ask(version, [("t6", [])])
        yield ask(version, [("t6", [last]), ("t6", [last])])
        yield ask(version, [("t6", [last, last | {"partition_index": 1}]), ("t5", [last, last, last])])
        yield ask(version, [("bad name", [last]), ("", [last]), ("t5", [last])])
        for replica in (0, 1, -2, -3):
            yield ask(version, [("t6", [last])], replica_id=replica)
        for timestamp in (-1, -2, -3, -4, -5, -6, -7, -100, 0, 1000, 1001, 1002, 2**62):
            for name in ("t6", "t5"):
                yield ask(version, [(name, [last | {"timestamp": timestamp}])])
                yield ask(version, [(name, [last | {"timestamp": timestamp}])], isolation_level=1)
        for epoch in (-2, 0, 1):
            if version >= 4:
                yield ask(version, [("t6", [last | {"current_leader_epoch": epoch}])])


def _epochs() -> Iterator[Question]:
    for version in versions(keys.OFFSET_FOR_LEADER_EPOCH):
        for replica in (-1, -2, 0, 1):
            for epoch, current in ((-2, -1), (0, -2), (MANY, -1), (0, 0)):
                wanted = {"partition": 0, "current_leader_epoch": current, "leader_epoch": epoch}
                for topics in (
                    [{"topic": "t6", "partitions": [wanted]}],
                    [{"topic": "t6", "partitions": [wanted, wanted]}, {"topic": "t5", "partitions": []}],
                    [{"topic": "bad name", "partitions": [wanted]}, {"topic": "t5", "partitions": [wanted]}],
                ):
                    content = {"replica_id": replica, "topics": topics}
                    yield Question(keys.OFFSET_FOR_LEADER_EPOCH, version, content)


def _metadata() -> Iterator[Question]:
    none = bytes(16)
    for version in versions(keys.METADATA):
        for wanted in (
            [("t6", none), ("t6", none)],
            [("", none)],
            [("x" * 250, none), (".", none), ("ä", none)],
            [("__consumer_offsets", none), ("__cluster_metadata", none)],
            [(None, none)] if version >= 10 else [],
            [("t6", none), (None, b"x" * 16), ("t6", b"y" * 16)] if version >= 12 else [],
            [(None, b"x" * 16)] if version >= 10 else [],
        ):
            content = {
                "topics": [{"name": name, "topic_id": topic_id} for name, topic_id in wanted],
                "allow_auto_topic_creation": True,
                "include_cluster_authorized_operations": False,
                "include_topic_authorized_operations": True,
            }
            if wanted or version == 0:
                yield Question(keys.METADATA, version, content)


_NAMED: Sequence[_Named] = (
    [],
    [("t6", [])],
    [("t6", [0, 0, -1])],
    [("t6", [0]), ("t6", [0])],
    [("", [0]), ("nope", [0]), ("bad name", [0])],
)


def _describe() -> Iterator[Question]:
    for version in versions(keys.DESCRIBE_LOG_DIRS):
        for named in _NAMED[1:]:
            topics = [{"topic": name, "partitions": numbers} for name, numbers in named]
            yield Question(keys.DESCRIBE_LOG_DIRS, version, {"topics": topics})
    for named in _NAMED:
        topics = [{"name": name, "partition_indexes": numbers} for name, numbers in named]
        yield Question(keys.DESCRIBE_PRODUCERS, 0, {"topics": topics})
    for cursor in (None, ("nope", 0), ("t5", -1), ("t5", 7), ("", 0), ("zzz", 0)):
        at = None if cursor is None else {"topic_name": cursor[0], "partition_index": cursor[1]}
        for names in ([], ["t5"], ["t5", "t6", "t5"], ["nope"], ["nope", "nope"], ["t5", "t5z", "__share_group_state"]):
            for limit in (-1, 1, 2, 2000):
                wanted = [{"name": name} for name in names]
                content = {"topics": wanted, "response_partition_limit": limit, "cursor": at}
                yield Question(keys.DESCRIBE_TOPIC_PARTITIONS, 0, content)
    for version in versions(keys.DESCRIBE_CONFIGS):
        one = {"resource_type": 2, "resource_name": "t6", "configuration_keys": ["retention.ms", "retention.ms"]}
        odd = one | {"resource_type": 77}
        for resources in ([], [one, one], [one, one | {"resource_name": "nope"}], [one, odd]):
            flags = {"include_synonyms": False, "include_documentation": False}
            yield Question(keys.DESCRIBE_CONFIGS, version, {"resources": resources, **flags})


def _one_node() -> Iterator[Question]:
    for version in versions(keys.ELECT_LEADERS):
        for kind in (0, 1) if version else (0,):
            for named in _NAMED:
                for timeout_ms in (1000, 0):
                    topics = [{"topic": name, "partitions": numbers} for name, numbers in named]
                    content = {"election_type": kind, "topic_partitions": topics, "timeout_ms": timeout_ms}
                    if timeout_ms or named:
                        yield Question(keys.ELECT_LEADERS, version, content)
    for version in versions(keys.ALTER_PARTITION_REASSIGNMENTS):
        for replicas in ([], [1, 2], [-1], [1]):
            for named in _NAMED:
                for timeout_ms in (1000, 0):
                    wanted = [
                        {
                            "name": name,
                            "partitions": [{"partition_index": i, "replicas": replicas} for i in numbers],
                        }
                        for name, numbers in named
                    ]
                    flags = {"timeout_ms": timeout_ms, "allow_replication_factor_change": False}
                    if timeout_ms or named:
                        yield Question(keys.ALTER_PARTITION_REASSIGNMENTS, version, {"topics": wanted, **flags})
    for named in _NAMED:
        topics = [{"name": name, "partition_indexes": numbers} for name, numbers in named]
        yield Question(keys.LIST_PARTITION_REASSIGNMENTS, 0, {"timeout_ms": 1000, "topics": topics})


def _delete_topics() -> Iterator[Question]:
    for version in (1, 3, 5):
        for names in ([], ["u2", "u2"], ["nope", "u2a", "nope"], ["", "bad name", "x" * 250], ["__cluster_metadata"]):
            for timeout_ms in (0, 5000):
                yield Question(keys.DELETE_TOPICS, version, {"topic_names": names, "timeout_ms": timeout_ms})
    none, unknown = bytes(16), b"q" * 16
    for topics in (
        [],
        [("u4", none), ("u4", none)],
        [("u4", none), ("nope", none)],
        [(None, unknown), (None, unknown)],
        [("u7", none), ("u7", unknown)],
        [("u7", none), (None, none)],
        [("", none), ("bad name", none)],
        [("u7", unknown), ("u7b", none)],
    ):
        wanted = [{"name": name, "topic_id": topic_id} for name, topic_id in topics]
        yield Question(keys.DELETE_TOPICS, 6, {"topics": wanted, "timeout_ms": 5000})
    left = Question(keys.METADATA, 12, {"topics": None, "allow_auto_topic_creation": False})
    yield left._replace(
        content={
            **left.content,
            "include_cluster_authorized_operations": False,
            "include_topic_authorized_operations": False,
        }
    )
