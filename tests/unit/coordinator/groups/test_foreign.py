"""Groups of protocols that are not served keep their ids until their records are deleted."""

from __future__ import annotations

from typing import Any

import pytest

from octavo.coordinator.groups.classic.requests import JoinAnswer, JoinRequest
from octavo.coordinator.groups.requests import CommitRequest
from octavo.errors import ErrorCode
from octavo.schemas.consumer_offsets import share_groups as share
from octavo.schemas.consumer_offsets import streams_groups as streams
from octavo.schemas.versioned import CoordinatorKey, CoordinatorValue, write_key, write_value
from tests.unit.coordinator.groups.running import Running

GROUP = "g"
SHARE = (share.ShareGroupMetadataKey(group_id=GROUP), share.ShareGroupMetadataValue(epoch=1, metadata_hash=0))
STREAMS = (
    streams.StreamsGroupMetadataKey(group_id=GROUP),
    streams.StreamsGroupMetadataValue(epoch=1, metadata_hash=0),
)
MEMBER = (
    share.ShareGroupMemberMetadataKey(group_id=GROUP, member_id="m"),
    share.ShareGroupMemberMetadataValue(rack_id=None, client_id="c", client_host="/h", subscribed_topic_names=("t",)),
)


def write(running: Running, key: CoordinatorKey[Any], value: CoordinatorValue | None) -> None:
    """Have a record in the log that Kafka has written."""
    running.log.append(((write_key(key), None if value is None else write_value(value, 0)), None))
    running.reload()


def join(running: Running) -> ErrorCode:
    request = JoinRequest(GROUP, "", "consumer", (("range", b""),), 10_000, 10_000)
    answers: list[JoinAnswer] = []
    running.do(lambda shard: shard.join(answers.append, request))
    return answers[0].error_code


@pytest.mark.parametrize("record", [SHARE, STREAMS], ids=["share", "streams"])
def test_the_id_is_taken_until_the_group_is_deleted(record: tuple[CoordinatorKey[Any], CoordinatorValue]) -> None:
    running = Running(group_initial_rebalance_delay_ms=0)
    write(running, *record)
    written = list(running.log)
    assert join(running) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert running.do(lambda shard: shard.delete_group(GROUP)) is ErrorCode.GROUP_ID_NOT_FOUND
    running.pass_time(100 * 24 * 3_600_000)
    assert running.log == written
    write(running, record[0], None)
    assert GROUP not in running.shard.groups
    assert running.commit(7).error_code is ErrorCode.NONE


def test_a_share_group_takes_no_offsets_and_a_streams_group_does() -> None:
    running = Running()
    write(running, *SHARE)
    assert running.commit(7).error_code is ErrorCode.GROUP_ID_NOT_FOUND
    running = Running()
    running.commit(7)
    write(running, *STREAMS)
    assert running.committed() == 7
    assert running.commit(8).error_code is ErrorCode.NONE
    member = CommitRequest(GROUP, [], member_id="m", generation_id_or_member_epoch=1)
    assert running.do(lambda shard: shard.offsets.commit(member)).error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_members_are_known() -> None:
    running = Running()
    write(running, *SHARE)
    assert running.shard.groups[GROUP].listed() == (GROUP, "share", "Empty", "share")
    write(running, *MEMBER)
    assert running.shard.groups[GROUP].listed() == (GROUP, "share", "Stable", "share")
    assert running.do(lambda shard: shard.delete_group(GROUP)) is ErrorCode.NON_EMPTY_GROUP
    write(running, MEMBER[0], None)
    assert running.shard.groups[GROUP].listed() == (GROUP, "share", "Empty", "share")
