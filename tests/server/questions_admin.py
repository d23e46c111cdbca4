"""Requests about the cluster as a whole: quotas, credentials, features, the quorum, access rights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from octavo.broker.wire import api_keys as keys
from tests.server.question import Question, versions


def admin_questions() -> Iterator[Question]:
    """All of them. There is a topic t6."""
    for each in (
        _list_config_resources,
        _log_dirs,
        _quorum,
        _strangers,
        _features,
        _sasl,
        _acls,
        _tokens,
        _scram,
        _quotas,
    ):
        yield from each()


def _list_config_resources() -> Iterator[Question]:
    yield Question(keys.LIST_CONFIG_RESOURCES, 0, {})
    for kinds in ([], [2], [4], [8], [16], [32], [4, 2], [2, 2], [99], [0], [-1], [2, 99]):
        yield Question(keys.LIST_CONFIG_RESOURCES, 1, {"resource_types": kinds})


def _log_dirs() -> Iterator[Question]:
    def to(path: str, topic: str, *partitions: int) -> dict[str, Any]:
        return {"path": path, "topics": [{"name": topic, "partitions": partitions}]}

    for version in versions(keys.ALTER_REPLICA_LOG_DIRS):
        for folders in (
            [],
            [to("/nope", "t6", 0)],
            [to("nope", "t6", 0, 9)],
            [to("", "nope", 0, 0)],
            [to("/", "bad name", 0), to("/nope", "t6", -1)],
        ):
            yield Question(keys.ALTER_REPLICA_LOG_DIRS, version, {"dirs": folders})


def _quorum() -> Iterator[Question]:
    own = "__cluster_metadata"
    wanted: Sequence[Sequence[tuple[str, Sequence[int]]]] = (
        [(own, [0])],
        [],
        [("t6", [0])],
        [(own, [1])],
        [(own, [])],
        [(own, [0, 1])],
        [(own, [0]), ("t6", [0])],
    )
    for version in versions(keys.DESCRIBE_QUORUM):
        for topics in wanted:
            content = [
                {"topic_name": name, "partitions": [{"partition_index": number} for number in numbers]}
                for name, numbers in topics
            ]
            yield Question(keys.DESCRIBE_QUORUM, version, {"topics": content})


def _strangers() -> Iterator[Question]:
    for version in versions(keys.UNREGISTER_BROKER):
        for number in (2, -1, 0x7FFFFFFF):
            yield Question(keys.UNREGISTER_BROKER, version, {"broker_id": number})


def _features() -> Iterator[Question]:
    feature = "metadata.version"
    upgrade, safe, unsafe = 1, 2, 3
    first = {"feature": feature, "max_version_level": 30, "upgrade_type": upgrade}
    yield Question(keys.UPDATE_FEATURES, 1, {"timeout_ms": 5000, "feature_updates": [first], "validate_only": False})
    for version in versions(keys.UPDATE_FEATURES):
        for only_check in (False, True) if version else (False,):
            for updates in (
                [],
                [("nope", 1, upgrade)],
                [("nope", 0, safe)],
                [("", 1, upgrade)],
                [(feature, 30, upgrade)],
                [(feature, 30, safe)],
                [(feature, 30, upgrade), (feature, 30, upgrade)],
                [(feature, 99, upgrade)],
                [(feature, 3, safe)],
                [(feature, 0, safe)],
                [(feature, -1, upgrade)],
                [(feature, 29, upgrade)],
                [(feature, 29, safe)],
                [(feature, 7, unsafe)],
                [(feature, 29, 9)],
                [(feature, 29, 0)],
                [("nope", 1, upgrade), (feature, 30, upgrade)],
            ):
                if version == 0 and any(kind not in (upgrade, safe) for _, _, kind in updates):
                    continue
                yield _update(version, updates, only_check=only_check)


def _update(version: int, updates: Sequence[tuple[str, int, int]], *, only_check: bool) -> Question:
    content = {
        "timeout_ms": 5000,
        "feature_updates": [
            {"feature": name, "max_version_level": level, "upgrade_type": kind, "allow_downgrade": kind == 2}
            for name, level, kind in updates
        ],
        "validate_only": only_check,
    }
    return Question(keys.UPDATE_FEATURES, version, content)


def _sasl() -> Iterator[Question]:
    for version in versions(keys.SASL_HANDSHAKE):
        for mechanism in ("PLAIN", "", "nope"):
            yield Question(keys.SASL_HANDSHAKE, version, {"mechanism": mechanism})
    for version in versions(keys.SASL_AUTHENTICATE):
        for data in (b"", b"\0a\0b", b"x" * 1000):
            yield Question(keys.SASL_AUTHENTICATE, version, {"auth_bytes": data})


def _acls() -> Iterator[Question]:
    kinds = {"operation": 3, "permission_type": 3}
    named = {"principal_filter": None, "host_filter": None, "resource_name_filter": None}
    wanted = {"resource_type_filter": 2, "pattern_type_filter": 3, **named, **kinds}
    right = {
        "resource_type": 2,
        "resource_name": "t6",
        "resource_pattern_type": 3,
        "principal": "User:a",
        "host": "*",
        **kinds,
    }
    unknown: list[dict[str, Any]] = [{"operation": 0}, {"permission_type": 0}, {"operation": 99}, {"operation": -1}]
    of_filters: list[dict[str, Any]] = [{}, {"resource_type_filter": 0}, {"pattern_type_filter": 0}, *unknown]
    of_rights: list[dict[str, Any]] = [
        {},
        {"resource_type": 0},
        {"resource_pattern_type": 0},
        {"principal": "nobody"},
        *unknown,
    ]
    for version in versions(keys.DESCRIBE_ACLS):
        for change in of_filters:
            yield Question(keys.DESCRIBE_ACLS, version, wanted | change)
            yield Question(keys.DELETE_ACLS, version, {"filters": [wanted, wanted | change]})
        for change in of_rights:
            yield Question(keys.CREATE_ACLS, version, {"creations": [right, right | change]})
        yield Question(keys.CREATE_ACLS, version, {"creations": []})
        yield Question(keys.DELETE_ACLS, version, {"filters": []})


def _tokens() -> Iterator[Question]:
    for version in versions(keys.CREATE_DELEGATION_TOKEN):
        for kind, name in ((None, None), ("User", "o"), ("User", ""), (None, "o")):
            for renewers in ([], [{"principal_type": "x", "principal_name": "y"}]):
                owner = {"owner_principal_type": kind, "owner_principal_name": name}
                content = {**owner, "renewers": renewers, "max_lifetime_ms": -1}
                yield Question(keys.CREATE_DELEGATION_TOKEN, version, content)
    for version in versions(keys.DESCRIBE_DELEGATION_TOKEN):
        for owners in (None, [], [{"principal_type": "User", "principal_name": "x"}]):
            yield Question(keys.DESCRIBE_DELEGATION_TOKEN, version, {"owners": owners})
    for version in versions(keys.RENEW_DELEGATION_TOKEN):
        for token in (b"", b"x", b"y" * 100):
            yield Question(keys.RENEW_DELEGATION_TOKEN, version, {"hmac": token, "renew_period_ms": -1})
            yield Question(keys.EXPIRE_DELEGATION_TOKEN, version, {"hmac": token, "expiry_time_period_ms": -1})


def _scram() -> Iterator[Question]:
    def describe(*users: str) -> Question:
        return Question(keys.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, {"users": [{"name": user} for user in users]})

    def alter(deletions: Sequence[dict[str, Any]], upsertions: Sequence[dict[str, Any]] = ()) -> Question:
        content = {"deletions": deletions, "upsertions": upsertions}
        return Question(keys.ALTER_USER_SCRAM_CREDENTIALS, 0, content)

    one = {"name": "a", "mechanism": 1}
    password = one | {"iterations": 4096, "salt": b"abc", "salted_password": b"x" * 32}
    yield Question(keys.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, {"users": None})
    for user in ("a", "", "ä"):
        yield describe(user)
    yield describe("a", "b", "a")
    changes: list[dict[str, Any]] = [{}, {"mechanism": 0}, {"mechanism": 9}, {"name": ""}]
    for change in changes:
        yield alter([one | change])
        yield alter([], [password | {"name": "b"} | change])
    changes = [{"iterations": 1}, {"iterations": 16385}, {"salt": b""}, {"salted_password": b"x"}]
    for change in changes:
        yield alter([], [password | change])
    yield alter([], [password, password | {"mechanism": 2}])
    yield alter([one], [password])
    yield alter([], [password | {"name": "c", "mechanism": 2}, password])
    yield alter([one, one | {"mechanism": 2}])
    yield describe()
    yield describe("c", "a", "nobody")
    yield alter([one, {"name": "c", "mechanism": 2}])
    yield describe()


def _quotas() -> Iterator[Question]:
    rate = ("producer_byte_rate", 1024.0)
    for version in versions(keys.ALTER_CLIENT_QUOTAS):
        for entity, operations in (
            *_good_quotas(),
            ([], [rate]),
            ([("zz", "x")], [rate]),
            ([("user", "x")], [("zz", 1.0)]),
            ([("user", "x")], [("zz", None)]),
            ([("user", "x")], [("producer_byte_rate", 1.5)]),
            ([("user", "x")], [("producer_byte_rate", 1e300)]),
            ([("user", "x")], [("consumer_byte_rate", -1.0)]),
            ([("user", "x")], [("request_percentage", 0.0)]),
            ([("user", "x")], [("connection_creation_rate", 1.0)]),
            ([("user", "x")], [rate, rate]),
            ([("user", "x"), ("user", "y")], [rate]),
            ([("user", "")], [rate]),
            ([("ip", "1.2.3.4"), ("user", "u")], [rate]),
            ([("ip", "no address")], [("connection_creation_rate", 5.0)]),
            ([("ip", "1.2.3.4")], [rate]),
            ([("ip", None)], [("connection_creation_rate", 1e10)]),
            ([("user", "nobody")], [("producer_byte_rate", None)]),
        ):
            yield _quota(version, (entity, operations))
            yield _quota(version, (entity, operations), only_check=True)
        twice = ([("user", "x")], [("producer_byte_rate", 9.0)])
        yield _quota(version, twice, twice, ([("user", None)], [("zz", 1.0)]))
        yield _quota(version)
    yield from _described_quotas()
    for version in versions(keys.ALTER_CLIENT_QUOTAS):
        gone = [(entity, [(key, None) for key, _ in operations]) for entity, operations in _good_quotas()]
        yield _quota(version, *gone)
        yield Question(keys.DESCRIBE_CLIENT_QUOTAS, version, {"components": [], "strict": False})


_Entity = Sequence[tuple[str, str | None]]
_Operations = Sequence[tuple[str, float | None]]


def _good_quotas() -> Sequence[tuple[_Entity, _Operations]]:
    return (
        ([("user", "u1")], [("producer_byte_rate", 1024.0), ("consumer_byte_rate", 5.0)]),
        ([("user", None)], [("request_percentage", 12.5)]),
        ([("client-id", "c1"), ("user", "u1")], [("controller_mutation_rate", 0.5)]),
        ([("client-id", "c1")], [("consumer_byte_rate", 5.0)]),
        ([("client-id", None), ("user", None)], [("producer_byte_rate", 7.0)]),
        ([("ip", "1.2.3.4")], [("connection_creation_rate", 5.0)]),
        ([("ip", None)], [("connection_creation_rate", 6.0)]),
        ([("ip", "localhost")], [("connection_creation_rate", 6.0)]),
    )


def _quota(version: int, *entries: tuple[_Entity, _Operations], only_check: bool = False) -> Question:
    """Alter quotas; None for a value removes it."""
    content = {
        "entries": [
            {
                "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity],
                "ops": [{"key": key, "value": value or 0.0, "remove": value is None} for key, value in operations],
            }
            for entity, operations in entries
        ],
        "validate_only": only_check,
    }
    return Question(keys.ALTER_CLIENT_QUOTAS, version, content)


def _described_quotas() -> Iterator[Question]:
    exact, default, every = 0, 1, 2
    for version in versions(keys.DESCRIBE_CLIENT_QUOTAS):
        for strict in (False, True):
            for parts in (
                [],
                [("user", exact, "u1")],
                [("user", exact, "nobody")],
                [("user", default, None)],
                [("user", every, None)],
                [("client-id", every, None)],
                [("user", every, None), ("client-id", exact, "c1")],
                [("user", default, None), ("client-id", default, None)],
                [("ip", every, None)],
                [("ip", default, None)],
                [("zz", every, None)],
                [("", every, None)],
                [("user", every, None), ("user", exact, "u1")],
                [("user", 9, None)],
                [("user", exact, None)],
                [("user", default, "x")],
                [("user", every, "x")],
                [("ip", every, None), ("user", every, None)],
            ):
                components = [{"entity_type": kind, "match_type": how, "match": name} for kind, how, name in parts]
                content = {"components": components, "strict": strict}
                yield Question(keys.DESCRIBE_CLIENT_QUOTAS, version, content)
