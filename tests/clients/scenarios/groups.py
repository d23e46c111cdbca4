"""Members of groups: what they share, commit, and hand over to each other."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import Any, Final

import pytest

from tests.clients.driver import ClientError
from tests.clients.features import Stage, eventually, feature
from tests.clients.team import PARTITIONS, Load, Team, fill

_GROUP: Final = "Groups"
_SHORT_SESSION_MS: Final = 1_500
_FENCED_INSTANCE_ID: Final = 82


@feature(_GROUP, "a group", "A member gets all records and commits them; the next one goes on behind them.")
def goes_on(stage: Stage) -> None:
    stage.new_topic(PARTITIONS)
    values = fill(stage)
    with Team(stage) as team:
        first = team.join()
        team.poll_until(lambda: len(first.records) >= len(values))
        assert sorted(first.values) == sorted(values)
        first.commit()
        assert team.committed() == dict.fromkeys(range(PARTITIONS), 2)
        team.leave(first)
        more = fill(stage, first=len(values))
        second = team.join()
        team.poll_until(lambda: len(second.records) >= len(more))
        assert sorted(second.values) == sorted(more)


@feature(_GROUP, "commits on the side", "A member commits without waiting for it, and goes on.")
def commits_on_the_side(stage: Stage) -> None:
    stage.new_topic(PARTITIONS)
    values = fill(stage)
    with Team(stage) as team:
        member = team.join()
        team.poll_until(lambda: len(member.records) >= len(values))
        member.of.commit(member.number, wait=False)
        team.poll_until(lambda: team.committed() == dict.fromkeys(range(PARTITIONS), 2))


@feature(_GROUP, "automatic commits", "What a member has polled is committed when its time has come, or it leaves.")
def automatic_commits(stage: Stage) -> None:
    stage.new_topic(PARTITIONS)
    values = fill(stage)
    with Team(stage, auto_commit=True) as team:
        member = team.join()
        team.poll_until(lambda: len(member.records) >= len(values))
        team.leave(member)
        eventually(lambda: team.committed() == dict.fromkeys(range(PARTITIONS), 2))


def _shares(stage: Stage, **settings: Any) -> None:
    stage.new_topic(PARTITIONS)
    with Team(stage, **settings) as team:
        first = team.join()
        team.poll_until_shared()
        second = team.join()
        team.poll_until_shared()
        for member in team.members:
            member.records.clear()
        values = fill(stage)
        team.poll_until(lambda: len(first.records) + len(second.records) >= len(values))
        assert sorted(first.values + second.values) == sorted(values)
        assert {record.partition for record in first.records} == {place[1] for place in first.last.assignment}
        team.leave(first)
        team.poll_until_shared()


@feature(_GROUP, "members share", "Two members have half of the partitions each; when one leaves the other has all.")
def members_share(stage: Stage) -> None:
    _shares(stage)


@feature(_GROUP, "patterns", "A member of a pattern, which it looks up itself, gets a topic that is created later.")
def patterns(stage: Stage) -> None:
    stage.new_topic(2)
    with Team(stage, pattern="client") as team:
        team.join(topic=f"{stage.name}.*")
        team.poll_until_shared(2)
        stage.other.create_topic(f"{stage.name}-later", 1, {})
        team.poll_until_shared(3)


@feature(_GROUP, "static members", "A member with an instance id that is closed and comes back has its partitions.")
def static_members(stage: Stage) -> None:
    stage.new_topic(PARTITIONS)
    with Team(stage) as team:
        first, second = team.join(instance_id="one"), team.join(instance_id="two")
        team.poll_until_shared()
        had = first.last.assignment, second.last.assignment
        team.leave(first)
        assert len(stage.other.groups.describe_group(team.group).assignments) == 2
        first = team.join(instance_id="one")
        team.poll_until_shared()
        assert (first.last.assignment, second.last.assignment) == had


@feature(_GROUP, "fenced members", "A member whose instance id another takes is told FENCED_INSTANCE_ID.")
def fenced_members(stage: Stage) -> None:
    stage.new_topic(PARTITIONS)
    with Team(stage, instance_id="one", tells_if_fenced=True) as team:
        first = team.join()
        team.poll_until_shared()
        second = team.join()
        with pytest.raises(ClientError) as fenced:
            team.poll_until(lambda: False)
        assert fenced.value.code == _FENCED_INSTANCE_ID
        team.leave(first)
        team.poll_until(lambda: len(second.last.assignment) == PARTITIONS)


@feature(_GROUP, "cooperative rebalances", "A member keeps half of its partitions without a break while another joins.")
def cooperative(stage: Stage) -> None:
    stage.new_topic(PARTITIONS)
    with Team(stage, assignor="cooperative-sticky") as team:
        first = team.join()
        team.poll_until_shared()
        team.join()
        sizes = []

        def is_shared() -> bool:
            sizes.append(len(first.last.assignment))
            return len(team.members[1].last.assignment) == PARTITIONS // 2

        team.poll_until(is_shared)
        assert min(sizes) == PARTITIONS // 2
        team.poll_until_shared()


def _rebalances(stage: Stage, **settings: Any) -> None:
    stage.new_topic(PARTITIONS)
    with Team(stage, **settings) as team:
        load = Load(team)
        first = team.join()
        load.until_shared()
        team.join()
        load.until_shared()
        with closing(stage.apart()) as apart:
            killed = team.join(apart)
            try:
                load.until_shared()
            finally:
                apart.kill()
                team.members.remove(killed)
        load.until_shared()
        team.leave(first)
        load.until_shared()
        load.finish()


@feature(
    _GROUP,
    "rebalances under load",
    "While records are produced, and something of each partition is committed, members join, leave and are killed: "
    "none leaves out a record, or reads again what was committed, and in the end all is committed.",
)
def rebalances(stage: Stage) -> None:
    _rebalances(stage, session_ms=_SHORT_SESSION_MS)


@feature(_GROUP, "consumer protocol", "The same sharing by the protocol of KIP-848, in which the broker assigns.")
def consumer_protocol(stage: Stage) -> None:
    _shares(stage, protocol="consumer")
    assert stage.other.groups.describe_group(f"group of {stage.name}").state in ("empty", "stable")


@feature(
    _GROUP,
    "consumer protocol under load",
    "The same joining, leaving and dying under load by the consumer protocol. Where nothing is committed yet a member "
    "of confluent-kafka may begin a second time when another joins, with Apache Kafka too.",
)
def consumer_rebalances(stage: Stage) -> None:
    _rebalances(stage, protocol="consumer")


@feature(_GROUP, "consumer protocol with patterns", "The broker finds the topics of a pattern, which is RE2's.")
def consumer_patterns(stage: Stage) -> None:
    stage.new_topic(2)
    for end in ("more", "3", "not"):
        replace(stage, name=f"{stage.name}-{end}").new_topic()
    with Team(stage, protocol="consumer", pattern="server") as team:
        member = team.join(topic=rf"{stage.name}(-(more|[0-9]))?")
        team.poll_until_shared(4)
        assert {topic for topic, _ in member.last.assignment} == {stage.name, f"{stage.name}-more", f"{stage.name}-3"}


@feature(
    _GROUP,
    "from classic to consumer",
    "A group changes its protocol while it works: members of both share, and go on where those before them ended.",
)
def migration(stage: Stage) -> None:
    stage.new_topic(PARTITIONS)
    with Team(stage) as team:
        load = Load(team)
        old = team.join()
        load.until_shared()
        team.join(protocol="consumer")
        load.until_shared()
        team.leave(old)
        load.until_shared()
        load.finish()
