"""Members of a group that are polled together, and records that are produced meanwhile: `Team`, `Load`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from tests.clients.driver import ClientError, Driver, Record
from tests.clients.features import Stage, eventually
from tests.clients.group_driver import Groups, MemberSettings, Polled

PARTITIONS: Final = 6
_PACE_S: Final = 0.005  # between records that are produced


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

    def each(self, do: Callable[[Member], None]) -> None:
        """Have all members do something at the same time: some wait for each other."""
        with ThreadPoolExecutor(len(self.members)) as threads:
            list(threads.map(do, list(self.members)))

    def poll_until(self, is_true: Callable[[], bool]) -> None:
        def step() -> bool:
            self.each(Member.poll)
            return is_true()

        eventually(step)

    def poll_until_shared(self, partitions: int = PARTITIONS) -> None:
        """Poll until each partition has one owner, and all members have as many."""

        def is_shared() -> bool:
            sizes = {len(member.last.assignment) for member in self.members}
            owned = [place for member in self.members for place in member.last.assignment]
            return sizes == {partitions // len(self.members)} and len(owned) == len(set(owned)) == partitions

        self.poll_until(is_shared)

    def committed(self) -> dict[int, int]:
        """Return what the group has committed of the topic, by partition."""
        found = self.stage.other.groups.committed(self.group)
        return {partition: offset for (topic, partition), offset in found.items() if topic == self.stage.name}

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *_: object) -> None:
        # Not one by one: who is joining again can leave only when the others have joined or left.
        if self.members:
            self.each(self.leave)


def fill(stage: Stage, count: int = 12, first: int = 0, partitions: int = PARTITIONS) -> list[bytes]:
    """Produce numbers in turns to all partitions, and return them."""
    numbers = range(first, first + count)
    records = [Record(value=b"%d" % number, partition=number % partitions) for number in numbers]
    stage.other.produce(stage.name, records, {})
    return [b"%d" % number for number in numbers]


class Load:
    """Records that are produced while members are polled, and what must be true of those that are consumed."""

    def __init__(self, team: Team, partitions: int = PARTITIONS) -> None:
        self._team: Final = team
        self._partitions: Final = partitions
        self._produced = 0
        self._end: Final = dict.fromkeys(range(partitions), 0)  # by partition: behind the last that anyone consumed
        self._committed: Final = dict.fromkeys(range(partitions), 0)
        self._lock: Final = threading.Lock()  # of both

    def until(self, is_true: Callable[[], bool], *, produce: bool = True) -> None:
        """Produce until something is true, while each member polls and commits in a thread of its own."""
        done = threading.Event()

        def work(member: Member) -> None:
            while not done.is_set():
                self._turn(member)

        def step() -> bool:
            if produce:
                self._produced += len(fill(self._team.stage, self._partitions, self._produced, self._partitions))
            done.wait(_PACE_S)
            return is_true() or any(thread.done() for thread in running)

        with ThreadPoolExecutor(len(self._team.members)) as threads:
            running = [threads.submit(work, member) for member in self._team.members]
            try:
                eventually(step)
            finally:
                done.set()
        for thread in running:
            thread.result()

    def until_shared(self) -> None:
        """Go on until all members have as many partitions, and something of each partition is committed.

        librdkafka (2.16) asks where a partition begins if nothing is committed. If the member's assignment changes
        before the answer it asks again, and half a second later once more, which takes it back from wherever it is.
        """
        each = self._partitions // len(self._team.members)
        self.until(
            lambda: (
                all(len(member.last.assignment) == each for member in self._team.members)
                and all(self._committed.values())
            )
        )

    def _turn(self, member: Member) -> None:
        """Have a member poll and commit, and check what it got."""
        committed = dict(self._committed)
        member.poll()
        with self._lock:
            for record in member.last.records:
                # Nobody goes back behind what is committed, and nobody leaves out what was not consumed.
                assert committed[record.partition] <= record.offset <= self._end[record.partition]
                self._end[record.partition] = max(record.offset + 1, self._end[record.partition])
        with suppress(ClientError):  # a rebalance may be on its way
            member.commit()
            with self._lock:
                for record in member.last.records:
                    self._committed[record.partition] = max(record.offset + 1, self._committed[record.partition])

    def finish(self) -> None:
        """Consume all that is left, and see that everything is committed."""
        ends = dict.fromkeys(range(self._partitions), self._produced // self._partitions)
        self.until(lambda: self._end == ends, produce=False)
        for member in self._team.members:
            member.commit()
        assert self._team.committed() == ends
