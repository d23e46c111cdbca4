"""Members of groups: what they share, commit, and hand over to each other."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from tests.clients.driver import ClientError, Driver, Record
from tests.clients.features import Stage, eventually, feature
from tests.clients.group_driver import Groups, MemberSettings, Polled

_GROUP: Final = "Groups"
_PARTITIONS: Final = 6
_SHORT_SESSION_MS: Final = 1_500
_FENCED_INSTANCE_ID: Final = 82


@dataclass
class Member:
    """A member of the group of a scenario, and what it has polled."""

    of: Groups
    number: int
    last: Polled = field(default_factory=lambda: Polled([], frozenset()))
    records: list[Record] = field(default_factory=list)

    def poll(self) -> None:
        self.last = self.of.poll(self.number)
        self.records += self.last.records

    def commit(self) -> None:
        self.of.commit(self.number, wait=True)

    @property
    def values(self) -> list[bytes]:
        return [record.value or b"" for record in self.records]


class Team:
    """The members of a group, which are polled in turns and leave at the end."""

    def __init__(self, stage: Stage, name: str = "group", **settings: Any) -> None:
        self.stage: Final = stage
        self.group: Final = f"{name} of {stage.name}"
        self.members: Final[list[Member]] = []
        self._settings: Final = settings

    def join(self, driver: Driver | None = None, topic: str = "", **settings: Any) -> Member:
        groups = (driver or self.stage.client).groups
        chosen: MemberSettings = {**self._settings, **settings}  # type: ignore[typeddict-item]  # settings by name
        member = Member(groups, groups.join(self.group, [topic or self.stage.name], chosen))
        self.members.append(member)
        return member

    def leave(self, member: Member) -> None:
        self.members.remove(member)
        member.of.leave(member.number)

    def poll(self) -> None:
        """Poll all members at the same time: some wait for each other."""
        with ThreadPoolExecutor(len(self.members)) as threads:
            list(threads.map(Member.poll, self.members))

    def poll_until(self, is_true: Callable[[], bool]) -> None:
        def step() -> bool:
            self.poll()
            return is_true()

        eventually(step)

    def poll_until_shared(self, partitions: int = _PARTITIONS) -> None:
        """Poll until each partition has one owner, and all members have as many."""

        def is_shared() -> bool:
            sizes = {len(member.last.assignment) for member in self.members}
            owned = [place for member in self.members for place in member.last.assignment]
            return sizes == {partitions // len(self.members)} and len(owned) == len(set(owned)) == partitions

        self.poll_until(is_shared)

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *_: object) -> None:
        for member in list(self.members):
            self.leave(member)


def fill(stage: Stage, count: int = 12, first: int = 0, partitions: int = _PARTITIONS) -> list[bytes]:
    """Produce numbers in turns to all partitions, and return them."""
    numbers = range(first, first + count)
    records = [Record(value=b"%d" % number, partition=number % partitions) for number in numbers]
    stage.other.produce(stage.name, records, {})
    return [b"%d" % number for number in numbers]


def _committed(stage: Stage, team: Team) -> dict[int, int]:
    found = stage.other.groups.committed(team.group)
    return {partition: offset for (topic, partition), offset in found.items() if topic == stage.name}


@feature(_GROUP, "a group", "A member gets all records and commits them; the next one goes on behind them.")
def goes_on(stage: Stage) -> None:
    stage.new_topic(_PARTITIONS)
    values = fill(stage)
    with Team(stage) as team:
        first = team.join()
        team.poll_until(lambda: len(first.records) >= len(values))
        assert sorted(first.values) == sorted(values)
        first.commit()
        assert _committed(stage, team) == dict.fromkeys(range(_PARTITIONS), 2)
        team.leave(first)
        more = fill(stage, first=len(values))
        second = team.join()
        team.poll_until(lambda: len(second.records) >= len(more))
        assert sorted(second.values) == sorted(more)


@feature(_GROUP, "commits on the side", "A member commits without waiting for it, and goes on.")
def commits_on_the_side(stage: Stage) -> None:
    stage.new_topic(_PARTITIONS)
    values = fill(stage)
    with Team(stage) as team:
        member = team.join()
        team.poll_until(lambda: len(member.records) >= len(values))
        member.of.commit(member.number, wait=False)
        team.poll_until(lambda: _committed(stage, team) == dict.fromkeys(range(_PARTITIONS), 2))


@feature(_GROUP, "automatic commits", "What a member has polled is committed when its time has come, or it leaves.")
def automatic_commits(stage: Stage) -> None:
    stage.new_topic(_PARTITIONS)
    values = fill(stage)
    with Team(stage, auto_commit=True) as team:
        member = team.join()
        team.poll_until(lambda: len(member.records) >= len(values))
        team.leave(member)
        eventually(lambda: _committed(stage, team) == dict.fromkeys(range(_PARTITIONS), 2))


def _shares(stage: Stage, **settings: Any) -> None:
    stage.new_topic(_PARTITIONS)
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
    stage.new_topic(_PARTITIONS)
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
    stage.new_topic(_PARTITIONS)
    with Team(stage, instance_id="one", tells_if_fenced=True) as team:
        first = team.join()
        team.poll_until_shared()
        second = team.join()
        with pytest.raises(ClientError) as fenced:
            team.poll_until(lambda: False)
        assert fenced.value.code == _FENCED_INSTANCE_ID
        team.leave(first)
        team.poll_until(lambda: len(second.last.assignment) == _PARTITIONS)


@feature(_GROUP, "cooperative rebalances", "A member keeps half of its partitions without a break while another joins.")
def cooperative(stage: Stage) -> None:
    stage.new_topic(_PARTITIONS)
    with Team(stage, assignor="cooperative-sticky") as team:
        first = team.join()
        team.poll_until_shared()
        team.join()
        sizes = []

        def is_shared() -> bool:
            sizes.append(len(first.last.assignment))
            return len(team.members[1].last.assignment) == _PARTITIONS // 2

        team.poll_until(is_shared)
        assert min(sizes) == _PARTITIONS // 2
        team.poll_until_shared()


class _Load:
    """Records that are produced while members are polled, and what must be true of those that are consumed."""

    def __init__(self, stage: Stage, team: Team) -> None:
        self._stage: Final = stage
        self._team: Final = team
        self._produced = 0
        self._end: Final = dict.fromkeys(range(_PARTITIONS), 0)  # by partition: behind the last that anyone consumed
        self._committed: Final = dict.fromkeys(range(_PARTITIONS), 0)

    def until(self, is_true: Callable[[], bool]) -> None:
        """Produce, poll and commit until something is true."""

        def step() -> bool:
            self._produced += len(fill(self._stage, _PARTITIONS, self._produced))
            self._poll()
            return is_true()

        eventually(step)

    def until_shared(self) -> None:
        each = _PARTITIONS // len(self._team.members)
        self.until(lambda: all(len(member.last.assignment) == each for member in self._team.members))

    def _poll(self) -> None:
        self._team.poll()
        for member in self._team.members:
            for record in member.last.records:
                # Nobody goes back behind what is committed, and nobody leaves out what was not consumed.
                assert self._committed[record.partition] <= record.offset <= self._end[record.partition]
                self._end[record.partition] = max(record.offset + 1, self._end[record.partition])
            with suppress(ClientError):  # a rebalance may be on its way
                member.commit()
                for record in member.last.records:
                    self._committed[record.partition] = record.offset + 1

    def finish(self) -> None:
        """Consume all that is left, and see that everything is committed."""
        ends = dict.fromkeys(range(_PARTITIONS), self._produced // _PARTITIONS)

        def is_done() -> bool:
            self._poll()
            return self._end == ends

        eventually(is_done)
        for member in self._team.members:
            member.commit()
        assert _committed(self._stage, self._team) == ends


def _rebalances(stage: Stage, **settings: Any) -> None:
    stage.new_topic(_PARTITIONS)
    with Team(stage, **settings) as team:
        load = _Load(stage, team)
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
    "While records are produced members join, leave and are killed: none leaves out a record, or reads again what was "
    "committed, and in the end all is committed.",
)
def rebalances(stage: Stage) -> None:
    _rebalances(stage, session_ms=_SHORT_SESSION_MS)


@feature(_GROUP, "consumer protocol", "The same sharing by the protocol of KIP-848, in which the broker assigns.")
def consumer_protocol(stage: Stage) -> None:
    _shares(stage, protocol="consumer")
    assert stage.other.groups.describe_group(f"group of {stage.name}").state in ("empty", "stable")


@feature(
    _GROUP, "its rebalances under load", "The same joining, leaving and dying under load by the consumer protocol."
)
def consumer_rebalances(stage: Stage) -> None:
    _rebalances(stage, protocol="consumer")


@feature(_GROUP, "its patterns", "The broker finds the topics of a pattern, which is RE2's.")
def consumer_patterns(stage: Stage) -> None:
    stage.new_topic(2)
    for end in ("more", "3", "not"):
        stage.other.create_topic(f"{stage.name}-{end}", 1, {})
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
    stage.new_topic(_PARTITIONS)
    with Team(stage) as team:
        load = _Load(stage, team)
        old = team.join()
        load.until_shared()
        team.join(protocol="consumer")
        load.until_shared()
        team.leave(old)
        load.until_shared()
        load.finish()
