"""Settings that single groups have for themselves."""

from __future__ import annotations

import pytest

from octavo.coordinator.groups.config import GroupConfig
from octavo.coordinator.groups.consumer.requests import ConsumerHeartbeatAnswer
from octavo.errors import ErrorCode
from tests.unit.coordinator.groups.consumer.consumers import GROUP, Consumers

HEARTBEAT = "consumer.heartbeat.interval.ms"
SESSION = "consumer.session.timeout.ms"


def join(group: Consumers) -> ConsumerHeartbeatAnswer:
    """Add a member."""
    answer = group.beat("a", 0, subscribed_topic_names=("t",), rebalance_timeout_ms=60_000, owned={})
    assert answer.error_code is ErrorCode.NONE
    return answer


def test_heartbeats_tell_the_interval_of_the_group() -> None:
    group = Consumers()
    joined = join(group)
    assert joined.heartbeat_interval_ms == 5_000
    group.own_config = {"another": {HEARTBEAT: "7000"}}
    assert group.beat("a", joined.member_epoch).heartbeat_interval_ms == 5_000
    group.own_config = {GROUP: {HEARTBEAT: "7000"}}
    assert group.beat("a", joined.member_epoch).heartbeat_interval_ms == 7_000
    group.own_config = {}
    assert group.beat("a", joined.member_epoch).heartbeat_interval_ms == 5_000


@pytest.mark.parametrize("reloads", [False, True])
def test_a_member_is_missed_after_the_session_of_the_group(*, reloads: bool) -> None:
    group = Consumers()
    group.own_config = {GROUP: {SESSION: "60000"}}
    join(group)
    if reloads:
        group.reload()
    group.pass_time(59_999)
    assert group.group.members
    group.pass_time(1)
    assert not group.group.members


def test_values_outside_the_bounds_count_as_the_nearest_bound() -> None:
    config = GroupConfig()
    assert config.of_group({}) is config
    own = config.of_group({SESSION: "1", HEARTBEAT: "99999", "consumer.assignment.interval.ms": "soon"})
    assert own.group_consumer_session_timeout_ms == 45_000
    assert own.group_consumer_heartbeat_interval_ms == 15_000
    assert own.group_consumer_assignment_interval_ms == config.group_consumer_assignment_interval_ms


def test_targets_are_computed_by_the_first_assignor() -> None:
    group = Consumers(group_consumer_assignors=("range",))
    refused = group.beat(
        "a", 0, subscribed_topic_names=("t",), rebalance_timeout_ms=1, owned={}, server_assignor="uniform"
    )
    assert refused.error_code is ErrorCode.UNSUPPORTED_ASSIGNOR
    join(group)
    assert group.do(lambda shard: shard.consumer.describe(GROUP)).assignor_name == "range"
