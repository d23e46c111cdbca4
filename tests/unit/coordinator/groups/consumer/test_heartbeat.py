"""Heartbeats of members of consumer groups: joining, reconciling, leaving, time-outs, restarts, failed writes."""

from __future__ import annotations

from typing import Any

import pytest

from octavo.errors import ErrorCode
from tests.unit.coordinator.groups.consumer.consumers import (
    GROUP,
    INTERVAL_MS,
    REBALANCE_MS,
    SESSION_MS,
    Consumers,
    Known,
)

JOINING: dict[str, Any] = {"owned": {}, "rebalance_timeout_ms": 1, "subscribed_topic_names": ("t",)}


# -------------------------------------------------------------------------------------------------------------- checks


@pytest.mark.parametrize(
    ("member_id", "epoch", "fields", "message"),
    [
        ("", 0, JOINING, "MemberId can't be empty."),
        (" \0", 0, JOINING, "MemberId can't be empty."),
        ("m", 0, {**JOINING, "instance_id": ""}, "InstanceId can't be empty."),
        ("m", 0, {**JOINING, "rack_id": ""}, "RackId can't be empty."),
        ("m", 0, {**JOINING, "rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ("m", 0, {**JOINING, "owned": None}, "TopicPartitions must be empty when (re-)joining."),
        ("m", 0, {**JOINING, "owned": {"t": [0]}}, "TopicPartitions must be empty when (re-)joining."),
        (
            "m",
            0,
            {**JOINING, "subscribed_topic_names": None},
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        ("m", -2, {}, "InstanceId can't be null."),
        ("m", -3, {}, "MemberEpoch is invalid."),
    ],
)
def test_bad_requests_are_refused(member_id: str, epoch: int, fields: dict[str, Any], message: str) -> None:
    group = Consumers()
    answer = group.beat(member_id, epoch, **fields)
    assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_REQUEST, message)
    assert not group.log
    assert not group.shard.groups


def test_an_old_client_gets_its_id_from_the_coordinator() -> None:
    group = Consumers()
    assert group.join("", version=0).member_id == "id1"


def test_an_assignor_that_is_not_known_is_refused() -> None:
    answer = Consumers().join("m", server_assignor="zz")
    assert answer.error_code is ErrorCode.UNSUPPORTED_ASSIGNOR
    assert answer.error_message == "ServerAssignor zz is not supported. Supported assignors: uniform, range."


def test_unknown_groups_and_members() -> None:
    group = Consumers()
    assert group.beat("m", 1)[:2] == (ErrorCode.GROUP_ID_NOT_FOUND, "Consumer group g not found.")
    assert group.beat("m", -1)[:2] == (ErrorCode.GROUP_ID_NOT_FOUND, "Group g not found.")
    group.join("a")
    for epoch in (2, -1):
        answer = group.beat("m", epoch)
        assert answer[:2] == (ErrorCode.UNKNOWN_MEMBER_ID, "Member m is not a member of group g.")


def test_a_full_group_takes_nobody_but_its_members() -> None:
    group = Consumers(group_consumer_max_size=1)
    group.join("a")
    answer = group.join("b")
    assert answer.error_code is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert answer.error_message == "The consumer group has reached its maximum capacity of 1 members."
    assert group.join("a").error_code is ErrorCode.NONE


# ------------------------------------------------------------------------------------------------- joining and records


def test_the_first_member_gets_everything_at_once() -> None:
    group = Consumers()
    answer = group.join("a")
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("a", 2, 5_000)
    assert group.has(answer) == {"t": [0, 1, 2, 3]}
    assert group.kinds() == [5, 3, 7, 6, 8]
    assert group.state() == "Stable"
    group.reload_and_compare()
    assert group.beat("a", 2).assignment is None


def test_a_partition_moves_when_its_owner_has_given_it_back() -> None:
    group = Consumers()
    group.join("a")
    second = group.join("b")  # within the interval: nothing is computed
    assert (second.member_epoch, group.has(second), group.state()) == (2, {}, "Assigning")
    group.pass_time(INTERVAL_MS)
    first = group.beat("a", 2)
    assert (first.member_epoch, group.has(first), group.state()) == (2, {"t": [0, 1]}, "Reconciling")
    second = group.beat("b", 2)
    assert (second.member_epoch, second.assignment) == (3, None)
    assert group.beat("a", 2).member_epoch == 2  # it has not told what it has
    assert group.beat("a", 2, owned={"t": [0, 1, 2]}).member_epoch == 2  # it still has some
    first = group.beat("a", 2, owned={"t": [0, 1]})
    assert (first.member_epoch, first.assignment) == (3, None)
    group.reload_and_compare()
    second = group.beat("b", 3)
    assert (second.member_epoch, group.has(second), group.state()) == (3, {"t": [2, 3]}, "Stable")


def test_the_answer_tells_everything_to_who_tells_everything() -> None:
    group = Consumers()
    group.join("a")
    full: dict[str, Any] = {
        "owned": {"t": [0, 1, 2, 3]},
        "rebalance_timeout_ms": REBALANCE_MS,
        "subscribed_topic_names": ("t",),
    }
    assert group.has(group.beat("a", 2, **full)) == {"t": [0, 1, 2, 3]}
    assert group.kinds() == [5, 3, 7, 6, 8]  # and nothing was written


def test_who_joins_again_keeps_what_it_has() -> None:
    group = Consumers()
    group.join("a")
    again = group.join("a")
    assert (again.member_epoch, group.has(again)) == (2, {"t": [0, 1, 2, 3]})


def test_epochs_are_fenced_but_the_one_before_after_a_lost_answer() -> None:
    group = Consumers()
    group.join("a", "t")
    group.pass_time(INTERVAL_MS)
    group.topics.put("u", 1)
    assert group.beat("a", 2, subscribed_topic_names=("t", "u")).member_epoch == 3
    assert group.beat("a", 2, owned={"t": [0]}).member_epoch == 3
    for owned in (None, {"t": [9]}):
        answer = group.beat("a", 2, owned=owned)
        assert answer.error_code is ErrorCode.FENCED_MEMBER_EPOCH
        assert answer.error_message == (
            "The consumer group member has a smaller member epoch (2) than the one known by the group coordinator (3). "
            "The member must abandon all its partitions and rejoin."
        )
    assert group.beat("a", 1, owned={}).error_code is ErrorCode.FENCED_MEMBER_EPOCH
    greater = group.beat("a", 4)
    assert greater.error_code is ErrorCode.FENCED_MEMBER_EPOCH
    assert "a greater member epoch (4)" in (greater.error_message or "")


def test_a_failed_write_changes_nothing() -> None:
    group = Consumers()
    group.join("a", fails=True)
    assert not group.shard.groups
    assert group.shard.timers.get(("consumer session", GROUP, "a")) is None
    group.join("a")
    before = group.snapshot()
    group.join("b", fails=True)
    assert group.snapshot() == before


def test_a_refused_request_changes_nothing_of_what_it_has_begun() -> None:
    group = Consumers()
    group.join("a", instance_id="i")
    group.beat("a", -2, instance_id="i")
    before, length = group.snapshot(), len(group.log)
    answer = group.join("b", instance_id="i", subscribed_topic_regex="(")  # it would have replaced a
    assert answer.error_code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert group.snapshot() == before
    assert len(group.log) == length


def test_a_member_without_topics_is_a_member() -> None:
    group = Consumers()
    answer = group.join("a", subscribed_topic_names=())
    assert (answer.member_epoch, group.has(answer)) == (1, {})
    assert group.kinds() == [5, 8]
    group.reload_and_compare()


def test_topics_that_come_and_grow_begin_another_epoch() -> None:
    group = Consumers(Known())
    assert group.has(group.join("a", "t")) == {}
    group.topics.put("t", 1)
    group.pass_time(INTERVAL_MS)
    answer = group.beat("a", 2)
    assert (answer.member_epoch, group.has(answer)) == (3, {"t": [0]})
    group.topics.put("t", 2)
    group.topics.put("other", 1)
    group.pass_time(INTERVAL_MS)
    answer = group.beat("a", 3)
    assert (answer.member_epoch, group.has(answer)) == (4, {"t": [0, 1]})
    group.topics.drop("t")
    group.pass_time(INTERVAL_MS)
    answer = group.beat("a", 4, owned={})
    assert (answer.member_epoch, group.has(answer)) == (5, {})


def test_a_topic_that_is_not_subscribed_to_any_more_is_given_back_at_once() -> None:
    group = Consumers(Known(t=1, u=1))
    group.join("a", "t", "u")
    answer = group.beat("a", 2, subscribed_topic_names=("t",))  # within the interval
    assert (answer.member_epoch, group.has(answer)) == (2, {"t": [0]})
    group.reload_and_compare()
    group.pass_time(INTERVAL_MS)
    assert group.beat("a", 2, owned={"t": [0]}).member_epoch == 3


def test_most_members_choose_the_assignor() -> None:
    group = Consumers(Known(t=2, u=2), group_consumer_assignment_interval_ms=0)
    group.join("a", "t", "u", server_assignor="range")
    group.join("b", "t", "u")
    ids = [group.topics["t"], group.topics["u"]]
    assert group.group.targets["a"] == {each: {0} for each in ids}
    assert group.do(lambda shard: shard.consumer.describe(GROUP)).assignor_name == "range"


# ------------------------------------------------------------------------------------------------ leaving and time-outs


def test_who_leaves_is_gone_and_the_others_get_its_partitions() -> None:
    group = Consumers(group_consumer_assignment_interval_ms=0)
    group.join("a")
    group.join("b")
    length = len(group.log)
    answer = group.beat("a", -1)
    assert answer == (ErrorCode.NONE, None, "a", -1, 0, None)
    assert group.kinds(length) == [-8, -7, -5, 3]
    answer = group.beat("b", 3)
    assert (answer.member_epoch, group.has(answer)) == (4, {"t": [0, 1, 2, 3]})
    group.reload_and_compare()
    group.beat("b", -1)
    assert group.state() == "Empty"
    group.reload_and_compare()
    assert group.beat("b", 4).error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_is_not_heard_of_is_removed() -> None:
    group = Consumers()
    group.join("a")
    group.pass_time(SESSION_MS - 1)
    group.beat("a", 2)
    group.pass_time(SESSION_MS - 1)
    assert "a" in group.group.members
    group.pass_time(1)
    assert group.state() == "Empty"
    assert group.group.group_epoch == 3


@pytest.mark.parametrize("restarts", [False, True])
def test_a_member_that_does_not_give_partitions_back_is_removed(restarts: bool) -> None:
    group = Consumers(group_consumer_assignment_interval_ms=0)
    group.join("a")
    group.join("b")
    group.beat("a", 2)  # has to give two back
    if restarts:
        group.reload_and_compare()
    for _ in range(3):
        group.pass_time(REBALANCE_MS // 3 - 1)
        assert group.beat("a", 2).error_code is ErrorCode.NONE
        group.beat("b", 3)
    group.pass_time(3)
    assert group.beat("a", 2).error_code is ErrorCode.UNKNOWN_MEMBER_ID
    assert group.has(group.beat("b", 3)) == {"t": [0, 1, 2, 3]}


def test_members_are_waited_for_after_a_restart() -> None:
    group = Consumers()
    group.join("a")
    group.reload()
    group.pass_time(SESSION_MS)
    assert group.state() == "Empty"


# ------------------------------------------------------------------------------------------------------ static members


def test_a_static_member_takes_its_place_again_without_another_epoch() -> None:
    group = Consumers()
    group.join("a", instance_id="i")
    answer = group.beat("a", -2, instance_id="i")
    assert (answer.member_epoch, answer.heartbeat_interval_ms) == (-2, 0)
    length = len(group.log)
    answer = group.join("b", instance_id="i")
    assert (answer.member_epoch, group.has(answer)) == (2, {"t": [0, 1, 2, 3]})
    assert group.kinds(length) == [-8, -7, -5, 5, 7, 8, 8]
    assert group.group.group_epoch == 2
    group.reload_and_compare()
    old = group.beat("a", 2, instance_id="i")
    assert old[:2] == (ErrorCode.FENCED_INSTANCE_ID, "Static member a with instance id i was fenced by member b.")
    assert group.beat("a", -1, instance_id="x")[:2] == (ErrorCode.UNKNOWN_MEMBER_ID, "Instance id x is unknown.")


def test_an_instance_id_that_is_in_use_is_not_given_away() -> None:
    group = Consumers()
    group.join("a", instance_id="i")
    answer = group.join("b", instance_id="i")
    assert answer.error_code is ErrorCode.UNRELEASED_INSTANCE_ID
    assert answer.error_message == (
        "Static member b with instance id i cannot join the group because the instance id is owned by a member."
    )


def test_a_static_member_that_does_not_come_back_is_removed() -> None:
    group = Consumers()
    group.join("a", instance_id="i")
    group.beat("a", -2, instance_id="i")
    group.pass_time(SESSION_MS)
    assert group.state() == "Empty"
    assert not group.group.static_members


# ------------------------------------------------------------------------------------------------- regular expressions


def test_a_regular_expression_is_resolved_a_little_later() -> None:
    group = Consumers(Known(ta=1, tb=1, u=1))
    joining: dict[str, Any] = {"subscribed_topic_names": None, "subscribed_topic_regex": "t.*"}
    answer = group.join("a", **joining)
    assert (answer.member_epoch, group.has(answer)) == (1, {})
    group.pass_time(0)
    assert group.kinds() == [5, 8, 16, 3]
    answer = group.beat("a", 1)
    assert (answer.member_epoch, group.has(answer)) == (2, {"ta": [0], "tb": [0]})
    group.reload_and_compare()
    group.topics.put("tc", 1)
    assert group.beat("a", 2).assignment is None
    group.pass_time(10_001)
    group.beat("a", 2)
    group.pass_time(0)
    answer = group.beat("a", 2)
    assert (answer.member_epoch, group.has(answer)) == (3, {"ta": [0], "tb": [0], "tc": [0]})
    length = len(group.log)
    group.beat("a", -1)
    assert group.kinds(length) == [-8, -7, -5, -16, 3]
    assert not group.group.resolved


def test_who_subscribes_by_a_known_regular_expression_begins_another_epoch_at_once() -> None:
    group = Consumers(Known(ta=2), group_consumer_assignment_interval_ms=0)
    joining: dict[str, Any] = {"subscribed_topic_names": (), "subscribed_topic_regex": "t."}
    group.join("a", **joining)
    group.pass_time(0)
    group.beat("a", 1)
    assert group.join("b", **joining).member_epoch == 3
    assert group.group.is_homogeneous
    length = len(group.log)
    group.beat("b", 3, subscribed_topic_regex="")
    assert group.kinds(length)[:2] == [5, 3]
    assert group.group.regexes == ["t."]


def test_a_regular_expression_that_nobody_uses_any_more_has_no_other_be_resolved_sooner() -> None:
    group = Consumers(Known(ta=2), group_consumer_assignment_interval_ms=0)
    group.join("a", subscribed_topic_names=(), subscribed_topic_regex="t.")
    group.pass_time(0)
    group.join("b", subscribed_topic_names=(), subscribed_topic_regex="ta")
    epoch = group.group.group_epoch
    group.beat("a", 1, subscribed_topic_regex="")
    group.pass_time(0)
    assert (group.group.group_epoch, dict(group.group.resolved)) == (epoch + 1, {})


def test_of_two_assignors_that_as_many_want_the_uniform_one_is_preferred() -> None:
    group = Consumers(Known(t=2))
    group.join("a", "t", server_assignor="range")
    assert group.group.preferred_assignor() == "range"
    group.join("b", "t", server_assignor="uniform")
    assert group.group.preferred_assignor() == "uniform"


def test_a_bad_regular_expression_is_refused() -> None:
    group = Consumers()
    answer = group.join("a", subscribed_topic_regex="k(?=x)")
    assert answer.error_code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert answer.error_message == (
        "SubscribedTopicRegex `k(?=x)` is not a valid regular expression: invalid or unsupported Perl syntax."
    )
    assert not group.shard.groups


# ------------------------------------------------------------------------------------------------------- what is kept


def test_a_record_of_kafka_4_0_is_deleted() -> None:
    from octavo.schemas.consumer_offsets.consumer_groups import (
        ConsumerGroupPartitionMetadataKey,
        ConsumerGroupPartitionMetadataValue,
    )

    group = Consumers()
    group.join("a")
    key = ConsumerGroupPartitionMetadataKey(group_id=GROUP)
    group.do(lambda shard: shard.write(key, ConsumerGroupPartitionMetadataValue(topics=())))
    group.reload()
    length = len(group.log)
    group.beat("a", 2)
    assert group.kinds(length) == [-4]
    assert not group.group.has_partition_metadata


def test_deleting_a_group_leaves_nothing() -> None:
    group = Consumers()
    group.join("a")
    assert group.do(lambda shard: shard.delete_group(GROUP)) is ErrorCode.NON_EMPTY_GROUP
    group.beat("a", -1)
    length = len(group.log)
    assert group.do(lambda shard: shard.delete_group(GROUP)) is ErrorCode.NONE
    assert group.kinds(length) == [-6, -4, -3]
    group.reload()
    assert not group.shard.groups
