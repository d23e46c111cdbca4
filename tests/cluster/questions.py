"""Questions to which all brokers of a cluster have the same answer, because they know it from the controllers."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

from octavo.broker.wire import api_keys as keys
from octavo.broker.wire.messages import read_response, write_request
from tests.server.raw import RawClient, header

NO_ID: Final = bytes(16)

# What may differ between two brokers, or between two questions to one broker.
_OWN: Final = {
    "throttle_time_ms",
    "controller_id",  # any broker that is alive
    "finalized_features_epoch",
    "high_watermark",  # of the metadata, which grow by themselves
    "log_end_offset",
    "last_fetch_timestamp",
    "last_caught_up_timestamp",
}
_MAY_FORBID: Final = 4  # the first version of Metadata whose clients can forbid to create topics
_TELLS_IDS: Final = 7  # the first version of CreateTopics that answers with ids, which differ each time
_ORDERED: Final = {"replica_nodes", "isr_nodes"}


class Question(NamedTuple):
    """A request."""

    api_key: int
    version: int
    content: dict[str, Any]

    def __str__(self) -> str:
        return f"{keys.MEMBER_APIS[self.api_key].name} {self.version} {self.content}"


class Asking:
    """A client of one broker, which asks nobody else."""

    def __init__(self, address: str) -> None:
        self._client = RawClient(address)

    def answer(self, question: Question) -> SimpleNamespace:
        """Return the whole answer."""
        api_key, version, content = question
        flexible = version >= keys.MEMBER_APIS[api_key].flexible
        frame = header(api_key, version, flexible=flexible) + write_request(api_key, version, content)
        answer = self._client.ask(frame)
        assert answer is not None, f"the connection was closed after {question}"
        begin = 5 if flexible and api_key != keys.API_VERSIONS else 4
        return read_response(api_key, version, memoryview(answer)[begin:])

    def plain(self, question: Question) -> Any:
        """Return the answer without what may differ, and lists in an order of ours."""
        return _plain(self.answer(question))

    def close(self) -> None:
        self._client.socket.close()


def _plain(value: Any, name: str = "") -> Any:
    if isinstance(value, SimpleNamespace):
        return {key: _plain(each, key) for key, each in sorted(vars(value).items()) if key not in _OWN}
    if isinstance(value, tuple):
        several = [_plain(each) for each in value]
        return several if name in _ORDERED else sorted(several, key=repr)
    return value


def differences(ours: Any, theirs: Any, path: str = "") -> Iterator[str]:
    """What is not the same in two answers."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted({*ours, *theirs}):
            yield from differences(ours.get(key, "missing"), theirs.get(key, "missing"), f"{path}.{key}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(one, other, f"{path}[{number}]")
    elif ours != theirs:
        yield f"{path}: {str(ours)[:300]}, and Kafka: {str(theirs)[:300]}"


def _topic(name: str | None, topic_id: bytes = NO_ID) -> dict[str, Any]:
    return {"name": name, "topic_id": topic_id}


def about_topics(topics: dict[str, bytes]) -> Iterator[Question]:
    """Questions about topics with these names and ids, and some that do not exist."""
    flags = {"allow_auto_topic_creation": False, "include_topic_authorized_operations": True}
    names = [*topics, "missing", "bad/name"]
    for version in range(14):
        asked = names if version >= _MAY_FORBID else topics
        yield Question(keys.METADATA, version, {"topics": [_topic(name) for name in asked], **flags})
        yield Question(keys.METADATA, version, {"topics": None if version else [], **flags})
    for version in (12, 13):
        ids = [_topic(None, each) for each in (*topics.values(), b"0123456789abcdef")]
        yield Question(keys.METADATA, version, {"topics": ids, **flags})
    several = [{"name": name} for name in names]
    cursor = {"topic_name": next(iter(topics)), "partition_index": 1}
    for limit in (1, 2, 2000):
        for start in (None, cursor):
            wanted: dict[str, Any] = {"topics": several, "response_partition_limit": limit, "cursor": start}
            yield Question(keys.DESCRIBE_TOPIC_PARTITIONS, 0, wanted)
            yield Question(keys.DESCRIBE_TOPIC_PARTITIONS, 0, {**wanted, "topics": []})
    for version in (1, 4):
        for name in names:
            resource = {"resource_type": 2, "resource_name": name, "configuration_keys": None}
            wanted = {"resources": [resource], "include_synonyms": True, "include_documentation": False}
            yield Question(keys.DESCRIBE_CONFIGS, version, wanted)
    yield Question(keys.LIST_PARTITION_REASSIGNMENTS, 0, {"timeout_ms": 5000, "topics": None})


def about_the_cluster() -> Iterator[Question]:
    """Questions about brokers, controllers, features, coordinators and settings."""
    for version in range(3):
        for endpoint_type in (1, 2, 3) if version else (1,):
            for fenced in (False, True) if version == 2 else (False,):
                wanted = {"include_cluster_authorized_operations": True, "endpoint_type": endpoint_type}
                yield Question(keys.DESCRIBE_CLUSTER, version, {**wanted, "include_fenced_brokers": fenced})
    for version in range(7):
        for key_type in (0, 1, 3) if version else (0,):
            found = {"key": "some", "key_type": key_type, "coordinator_keys": ["some", "other", ""]}
            yield Question(keys.FIND_COORDINATOR, version, found)
    shared = [
        "group:AAAAAAAAAAAAAAAAAAAAFA:0",
        "a:b:AAAAAAAAAAAAAAAAAAAAFA:+7",
        "group:AAAAAAAAAAAAAAAAAAAAFA",
        "group",
    ]
    for version in (5, 6):
        yield Question(keys.FIND_COORDINATOR, version, {"key_type": 2, "coordinator_keys": shared})
    metadata = [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
    for version in range(3):
        yield Question(keys.DESCRIBE_QUORUM, version, {"topics": metadata})
        yield Question(keys.DESCRIBE_QUORUM, version, {"topics": []})
    for kinds in ([], [2], [4], [8], [16], [32], [77]):
        yield Question(keys.LIST_CONFIG_RESOURCES, 1, {"resource_types": kinds})
    everyone = {"resource_type": 4, "resource_name": "", "configuration_keys": None}
    yield Question(keys.DESCRIBE_CONFIGS, 4, {"resources": [everyone], "include_synonyms": True})
    yield Question(keys.DESCRIBE_CLIENT_QUOTAS, 1, {"components": [], "strict": False})
    yield Question(keys.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, {"users": None})
    yield Question(keys.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, {"users": [{"name": "nobody"}]})
    anything = {"resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1}
    rule = {"principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1}
    yield Question(keys.DESCRIBE_ACLS, 3, {**anything, **rule})
    yield Question(keys.DESCRIBE_DELEGATION_TOKEN, 3, {"owners": None})


def that_change_nothing(topic: str) -> Iterator[Question]:
    """Requests for the controller that are refused, or only checked; the topic exists."""
    new = {"num_partitions": 2, "replication_factor": 1, "assignments": [], "configs": []}
    odd = [{"name": "retention.ms", "value": "x"}]
    far = [{"partition_index": 0, "broker_ids": [77]}]
    topics = [
        {"name": topic, **new},
        {"name": "only-checked", **new},
        {"name": "bad/name", **new},
        {"name": "too-many", **new, "replication_factor": 7},
        {"name": "odd", **new, "configs": odd},
        {"name": "far", **new, "num_partitions": -1, "replication_factor": -1, "assignments": far},
    ]
    for version in range(2, 8):
        checked = [each for each in topics if version < _TELLS_IDS or each["name"] != "only-checked"]
        yield Question(keys.CREATE_TOPICS, version, {"topics": checked, "timeout_ms": 5000, "validate_only": True})
    for version in range(1, 7):
        missing = {"topics": [_topic("missing")], "topic_names": ["missing"], "timeout_ms": 5000}
        yield Question(keys.DELETE_TOPICS, version, missing)
    more = [{"name": name, "count": 1, "assignments": None} for name in (topic, "missing")]
    for version in range(4):
        yield Question(keys.CREATE_PARTITIONS, version, {"topics": more, "timeout_ms": 5000, "validate_only": True})
    for version in range(2):
        yield Question(keys.INCREMENTAL_ALTER_CONFIGS, version, {"resources": _changes(topic), "validate_only": True})
    for version in range(3):  # Kafka does not answer at all if it refuses a part of it
        some = [each for each in _changes(topic) if each["resource_name"] in (topic, "missing")]
        yield Question(keys.ALTER_CONFIGS, version, {"resources": some, "validate_only": True})
    places = [{"topic": topic, "partitions": [0, 99]}, {"topic": "missing", "partitions": [0]}]
    for version in range(3):
        elected = {"election_type": 0, "topic_partitions": places, "timeout_ms": 5000}
        yield Question(keys.ELECT_LEADERS, version, elected)
    moved = [
        {"name": topic, "partitions": [{"partition_index": 0, "replicas": None}]},
        {"name": "missing", "partitions": [{"partition_index": 0, "replicas": [1]}]},
    ]
    yield Question(keys.ALTER_PARTITION_REASSIGNMENTS, 1, {"timeout_ms": 5000, "topics": moved})
    raised = [{"feature": "metadata.version", "max_version_level": 99, "upgrade_type": 1}]
    for version in range(3):
        updates = {"timeout_ms": 5000, "feature_updates": raised, "validate_only": True}
        yield Question(keys.UPDATE_FEATURES, version, updates)
    entity = [{"entity_type": "user", "entity_name": "somebody"}]
    limits = [{"key": "nonsense", "value": 1.0, "remove": False}]
    quotas = {"entries": [{"entity": entity, "ops": limits}], "validate_only": True}
    yield Question(keys.ALTER_CLIENT_QUOTAS, 1, quotas)
    gone = {"deletions": [{"name": "nobody", "mechanism": 1}], "upsertions": []}
    yield Question(keys.ALTER_USER_SCRAM_CREDENTIALS, 0, gone)
    yield Question(keys.UNREGISTER_BROKER, 0, {"broker_id": 99})
    yield Question(keys.REMOVE_RAFT_VOTER, 0, {"cluster_id": "x", "voter_id": 99, "voter_directory_id": NO_ID})
    rule = {"resource_type": 2, "resource_name": "t", "resource_pattern_type": 3, "principal": "User:x", "host": "*"}
    yield Question(keys.CREATE_ACLS, 3, {"creations": [{**rule, "operation": 3, "permission_type": 3}]})
    yield Question(keys.CREATE_DELEGATION_TOKEN, 3, {"renewers": [], "max_lifetime_ms": 1})


def _changes(topic: str) -> list[dict[str, Any]]:
    def resource(kind: int, name: str, key: str, value: str | None) -> dict[str, Any]:
        configs = [{"name": key, "config_operation": 0, "value": value}]
        return {"resource_type": kind, "resource_name": name, "configs": configs}

    return [
        resource(2, topic, "retention.ms", "1000"),
        resource(2, "missing", "retention.ms", "1000"),
        resource(2, "other", "retention.ms", None),
        resource(4, "", "node.id", "7"),
        resource(4, "", "log.cleaner.threads", "2"),
        resource(4, "x", "log.cleaner.threads", "2"),
        resource(32, "some-group", "consumer.session.timeout.ms", "50000"),
        resource(77, "some", "thing", "1"),
    ]


def for_coordinators(topic: str) -> Iterator[Question]:
    """Requests for the coordinators of groups and transactions, in all versions; the topic exists."""
    who = {"group_id": "some", "member_id": "me", "generation_id": 1, "group_instance_id": None}
    protocols = {"protocol_type": "consumer", "protocols": [{"name": "range", "metadata": b""}]}
    times = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000}
    offset = {"partition_index": 0, "committed_offset": 3, "committed_metadata": ""}
    offsets = [{"name": name, "partitions": [offset]} for name in (topic, "missing")]
    txn = {"transactional_id": "some", "producer_id": 5, "producer_epoch": 0}
    asked = [{"name": topic, "partition_indexes": [0]}]
    several = [{"group_id": name, "topics": asked} for name in ("some", "other")]
    places = [{"name": topic, "partitions": [0]}]
    contents: dict[int, dict[str, Any]] = {
        keys.JOIN_GROUP: {**who, **protocols, **times},
        keys.SYNC_GROUP: {**who, "protocol_type": "consumer", "protocol_name": "range", "assignments": []},
        keys.HEARTBEAT: who,
        keys.LEAVE_GROUP: {**who, "members": [{"member_id": "me", "group_instance_id": None}]},
        keys.OFFSET_FETCH: {"group_id": "some", "topics": asked, "groups": several},
        keys.DESCRIBE_GROUPS: {"groups": ["some", "other"], "include_authorized_operations": True},
        keys.DELETE_GROUPS: {"groups_names": ["some", "other"]},
        keys.OFFSET_DELETE: {"group_id": "some", "topics": [{"name": topic, "partitions": [{"partition_index": 0}]}]},
        keys.CONSUMER_GROUP_DESCRIBE: {"group_ids": ["some"], "include_authorized_operations": True},
        keys.ADD_OFFSETS_TO_TXN: {**txn, "group_id": "some"},
        keys.END_TXN: {**txn, "committed": True},
        keys.INIT_PRODUCER_ID: {**txn, "transaction_timeout_ms": 1000, "producer_id": -1, "producer_epoch": -1},
        keys.TXN_OFFSET_COMMIT: {**txn, **who, "topics": offsets},
        keys.DESCRIBE_TRANSACTIONS: {"transactional_ids": ["some", "other"]},
        keys.LIST_TRANSACTIONS: {"state_filters": ["Odd"], "producer_id_filters": []},
        keys.LIST_GROUPS: {"states_filter": [], "types_filter": []},
        keys.ADD_PARTITIONS_TO_TXN: {
            "v_3_and_below_transactional_id": "some",
            "v_3_and_below_producer_id": 5,
            "v_3_and_below_producer_epoch": 0,
            "v_3_and_below_topics": places,
            "transactions": [{**txn, "verify_only": False, "topics": places}],
        },
    }
    for api_key, content in contents.items():
        api = keys.APIS[api_key]
        for version in range(api.first, api.last + 1):
            yield Question(api_key, version, content)
    for version in range(2, 10):
        committed = [{"name": topic, "partitions": [offset]}]
        wanted = {"group_id": "some", "generation_id_or_member_epoch": -1, "member_id": "", "topics": committed}
        yield Question(keys.OFFSET_COMMIT, version, wanted)
    for version in (0, 1):
        beat = {"group_id": "some", "member_id": "m" * 22, "member_epoch": 1, "rebalance_timeout_ms": -1}
        yield Question(keys.CONSUMER_GROUP_HEARTBEAT, version, beat)
