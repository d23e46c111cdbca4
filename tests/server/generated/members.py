"""Cases in which somebody is a member of a group or has a transaction, so that requests get to the coordinator."""

from __future__ import annotations

from typing import Any, Final

from octavo.broker.wire import api_keys as keys
from tests.server.generated.maker import Maker
from tests.server.generated.step import Step
from tests.server.generated.symbols import MemberId, ProducerId

_CLASSIC: Final = {
    keys.JOIN_GROUP,
    keys.SYNC_GROUP,
    keys.HEARTBEAT,
    keys.LEAVE_GROUP,
    keys.OFFSET_COMMIT,
}
_OFFSETS: Final = {keys.OFFSET_FETCH, keys.OFFSET_DELETE, keys.DELETE_GROUPS, keys.DESCRIBE_GROUPS}
_TRANSACTIONS: Final = {
    keys.ADD_PARTITIONS_TO_TXN,
    keys.ADD_OFFSETS_TO_TXN,
    keys.END_TXN,
    keys.WRITE_TXN_MARKERS,
    keys.TXN_OFFSET_COMMIT,
    keys.DESCRIBE_TRANSACTIONS,
}
WITH_OWN_TOPIC: Final = {keys.ADD_PARTITIONS_TO_TXN, keys.END_TXN, keys.WRITE_TXN_MARKERS}


def home(maker: Maker) -> str:
    """Return the group, and the transactional id, of a case."""
    return f"{maker.prefix}home"


def before(maker: Maker, api_key: int) -> list[Step]:
    """Return what is asked first, so that somebody is there."""
    group = home(maker)
    if api_key in _CLASSIC:
        return [_join(group), _sync(group)]
    if api_key in _OFFSETS:
        return [_commit(group)]
    if api_key == keys.CONSUMER_GROUP_DESCRIBE:
        return [_heartbeat(group)]
    if api_key not in _TRANSACTIONS:
        return []
    init = {"transactional_id": group, "transaction_timeout_ms": 60_000, "producer_id": -1, "producer_epoch": -1}
    steps = [Step(keys.INIT_PRODUCER_ID, 4, init)]
    if api_key in (keys.END_TXN, keys.DESCRIBE_TRANSACTIONS):
        steps.append(Step(keys.ADD_OFFSETS_TO_TXN, 3, {**_producer(group), "group_id": group}))
    if api_key == keys.TXN_OFFSET_COMMIT:
        steps.append(Step(keys.ADD_OFFSETS_TO_TXN, 3, {**_producer(group), "group_id": group}))
    return steps


def at_home(maker: Maker, api_key: int, content: dict[str, Any]) -> None:
    """Have a request be of somebody who is there; chance alone hardly ever makes one."""
    if maker.odd(0.5) or maker.rng.random() < 0.1:
        return
    group = home(maker)
    if api_key in _CLASSIC:
        known = {
            "group_id": group,
            "member_id": MemberId(),
            "group_instance_id": None,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "generation_id": 1,
            "generation_id_or_member_epoch": 1,
            "protocols": [{"name": "range", "metadata": b"m"}],
            "members": [{"member_id": MemberId(), "group_instance_id": None, "reason": None}],
        }
        content |= {name: value for name, value in known.items() if name in content}
    elif api_key in _OFFSETS or api_key == keys.CONSUMER_GROUP_DESCRIBE:
        for name in ("groups_names", "group_ids"):
            if name in content:
                content[name] = [group, *content[name]]
        if "group_id" in content:
            content["group_id"] = group
        if api_key == keys.DESCRIBE_GROUPS:
            content["groups"] = [group, *content["groups"]]
    elif api_key in _TRANSACTIONS:
        _transactional(maker, api_key, content)


def _transactional(maker: Maker, api_key: int, content: dict[str, Any]) -> None:
    group = home(maker)
    if api_key == keys.DESCRIBE_TRANSACTIONS:
        content["transactional_ids"] = [group, *content["transactional_ids"]]
    for each in content.get("markers") or ():
        each |= {
            "producer_id": ProducerId(),
            "producer_epoch": 1,
            "topics": _own_partitions(maker, "partition_indexes"),
        }
    for each in content.get("transactions") or ():
        each |= {**_producer(group), "topics": _own_partitions(maker, "partitions")}
    if "v3_and_below_topics" in content:
        content |= {f"v3_and_below_{name}": value for name, value in _producer(group).items()}
        content["v3_and_below_topics"] = _own_partitions(maker, "partitions")
    if "producer_id" in content:
        content |= _producer(group)
    if "group_id" in content:
        content["group_id"] = group
    if "generation_id" in content:
        content |= {"generation_id": -1, "member_id": "", "group_instance_id": None}


def _own_partitions(maker: Maker, name: str) -> list[dict[str, Any]]:
    numbers = maker.rng.choice(([0], [0, 1], [2, 2], [0, 7], [-1, 1]) if maker.odd(2) else ([0], [0, 2]))
    return [{"name": each, name: numbers} for each in maker.own]


def _producer(group: str) -> dict[str, Any]:
    return {"transactional_id": group, "producer_id": ProducerId(), "producer_epoch": 0}


def _join(group: str) -> Step:
    times = {"session_timeout_ms": 30_000, "rebalance_timeout_ms": 30_000}
    protocols = [{"name": "range", "metadata": b"m"}]
    who = {"group_id": group, "member_id": "", "protocol_type": "consumer", "protocols": protocols}
    return Step(keys.JOIN_GROUP, 3, {**who, **times})


def _sync(group: str) -> Step:
    assignments = [{"member_id": MemberId(), "assignment": b"a"}]
    who = {"group_id": group, "member_id": MemberId(), "generation_id": 1}
    return Step(keys.SYNC_GROUP, 1, {**who, "assignments": assignments})


def _commit(group: str) -> Step:
    offset = {"partition_index": 0, "committed_offset": 5, "committed_leader_epoch": -1, "committed_metadata": "m"}
    who = {"group_id": group, "generation_id_or_member_epoch": -1, "member_id": "", "group_instance_id": None}
    return Step(keys.OFFSET_COMMIT, 8, {**who, "topics": [{"name": "a-data", "partitions": [offset]}]})


def _heartbeat(group: str) -> Step:
    content = {
        "group_id": group,
        "member_id": "m",
        "member_epoch": 0,
        "instance_id": None,
        "rack_id": None,
        "rebalance_timeout_ms": 60_000,
        "subscribed_topic_names": ["a-data"],
        "subscribed_topic_regex": None,
        "server_assignor": None,
        "topic_partitions": [],
    }
    return Step(keys.CONSUMER_GROUP_HEARTBEAT, 1, content)
