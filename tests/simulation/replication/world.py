"""The world of the simulation: the time, clients, brokers and their controller, and what must be true (`World`)."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from functools import partial
from itertools import combinations
from random import Random
from typing import Any, Final, Protocol
from uuid import UUID

from octavo.cluster.leading import LedPartition
from octavo.cluster.messages import TopicIdPartition
from octavo.schemas.metadata.topics import PartitionRecord
from tests.simulation.replication.checks import Checks, Replica, promise
from tests.simulation.replication.controller import Controller
from tests.simulation.replication.faults import Faults
from tests.simulation.replication.member import Member
from tests.simulation.replication.network import Network, Reply
from tests.simulation.replication.plots import Plot

REPLICAS: Final = (1, 2, 3)
MIN_ISR: Final = 2
TOPIC_ID: Final = UUID(int=1000)
BEGINNING_MS: Final = 2000  # at most, until everybody is there
HEALING_MS: Final = 6000  # at most


class Node(Protocol):
    """A broker, as the world sees it."""

    life_number: int
    is_up: bool

    @property
    def number(self) -> int: ...
    @property
    def broker_epoch(self) -> int: ...
    @property
    def waits(self) -> int: ...
    def replica(self, partition: TopicIdPartition) -> Replica: ...
    def led(self, partition: TopicIdPartition) -> LedPartition | None: ...
    def record_of(self, partition: TopicIdPartition) -> PartitionRecord | None: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def kill(self, *, wipe: bool) -> None: ...
    def flush(self) -> None: ...
    def poll(self) -> None: ...
    def produce(self, partition: TopicIdPartition, values: list[int]) -> None: ...
    def consume(self) -> None: ...


class World:
    """One run. Everything in it follows from the seed."""

    plotted = 0.25  # how many of the runs have a plot

    def __init__(
        self,
        seed: int,
        *,
        trace: bool = False,
        plot: type[Plot] | None = None,
        make: Callable[[World, int], Node] = Member,
    ) -> None:
        """Prepare everything.

        plot: the one to be told; otherwise it is drawn, and there may be none
        make: makes a broker, which begins at once
        """
        self.seed: Final = seed
        self.plot: Final = plot
        self.random: Final = Random(seed)
        self.now_ms = 0
        self.trace: Final[list[str]] = []
        self._has_trace: Final = trace
        numbers = range(self.random.choice((1, 1, 2)))
        self.partitions: Final = tuple(TopicIdPartition(TOPIC_ID, number) for number in numbers)
        self.checks: Final = {partition: Checks(partition) for partition in self.partitions}
        self.controller: Final = Controller(MIN_ISR)
        self.controller.on_new_isr = self._check_new_isr
        self.network: Final = Network(self)
        self.no_commits_until = 0
        self.is_quiet = False  # nobody produces
        self.fetch_sizes: tuple[int, ...] = self.random.choice(((1, 3, 50), (2, 4)))  # the second: it takes long
        self._events: Final[list[tuple[int, int, Callable[[], None]]]] = []
        self._number = 0
        self._value = 0
        self.members: Final[dict[int, Node]] = {}
        self._make: Final = make

    def say(self, what: object) -> None:
        """Note what happens, for somebody who looks at this seed."""
        if self._has_trace:
            self.trace.append(f"{self.now_ms:5d} {what}")

    def run(self) -> None:
        """Let time pass with faults, and then without; in the end all is well. Raises `Broken`."""
        self.network.is_calm = True
        self.members.update((number, self._make(self, number)) for number in REPLICAS)
        for member in self.members.values():
            self._repeat(5, 25, partial(self._poll, member))
        self._repeat(20, 40, lambda: self.controller.expire(self.now_ms))
        self._repeat(1, 20, self._commit)
        self._pass_until(BEGINNING_MS, lambda: all(map(self.controller.is_active, REPLICAS)))
        self._create()
        self._repeat(4, 25, self._produce)
        self._repeat(10, 70, self._consume)
        self._repeat(60, 500, self._flush)
        self.network.is_calm = False
        faults = Faults(self)
        faults.begin()
        self._pass_until(self.now_ms + faults.time_ms)
        faults.end()
        self.say("from here on nothing goes wrong")
        self.fetch_sizes, self.is_quiet = (50,), False
        self._pass_until(self.now_ms + HEALING_MS, self._is_well)
        self._check_end()

    def _create(self) -> None:
        first = self.random.sample(REPLICAS, len(REPLICAS))
        orders = [tuple(first[number:] + first[:number]) for number in range(len(self.partitions))]
        self.controller.create(zip(self.partitions, orders, strict=True))
        self.controller.log.commit()

    # ------------------------------------------------------------------------------------------------------------ time

    def at(self, delay_ms: int, event: Callable[[], None]) -> None:
        """Have something happen later."""
        self._number += 1
        heapq.heappush(self._events, (self.now_ms + delay_ms, self._number, event))

    def _repeat(self, least_ms: int, most_ms: int, event: Callable[[], None]) -> None:
        def again() -> None:
            event()
            self.at(self.random.randint(least_ms, most_ms), again)

        self.at(self.random.randint(0, most_ms), again)

    def _pass_until(self, time_ms: int, is_over: Callable[[], bool] | None = None) -> None:
        """Let time pass, at most until something is so."""
        look_ms = self.now_ms
        events, pop = self._events, heapq.heappop
        while events and events[0][0] <= time_ms:
            self.now_ms, _, event = pop(events)
            event()
            if is_over is not None and self.now_ms >= look_ms:
                look_ms = self.now_ms + 10
                if is_over():
                    return
        self.now_ms = time_ms

    def when_committed(self, serve: Callable[[], Any]) -> Callable[[Reply], None]:
        """Return how the controller serves what it writes: it answers when that is committed."""

        def served(reply: Reply) -> None:
            log = self.controller.log
            answer, epoch, written = serve(), log.epoch, len(log.images)

            def send() -> None:
                if log.epoch != epoch:
                    return  # another controller has taken over
                if log.committed < written:
                    self.at(3, send)
                else:
                    reply(answer)

            send()

        return served

    def _commit(self) -> None:
        if self.no_commits_until <= self.now_ms:
            self.controller.log.commit()
            if self.random.random() < 0.02:
                self.controller.log.take_snapshot()

    # ---------------------------------------------------------------------------------------------------------- clients

    def _poll(self, member: Node) -> None:
        if member.is_up and not self.network.is_paused(member.number):
            member.poll()

    def _up(self) -> list[Node]:
        return [
            member for number, member in self.members.items() if member.is_up and not self.network.is_paused(number)
        ]

    def _produce(self) -> None:
        for member in () if self.is_quiet else self._up():
            for partition in self.partitions:
                values = [self._value + each for each in range(self.random.choice((1, 1, 2, 5)))]
                self._value += len(values)
                member.produce(partition, values)

    def _consume(self) -> None:
        for member in self._up():
            member.consume()
        self._check_logs()

    def _check_logs(self) -> None:
        for partition, checks in self.checks.items():
            for one, other in combinations(self.members.values(), 2):
                checks.match(one.replica(partition), other.replica(partition))

    def _flush(self) -> None:
        for member in self._up():
            member.flush()

    # ---------------------------------------------------------------------------------------------------- what is true

    def is_whole(self, number: int) -> bool:
        """Return whether a broker is the one that the controller knows, with everything that it ever had."""
        member, known = self.members[number], self.controller.brokers.get(number)
        return member.is_up and known is not None and known.broker_epoch == member.broker_epoch

    def _check_new_isr(self, partition: TopicIdPartition, before: PartitionRecord) -> None:
        now = self.controller.partitions[partition]
        self.say(f"{partition.partition}: in sync are {now.isr} after {before.isr}, led by {now.leader}")
        leader = self.members[now.leader]
        led = leader.led(partition) if leader.is_up else None
        for number in set(now.isr) - set(before.isr):
            promise("f", self.controller.is_active(number), f"broker {number} joins, and is fenced")
            if led is not None and led.leader_epoch == now.leader_epoch and self.is_whole(number):
                end, needed = self.members[number].replica(partition).end_offset, led.high_watermark
                promise("f", end >= needed, f"broker {number} joins with {end}, behind the high watermark {needed}")
                start = led.epoch_start
                promise("f", end >= start, f"broker {number} joins with {end}, before the epoch begins at {start}")

    def raised(self, leader: Node, led: LedPartition, high_watermark: int) -> None:
        """A leader has raised its high watermark."""
        partition, now = led.partition, self.controller.partitions[led.partition]
        self.checks[partition].raised(
            leader.number,
            leader.life_number,
            led.leader_epoch,
            high_watermark,
            isr=len(led.isr),
            min_isr=MIN_ISR,
        )
        if led.leader_epoch == now.leader_epoch:
            for number in now.isr:
                if self.is_whole(number):
                    end = self.members[number].replica(partition).end_offset
                    promise("d", high_watermark <= end, f"{high_watermark} is high, and broker {number} ends at {end}")

    def _is_well(self) -> bool:
        partitions = self.controller.partitions.values()
        return (
            all(member.is_up and member.waits < 20 for member in self.members.values())
            and all(set(record.isr) == set(REPLICAS) for record in partitions)
            and all(self._is_led(partition) for partition in self.partitions)
        )

    def _is_led(self, partition: TopicIdPartition) -> bool:
        now = self.controller.partitions[partition]
        leader = self.members[now.leader]
        led = leader.led(partition)
        known = len(self.checks[partition].known)
        return led is not None and led.leader_epoch == now.leader_epoch and led.high_watermark >= known

    def _check_end(self) -> None:
        if not self._is_well():
            promise("i", False, f"after {HEALING_MS} ms without faults not all is well: {self._state()}")
        for partition, checks in self.checks.items():
            now = self.controller.partitions[partition]
            checks.led(now.leader, now.leader_epoch + 1, self.members[now.leader].replica(partition))
        self._check_logs()

    def _state(self) -> list[str]:
        partitions = self.controller.partitions.values()
        return [
            *(f"{record.partition_id}: led by {record.leader}, in sync {record.isr}" for record in partitions),
            *(f"{number}: up {member.is_up}, {member.waits} wait" for number, member in self.members.items()),
        ]

    @property
    def acknowledged(self) -> int:
        """How many producers were told that all is well."""
        return sum(checks.acknowledged for checks in self.checks.values())


def run_seed(seed: int, *, trace: bool = False, plot: type[Plot] | None = None) -> World:
    """Run the world of a seed. Raises `Broken`, and whatever else goes wrong, with a note how to see it again."""
    world = World(seed, trace=trace, plot=plot)
    run(world)
    return world


def run(world: World, *options: str) -> None:
    """Run a world. `options`: of the command that does so."""
    try:
        world.run()
    except BaseException as error:
        plot = [] if world.plot is None else [f"--plot {world.plot.__name__}"]
        seed = f"--seed {world.seed} --trace"
        command = " ".join(["python -m tests.simulation.replication", *options, *plot, seed])
        error.add_note("\n".join([*world.trace, f"replay: {command}"]))
        raise
