"""What goes wrong in the simulation: `Faults`. Each run has some kinds of faults, more or less often."""

from __future__ import annotations

from functools import partial
from itertools import permutations
from typing import TYPE_CHECKING, Final

from octavo.cluster.messages import TopicIdPartition
from tests.simulation.replication.elections import RECOVERING, elr_of
from tests.simulation.replication.network import CONTROLLER
from tests.simulation.replication.plots import PLOTS

if TYPE_CHECKING:
    from tests.simulation.replication.world import Node, World

KINDS: Final = (
    "cut",
    "cut one way",
    "pause",
    "kill",
    "replaced disk",
    "stop",
    "from the controller",
    "fail over",
    "moves",
)


BUSY_MS: Final = 1500


class Faults:
    """The faults of one run."""

    def __init__(self, world: World) -> None:
        random = world.random
        self._world: Final = world
        self._damaged: Final[set[int]] = set()  # brokers that have lost something, and are not in sync again
        self.is_over = False
        plot = random.choice(PLOTS) if random.random() < world.plotted else None
        plot = world.plot or plot
        self._plot: Final = None if plot is None else plot(self)
        self._kinds: Final = random.sample(KINDS, random.randint(1, len(KINDS)))
        self._pause_ms: Final = random.choice((60, 150, 400) if self._plot is None else (400, 800, 3000))  # on average

    def begin(self) -> None:
        """Have things go wrong from now on."""
        world, random = self._world, self._world.random
        world.network.loses = random.choice((0, 0.02, 0.05))
        world.network.is_late = random.choice((0, 0.01, 0.05))
        world.say(f"{self._kinds} about every {self._pause_ms} ms")
        if self._plot is not None:
            self._plot.begin()
        world.at(random.randint(0, 200), self._next)

    @property
    def time_ms(self) -> int:
        """How long they go on."""
        return BUSY_MS if self._plot is None else 2 * BUSY_MS

    @property
    def world(self) -> World:
        """The world in which they happen."""
        return self._world

    def end(self) -> None:
        """Have nothing go wrong any more."""
        world = self._world
        self.is_over = True
        world.network.loses, world.network.is_late, world.network.is_calm = 0.0, 0.0, True
        world.network.cut.clear()
        world.network.paused.clear()
        for message in world.network.messages:
            if message.is_held:
                message.release()
        self._restart()

    def _restart(self) -> None:
        for member in self._world.members.values():
            self.start(member)
        self._world.at(50, self._restart)

    def start(self, member: Node) -> None:
        """Start a broker, if it is not up."""
        if not member.is_up:
            self._world.say(f"broker {member.number} starts")
            member.start()

    # ------------------------------------------------------------------------------------------------------ by chance

    def _next(self) -> None:
        if not self.is_over:
            world = self._world
            self._happen(world.random.choice(self._kinds))
            world.at(world.random.randint(self._pause_ms // 2, self._pause_ms * 3 // 2), self._next)

    def _happen(self, kind: str) -> None:
        world = self._world
        random, network = world.random, world.network
        number = random.choice(list(world.members))
        until_ms = world.now_ms + random.choice((30, 100, 400, 1000))
        world.say(f"{kind}, broker {number}, until {until_ms}")
        if kind == "cut":
            self.cut(number, random.choice([each for each in world.members if each != number]), until_ms)
        elif kind == "cut one way":
            network.cut[random.choice(list(permutations((CONTROLLER, *world.members), 2)))] = until_ms
        elif kind == "from the controller":
            self.cut(number, CONTROLLER, until_ms)
        elif kind == "fail over":
            self._fail_over(random.choice((0, 30, 200)))
        elif kind == "moves":
            for delay_ms in (0, random.randint(5, 40), random.randint(40, 80)):
                world.at(delay_ms, self._move)
        elif kind == "pause":
            network.paused[number] = until_ms
        elif kind in ("kill", "replaced disk"):
            if self.kill(number, wipe=kind == "replaced disk"):
                world.at(until_ms - world.now_ms, partial(self.start, world.members[number]))
        elif kind == "stop" and self._may_stop(number):
            world.members[number].stop()
            world.at(until_ms - world.now_ms + 500, partial(self.start, world.members[number]))

    def cut(self, one: int, other: int, until_ms: int) -> None:
        """Have nothing get through between two nodes."""
        self._world.network.cut[one, other] = self._world.network.cut[other, one] = until_ms

    def kill(self, number: int, *, wipe: bool) -> bool:
        """Kill a broker, if others have everything. Returns whether it was done."""
        member = self._world.members[number]
        if not member.is_up or not self._may_lose(number):
            return False
        self._damaged.add(number)
        member.kill(wipe=wipe)
        return True

    def _move(self) -> None:
        world = self._world
        if not self.is_over:
            world.controller.move_leader(
                world.random.choice(world.partitions), world.random.choice(list(world.members))
            )

    def _fail_over(self, stall_ms: int) -> None:
        world = self._world
        world.no_commits_until = world.now_ms + stall_ms + 1
        world.at(stall_ms // 3, self._move)
        world.at(stall_ms, lambda: world.controller.fail_over(world.now_ms))

    # ---------------------------------------------------------------------------------------------------------- budget

    def _may_lose(self, number: int) -> bool:
        """Whether another has everything: fewer than `min.insync.replicas` may lose something at a time."""
        world = self._world
        in_sync = set(world.members)
        for partition, now in world.controller.partitions.items():
            assert now.leader_recovery_state != RECOVERING, "there was an unclean election"
            complete = {each for each in self._complete(partition) if world.is_whole(each)}
            in_sync &= complete & set(now.isr)
            if not complete - {number}:
                return False
        self._damaged.difference_update(in_sync)
        return not self._damaged - {number}

    def _complete(self, partition: TopicIdPartition) -> set[int]:
        """The replicas that may be elected, whatever becomes of what the controller has not committed."""
        controller = self._world.controller
        now, committed = controller.partitions[partition], controller.committed_partitions[partition]
        return {*now.isr, *elr_of(now)} & {*committed.isr, *elr_of(committed)}

    def _may_stop(self, number: int) -> bool:
        """Whether it is registered, and a whole replica in sync is left: otherwise there may be no leader any more."""
        world = self._world
        member = world.members[number]
        if not member.is_up or member.broker_epoch < 0:
            return False
        for partition in world.partitions:
            complete = self._complete(partition)
            if number in complete and not any(map(world.is_whole, complete - {number})):
                return False
        return True
