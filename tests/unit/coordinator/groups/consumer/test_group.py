"""Consumer groups: who may commit and fetch offsets, what is told of them, and which records are kept."""

from __future__ import annotations

from typing import Any

import pytest

from octavo.coordinator.groups.consumer.requests import DescribedPartitions
from octavo.coordinator.groups.describing import list_groups
from octavo.coordinator.groups.requests import DeleteRequest, FetchRequest
from octavo.coordinator.shard import Producer
from octavo.errors import ErrorCode
from tests.unit.coordinator.groups.consumer.consumers import GROUP, INTERVAL_MS, Consumers, Known


def two_epochs(**config: Any) -> Consumers:
    """A group in epoch 3, where `a` has got a partition in epoch 2 and another in epoch 3."""
    group = Consumers(Known(t=1, u=1), **config)
    group.join("a", "t")
    group.pass_time(INTERVAL_MS)
    assert group.beat("a", 2, subscribed_topic_names=("t", "u")).member_epoch == 3
    return group


def commit(group: Consumers, topic: str, epoch: int, **more: Any) -> ErrorCode:
    more = {"member_id": "a", **more}
    answer = group.commit(7, topic=topic, group=GROUP, generation_id_or_member_epoch=epoch, **more)
    code: ErrorCode = answer.error_code
    return code


@pytest.mark.parametrize(
    ("topic", "epoch", "fields", "error"),
    [
        ("t", 3, {}, ErrorCode.NONE),
        ("other", 3, {}, ErrorCode.NONE),
        ("t", 2, {}, ErrorCode.NONE),  # it has had this one since then
        ("u", 2, {}, ErrorCode.STALE_MEMBER_EPOCH),
        ("other", 2, {}, ErrorCode.STALE_MEMBER_EPOCH),
        ("t", 1, {}, ErrorCode.STALE_MEMBER_EPOCH),
        ("t", 4, {}, ErrorCode.STALE_MEMBER_EPOCH),
        ("u", 2, {"producer": Producer(1, 0)}, ErrorCode.ILLEGAL_GENERATION),
        ("t", 3, {"version": 8}, ErrorCode.UNSUPPORTED_VERSION),
        ("t", 3, {"member_id": "x"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ("t", -1, {"member_id": ""}, ErrorCode.UNKNOWN_MEMBER_ID),
        ("t", -1, {"member_id": "", "producer": Producer(1, 0)}, ErrorCode.NONE),
    ],
)
def test_who_may_commit(topic: str, epoch: int, fields: dict[str, Any], error: ErrorCode) -> None:
    assert commit(two_epochs(), topic, epoch, **fields) is error


def test_anybody_may_commit_to_an_empty_group() -> None:
    group = two_epochs()
    group.beat("a", -1)
    assert commit(group, "t", -1, member_id="") is ErrorCode.NONE
    assert commit(group, "t", 3) is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("member_id", "epoch", "error"),
    [
        (None, -1, ErrorCode.NONE),
        ("a", 3, ErrorCode.NONE),
        ("a", 2, ErrorCode.STALE_MEMBER_EPOCH),
        ("x", 3, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_may_fetch(member_id: str | None, epoch: int, error: ErrorCode) -> None:
    group = two_epochs()
    request = FetchRequest(GROUP, None, member_id, epoch)
    assert group.do(lambda shard: shard.offsets.fetch(request)).error_code is error


def test_offsets_of_subscribed_topics_neither_expire_nor_are_deleted() -> None:
    group = two_epochs(offsets_retention_minutes=10, offsets_retention_check_interval_ms=60_000)
    commit(group, "t", 3)
    commit(group, "other", 3)
    request = DeleteRequest(GROUP, [("t", 0), ("other", 0)])
    codes = group.do(lambda shard: shard.offsets.delete(request)).error_codes
    assert codes == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE]
    commit(group, "other", 3)
    for _ in range(25):  # the group stays, as its member is heard of
        group.pass_time(40_000)
        group.beat("a", 3)
    assert group.committed(topic="t", group=GROUP) == 7
    assert group.committed(topic="other", group=GROUP) == -1


def test_a_group_is_described() -> None:
    group = Consumers(Known(t=2))
    group.join("a", instance_id="i", rack_id="r")
    group.join("b")
    group.pass_time(INTERVAL_MS)
    group.beat("a", 2, instance_id="i")
    told = group.do(lambda shard: shard.consumer.describe(GROUP))
    assert told[:7] == (ErrorCode.NONE, None, GROUP, "Reconciling", 3, 3, "uniform")
    first, second = told.members
    topic_id = group.topics["t"]
    assert first[:6] == ("a", "i", "r", 2, "client", "/h")
    assert first.subscribed_topic_names == ["t"]
    assert first.assignment == [DescribedPartitions(topic_id, "t", [0, 1])]  # one has to be given back yet
    assert first.target_assignment == [DescribedPartitions(topic_id, "t", [0])]
    assert (second.assignment, second.target_assignment) == ([], [DescribedPartitions(topic_id, "t", [1])])
    assert (first.member_type, second.member_type) == (1, 1)


def test_a_group_is_listed() -> None:
    group = Consumers()
    group.join("a")
    assert list_groups(group.shard, (), ["Consumer"]) == [(GROUP, "consumer", "Stable", "consumer")]
    assert list_groups(group.shard, ["empty"], ()) == []


def test_other_groups_are_not_described() -> None:
    group = Consumers()
    told = group.do(lambda shard: shard.consumer.describe(GROUP))
    assert told[:3] == (ErrorCode.GROUP_ID_NOT_FOUND, "Group g not found.", GROUP)
    group.commit(1, group=GROUP)
    told = group.do(lambda shard: shard.consumer.describe(GROUP))
    assert told[:2] == (ErrorCode.GROUP_ID_NOT_FOUND, "Group g is not a consumer group.")
