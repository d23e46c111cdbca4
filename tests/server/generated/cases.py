"""Cases: short conversations of one to four requests, made from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from octavo.broker.wire import api_keys as keys
from octavo.broker.wire.api_keys import APIS
from tests.server.generated.batches import some_records
from tests.server.generated.maker import Maker
from tests.server.generated.members import WITH_OWN_TOPIC, at_home, before
from tests.server.generated.step import Step
from tests.server.generated.symbols import TopicId

_ODDS: Final = (0.0, 0.0, 0.05, 0.1, 0.25)
# Changes that all cases would see, and a request that is not the same for both brokers: their bytes are not changed.
_WIDE: Final = {
    keys.ALTER_REPLICA_LOG_DIRS,
    keys.UPDATE_FEATURES,
    keys.ALTER_CLIENT_QUOTAS,
    keys.ALTER_USER_SCRAM_CREDENTIALS,
}


# What is asked of groups by their ids.
_OF_GROUPS: Final = {
    keys.OFFSET_COMMIT,
    keys.OFFSET_FETCH,
    keys.JOIN_GROUP,
    keys.HEARTBEAT,
    keys.LEAVE_GROUP,
    keys.SYNC_GROUP,
    keys.DESCRIBE_GROUPS,
    keys.DELETE_GROUPS,
    keys.OFFSET_DELETE,
    keys.CONSUMER_GROUP_HEARTBEAT,
    keys.CONSUMER_GROUP_DESCRIBE,
}


@dataclass
class Case:
    """A conversation on a new connection."""

    number: int
    api_key: int
    version: int
    steps: list[Step] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)  # to delete afterwards


def every_version() -> list[tuple[int, int]]:
    """Return all APIs with all their versions. One is missing, by which Kafka throws out its only broker."""
    return [
        (key, version)
        for key, api in APIS.items()
        for version in range(api.first, api.last + 1)
        if key != keys.UNREGISTER_BROKER
    ]


def cases(seed: int, count: int) -> Iterator[Case]:
    """Return as many cases. All APIs and versions take their turns."""
    order = every_version()
    random.Random(seed).shuffle(order)
    for number in range(count):
        yield make_case(seed, number, *order[number % len(order)])


def make_case(seed: int, number: int, api_key: int, version: int) -> Case:
    """Return one case."""
    rng = random.Random(f"{seed} {number}")
    maker = Maker(rng, number, rng.choice(_ODDS))
    case = Case(number, api_key, version)
    prepare = _PREPARATIONS.get(api_key)
    if prepare is not None:
        case.steps += prepare(maker)
    case.steps += before(maker, api_key)
    for _ in range(rng.choice((1, 1, 2)) if len(case.steps) < 2 and api_key != keys.JOIN_GROUP else 1):
        case.steps.append(_tried(maker, api_key, version))
    if api_key == keys.FETCH and version >= 7 and rng.random() < 0.5:
        _make_session(maker, case, version)
    follow = _FOLLOWERS.get(api_key)
    if follow is not None:
        case.steps += follow(maker)
    case.topics = sorted({*maker.own, *(f"{maker.prefix}{number}" for number in range(4))}) if api_key in _OWN else []
    return case


def _tried(maker: Maker, api_key: int, version: int) -> Step:
    content = maker.request(api_key, version)
    if "resources" in content and any(each.get("resource_type") != 2 for each in content["resources"]):
        content["validate_only"] = True  # others would see what is changed
    if api_key == keys.PRODUCE and content["transactional_id"] is not None and _may_be_transactional(content):
        content["transactional_id"] = None  # transactions are compared by sequences, step by step
    if api_key == keys.ADD_PARTITIONS_TO_TXN and not content.get("transactions", True):
        return _tried(maker, api_key, version)  # to no transaction at all Kafka does not answer
    if api_key == keys.UPDATE_FEATURES:  # of several errors Kafka tells that of a hash map's first
        content["feature_updates"] = content["feature_updates"][:1]
    if api_key == keys.ALTER_CONFIGS:  # to a resource that is named twice Kafka does not answer at all
        content["resources"] = [
            *{(each["resource_type"], each["resource_name"]): each for each in content["resources"]}.values()
        ]
    if api_key == keys.CONSUMER_GROUP_HEARTBEAT and not maker.odd(0.3):
        _join_or_go_on(maker, content)
    if api_key in _OF_GROUPS:
        _own_groups(maker, content)
    at_home(maker, api_key, content)
    if api_key == keys.WRITE_TXN_MARKERS:  # to a partition that is named twice Kafka does not answer at all
        for marker in content["markers"]:
            _name_once(marker["topics"])
    step = Step(api_key, version, content, is_tried=True)
    if maker.odd(0.3):
        step.damage = (maker.rng.choice(_DAMAGES[: 3 if api_key in _OWN | _WIDE else 5]), maker.rng.getrandbits(16))
    return step


def _name_once(topics: list[dict[str, Any]]) -> None:
    seen: set[tuple[str, int]] = set()
    for topic in topics:
        new = [each for each in dict.fromkeys(topic["partition_indexes"]) if (topic["name"], each) not in seen]
        topic["partition_indexes"] = new
        seen |= {(topic["name"], each) for each in new}


def _join_or_go_on(maker: Maker, content: dict[str, Any]) -> None:
    """Have a heartbeat be one that gets to the coordinator: chance alone hardly ever makes one."""
    content |= {"group_id": "g", "member_id": "m", "instance_id": None, "rack_id": None}
    content["server_assignor"] = maker.rng.choice((None, "uniform", "range"))
    if maker.rng.random() < 0.5:
        content |= {"member_epoch": 0, "rebalance_timeout_ms": 60_000, "topic_partitions": []}
        content["subscribed_topic_names"] = content["subscribed_topic_names"] or []
    else:
        content["member_epoch"] = maker.rng.choice((-1, 1, 2))


def _own_groups(maker: Maker, content: dict[str, Any]) -> None:
    """Rename groups, because other cases are asked at the same time."""

    def own(group_id: str) -> str:
        return group_id and f"{maker.prefix}{group_id[:20]}"

    for name in ("groups", "groups_names", "group_ids"):
        if name in content:
            content[name] = [
                {**each, "group_id": own(each["group_id"])} if isinstance(each, dict) else own(each)
                for each in content[name]
            ]
    if "group_id" in content:
        content["group_id"] = own(content["group_id"])
    if "session_timeout_ms" in content and not maker.odd(0.3):
        content["session_timeout_ms"] = 10_000


def _may_be_transactional(content: dict[str, Any]) -> bool:
    records = [str(each["records"]) for topic in content["topic_data"] for each in topic["partition_data"]]
    return any("attributes" in each or "flip" in each for each in records)


# What is done to bodies. Only readers get bytes that are changed: they might delete something otherwise.
_DAMAGES: Final = ("trailing", "cut", "tagged", "flip", "byte")


def damaged(body: bytes, damage: tuple[str, int] | None, *, flexible: bool) -> bytes:
    """Return the body of a request with what is done to it."""
    if damage is None or not body:
        return body
    kind, number = damage
    at = number % len(body)
    match kind:
        case "trailing":
            return body + bytes(1 + number % 9)
        case "cut":
            return body[:at]
        case "flip":
            return body[:at] + bytes((body[at] ^ (1 << number % 8),)) + body[at + 1 :]
        case "byte":
            return body[:at] + bytes(((0, 255, 127, 128)[number % 4],)) + body[at + 1 :]
    if flexible and body[-1] == 0:  # the last byte is the number of tagged fields
        return body[:-1] + b"\x02\x64\x03abc\xe8\x07\x00"
    return body


def _create(maker: Maker) -> list[Step]:
    """Create a topic of three partitions for this case."""
    from tests.server.generated.values import CONFIGS

    name = f"{maker.prefix}0"
    maker.own.append(name)
    configs = []
    if maker.rng.random() < 0.4:
        chosen = maker.rng.choice(("cleanup.policy", "max.message.bytes", "message.timestamp.type", "compression.type"))
        configs.append({"name": chosen, "value": maker.rng.choice(CONFIGS[chosen][0])})
    topic = {"name": name, "num_partitions": 3, "replication_factor": 1, "assignments": [], "configs": configs}
    return [Step(keys.CREATE_TOPICS, 7, {"topics": [topic], "timeout_ms": 30_000, "validate_only": False})]


def _create_and_fill(maker: Maker) -> list[Step]:
    steps = _create(maker)
    data = [{"index": number, "records": some_records(maker.rng, 0.0, keyed=True)} for number in (0, 1)]
    content = {"transactional_id": None, "acks": -1, "timeout_ms": 5000}
    topic = {"topic_id": TopicId(maker.own[0]), "partition_data": data}
    return [*steps, Step(keys.PRODUCE, 13, {**content, "topic_data": [topic]})]


def _create_for_producer(maker: Maker) -> list[Step]:
    steps = _create(maker)
    if maker.rng.random() < 0.4:
        ids = {"transactional_id": None, "transaction_timeout_ms": 1000, "producer_id": -1, "producer_epoch": -1}
        steps.append(Step(keys.INIT_PRODUCER_ID, 4, ids))
    return steps


def _make_session(maker: Maker, case: Case, version: int) -> None:
    """Let the last fetch open a session, and go on with it."""
    case.steps[-1].content |= {"session_id": 0, "session_epoch": 0}
    for epoch in range(1, maker.rng.choice((2, 3))):
        maker.session_epoch = epoch
        case.steps.append(_tried(maker, keys.FETCH, version))


def _describe(maker: Maker) -> list[Step]:
    wanted = [{"resource_type": 2, "resource_name": name, "configuration_keys": None} for name in maker.own]
    return [
        Step(keys.DESCRIBE_CONFIGS, 4, {"resources": wanted, "include_synonyms": True, "include_documentation": False})
    ]


def _look(maker: Maker) -> list[Step]:
    names = maker.own or [f"{maker.prefix}{number}" for number in range(4)]
    asks = {"allow_auto_topic_creation": False, "include_topic_authorized_operations": False}
    return [Step(keys.METADATA, 12, {"topics": [{"name": name, "topic_id": bytes(16)} for name in names], **asks})]


def _read_back(maker: Maker) -> list[Step]:
    """Look what is in the partitions now."""
    name = maker.own[0]
    if maker.rng.random() < 0.3:
        return [Step(keys.DESCRIBE_PRODUCERS, 0, {"topics": [{"name": name, "partition_indexes": [0, 1, 2]}]})]
    if maker.rng.random() < 0.4:
        asked = [
            {"partition_index": number, "timestamp": time, "current_leader_epoch": -1}
            for number, time in enumerate(maker.rng.sample((-1, -2, -3, 0, 1_700_000_000_001), 3))
        ]
        content = {"replica_id": -1, "isolation_level": 0, "topics": [{"name": name, "partitions": asked}]}
        return [Step(keys.LIST_OFFSETS, 8, content)]
    wanted = {"current_leader_epoch": -1, "fetch_offset": 0, "last_fetched_epoch": -1, "log_start_offset": -1}
    partitions = [wanted | {"partition": number, "partition_max_bytes": 1 << 20} for number in range(3)]
    sizes = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 22}
    content = {"replica_id": -1, **sizes, "isolation_level": 0, "session_id": 0, "session_epoch": -1}
    content |= {"topics": [{"topic": name, "partitions": partitions}], "forgotten_topics_data": [], "rack_id": ""}
    return [Step(keys.FETCH, 12, content)]


_PREPARATIONS: Final = {
    keys.PRODUCE: _create_for_producer,
    keys.DELETE_RECORDS: _create_and_fill,
    keys.DELETE_TOPICS: _create,
    keys.CREATE_PARTITIONS: _create,
    keys.ALTER_CONFIGS: _create,
    keys.INCREMENTAL_ALTER_CONFIGS: _create,
    **dict.fromkeys(WITH_OWN_TOPIC, _create),
}
_FOLLOWERS: Final = {
    keys.PRODUCE: _read_back,
    keys.DELETE_RECORDS: _read_back,
    keys.CREATE_TOPICS: _look,
    keys.DELETE_TOPICS: _look,
    keys.CREATE_PARTITIONS: _look,
    keys.ALTER_CONFIGS: _describe,
    keys.INCREMENTAL_ALTER_CONFIGS: _describe,
}
_OWN: Final = {*_PREPARATIONS, keys.CREATE_TOPICS}
