"""One run of the simulation: `run_schedule`."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple
from unittest.mock import patch
from uuid import UUID

from octavo.log.coordinator.internal_topic import InternalTopic
from octavo.log.directory.data_directory import DataDirectory
from octavo.log.names import CONSUMER_OFFSETS, TRANSACTION_STATE
from tests.crash.disk import Image, read_image
from tests.crash.storage import FastStorage
from tests.simulation.checks.check import Check
from tests.simulation.checks.classic import INSTANCES, ClassicCheck
from tests.simulation.checks.commits import CommitCheck
from tests.simulation.checks.consumer import ConsumerCheck
from tests.simulation.checks.ending import Ending
from tests.simulation.checks.transactions import TransactionCheck
from tests.simulation.clients.administering import Administrator
from tests.simulation.clients.classic import ClassicMember
from tests.simulation.clients.committing import SimpleCommitter
from tests.simulation.clients.consumer import ConsumerMember
from tests.simulation.clients.transactions import GROUP, TransactionalProducer
from tests.simulation.machine import Clock
from tests.simulation.wire import Membership
from tests.simulation.world import Client, Faults, World

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
MIXED: Final = "mixed"  # has members of both protocols
SIMPLE: Final = "simple"
_BUSY_MS: Final = 35_000
_MEMORY: Final = Path("/dev/shm")


class Result(NamedTuple):
    """What came of a run."""

    trace: list[str]
    requests: int
    kills: int
    committed: int  # transactions


class Cast:
    """Who takes part."""

    def __init__(self, world: World) -> None:
        random = world.random
        parts = random.choice((CLASSIC, CONSUMER, MIXED, "transactions", "transactions", "everything"))
        is_all = parts == "everything"
        few = 2 if is_all else random.randrange(2, 5)
        self.classic = [
            ClassicMember(world, f"classic-{number}", CLASSIC, instance=_instance(world))
            for number in range(few if is_all or parts == CLASSIC else 0)
        ]
        self.consumers = [
            ConsumerMember(world, f"consumer-{number}", CONSUMER, instance=_own_instance(world, number))
            for number in range(few if is_all or parts == CONSUMER else 0)
        ]
        if parts == MIXED:
            self.classic += [
                ClassicMember(world, f"classic-{number}", MIXED, is_among_its_own=False) for number in range(2)
            ]
            self.consumers += [ConsumerMember(world, f"consumer-{number}", MIXED) for number in range(2)]
        is_2 = {each: world.happens(0.6) for each in ("t1", "t2")}  # one id is used by one version only
        ids = [random.choice(list(is_2)) for _ in range(random.randrange(1, 4))]
        self.producers = [
            TransactionalProducer(world, f"producer-{number}", each, is_2=is_2[each])
            for number, each in enumerate(ids if parts == "transactions" else ())
        ]
        if is_all or world.happens(0.3):  # members read, and produce and commit in transactions
            self.producers += [
                TransactionalProducer(world, f"of {each.name}", name, is_2=is_2[name], as_whom=_as_whom(each))
                for each, name in zip(self._some_members(world), ids, strict=False)
            ]
        self.committers = [SimpleCommitter(world, SIMPLE, SIMPLE), SimpleCommitter(world, "other", GROUP)]
        deletes_topics = world.happens(0.2) and not world.machine.is_expiring
        groups = [CLASSIC, CONSUMER, MIXED, SIMPLE, SIMPLE, GROUP]
        self.administrator = Administrator(world, groups, deletes_topics=deletes_topics)

    def _some_members(self, world: World) -> list[ClassicMember | ConsumerMember]:
        members: list[ClassicMember | ConsumerMember] = [*self.classic, *self.consumers]
        world.random.shuffle(members)
        return members

    @property
    def everybody(self) -> Iterable[Client]:
        """All clients."""
        return [*self.classic, *self.consumers, *self.producers, *self.committers, self.administrator]

    def settle(self) -> None:
        """Have everybody do only what is needed from now on."""
        for each in self.everybody:
            each.is_settling = True


def _as_whom(member: ClassicMember | ConsumerMember) -> Callable[[], Membership]:
    return lambda: member.membership


def _instance(world: World) -> str | None:
    return str(world.random.choice(INSTANCES)) if world.happens(0.4) else None  # some have the same


def _own_instance(world: World, number: int) -> str | None:
    return f"instance-{number}" if world.happens(0.3) else None


class Schedule:
    """A world in which much goes wrong for a while, and then nothing any more."""

    def __init__(self, seed: int, folder: Path, *, trace: bool) -> None:
        self._folder: Final = folder
        self.commits: Final = CommitCheck(lambda: self.world.now_ms, {SIMPLE, GROUP})
        self.transactions: Final = TransactionCheck(self.commits)
        self.checks: Final[list[Check]] = [self.transactions, self.commits]
        self.world: Final = World(seed, folder, self.checks, trace=trace)
        self.classic: Final = ClassicCheck(lambda: self.world.now_ms, {CLASSIC})
        self.checks.append(self.classic)
        self.checks.append(ConsumerCheck(lambda: self.world.now_ms, {CONSUMER, MIXED}))

    def run(self) -> None:
        """Run everything. Raises `Violation`."""
        world = self.world
        for path, content in _fresh().items():
            if content is None:
                (self._folder / path).mkdir()
            else:
                (self._folder / path).write_bytes(content)
        is_expiring = world.happens(0.07)
        self.commits.is_expiring = self.classic.is_expiring = world.machine.is_expiring = is_expiring
        world.start()
        cast = Cast(world)
        self._begin(cast)
        world.run(world.now_ms + _BUSY_MS)
        world.faults = Faults()
        world.say("from here on nothing goes wrong")
        cast.settle()
        others = [*cast.producers, *cast.committers, cast.administrator]
        Ending(world, self.commits, self.transactions, cast.classic, cast.consumers, others).check()

    def _begin(self, cast: Cast) -> None:
        world, random = self.world, self.world.random
        world.faults = Faults(
            append_fails=random.choice((0, 0, 0.02, 0.1)),
            append_kills=random.choice((0, 0, 0.01, 0.03)),
            is_lost=random.choice((0, 0.02, 0.1)),
            is_late=random.choice((0, 0.02, 0.1)),
        )
        self.commits.appends_fail = world.faults.append_fails > 0
        world.say(world.faults)
        for each in cast.everybody:
            world.after(random.randrange(10_000), lambda each=each: world.begin(each))  # type: ignore[misc] # mypy does not know the type of a default
        if world.happens(0.3):
            world.after(random.randrange(_BUSY_MS), world.kill)


@cache
def _fresh() -> Image:
    """Return the files of a directory with two topics and the internal ones, which all schedules begin with."""
    with tempfile.TemporaryDirectory() as folder:
        with DataDirectory.open(folder, storage=FastStorage(), clock=Clock().wall_ms) as directory:
            for number, (name, partitions) in enumerate((("a", 2), ("b", 1)), start=1):
                directory.create_topic(name, partitions, topic_id=UUID(int=number))
            for topic in (CONSUMER_OFFSETS, TRANSACTION_STATE):
                InternalTopic(directory, topic).partition_for("")
        return read_image(Path(folder))


def run_schedule(seed: int, *, trace: bool = False) -> Result:
    """Run the simulation from a seed. Raises `Violation`, and whatever else goes wrong."""
    folder = Path(tempfile.mkdtemp(prefix="octavo-simulation-", dir=_MEMORY if _MEMORY.is_dir() else None))
    schedule = Schedule(seed, folder, trace=trace)
    world = schedule.world
    try:
        # Otherwise what the process has read before decides when kernels are loaded, and appends wait for that.
        with patch.dict(os.environ, OCTAVO_KERNELS="interpreted"):
            schedule.run()
    except BaseException as error:
        error.add_note("\n".join([*world.trace, f"replay: python -m tests.simulation --seed {seed} --trace"]))
        raise
    finally:
        world.machine.disk.restart()
        shutil.rmtree(folder, ignore_errors=True)
    return Result(world.trace, world.requests, world.kills, schedule.transactions.committed)
