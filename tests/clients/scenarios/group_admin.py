"""What admin clients tell of groups and change of them."""

from __future__ import annotations

from typing import Final

import pytest

from tests.clients.driver import ClientError
from tests.clients.features import Stage, feature
from tests.clients.team import Team, fill

_GROUP: Final = "Groups"
_GROUP_ID_NOT_FOUND: Final = 69
_NON_EMPTY_GROUP: Final = 68


def _leave_a_group(stage: Stage) -> str:
    """Have a group that has consumed 2 records of each of 3 partitions, and has no members."""
    stage.new_topic(3)
    values = fill(stage, 6, partitions=3)
    with Team(stage.as_other()) as team:
        member = team.join()
        team.poll_until(lambda: len(member.records) >= len(values))
        member.commit()
    return team.group


@feature(_GROUP, "list and describe groups", "Groups are told with their state and with what members are assigned.")
def list_and_describe(stage: Stage) -> None:
    stage.new_topic(4)
    with Team(stage.as_other()) as team:
        assert team.group not in stage.client.groups.list_groups()
        team.join()
        team.join()
        team.poll_until_shared(4)
        assert team.group in stage.client.groups.list_groups()
        state, assignments = stage.client.groups.describe_group(team.group)
        assert state == "stable"
        assert sorted(map(sorted, assignments)) == sorted(sorted(member.last.assignment) for member in team.members)
    state, assignments = stage.client.groups.describe_group(team.group)
    assert (state, assignments) == ("empty", [])


@feature(_GROUP, "committed offsets", "What a group has committed is told.")
def committed(stage: Stage) -> None:
    group = _leave_a_group(stage)
    assert stage.client.groups.committed(group) == {(stage.name, partition): 2 for partition in range(3)}


@feature(_GROUP, "change committed offsets", "Positions of a group without members are set; members begin there.")
def change_offsets(stage: Stage) -> None:
    group = _leave_a_group(stage)
    stage.client.groups.set_offsets(group, {(stage.name, 1): 0})
    assert stage.other.groups.committed(group)[stage.name, 1] == 0
    with Team(stage.as_other()) as team:
        member = team.join()
        team.poll_until(lambda: len(member.records) == 2)
        assert {(record.partition, record.offset) for record in member.records} == {(1, 0), (1, 1)}
        with pytest.raises(ClientError):
            stage.client.groups.set_offsets(group, {(stage.name, 1): 1})


@feature(_GROUP, "delete committed offsets", "One position of a group is forgotten.")
def delete_offsets(stage: Stage) -> None:
    group = _leave_a_group(stage)
    stage.client.groups.delete_offsets(group, (stage.name, 1))
    assert stage.other.groups.committed(group) == {(stage.name, 0): 2, (stage.name, 2): 2}


@feature(_GROUP, "delete a group", "A group is gone with its positions; one with members is NON_EMPTY_GROUP.")
def delete_group(stage: Stage) -> None:
    group = _leave_a_group(stage)
    with Team(stage.as_other()) as team:
        team.join()
        team.poll_until_shared(3)
        with pytest.raises(ClientError) as refused:
            stage.client.groups.delete_group(group)
        assert refused.value.code == _NON_EMPTY_GROUP
    stage.client.groups.delete_group(group)
    assert stage.other.groups.committed(group) == {}
    assert group not in stage.other.groups.list_groups()
    with pytest.raises(ClientError) as missing:
        stage.client.groups.delete_group(group)
    assert missing.value.code == _GROUP_ID_NOT_FOUND
