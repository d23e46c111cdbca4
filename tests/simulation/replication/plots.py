"""Faults that have to come in a certain order to do harm. Each plot waits for its next chance, or for ever."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from octavo.cluster.messages import TopicIdPartition
from tests.simulation.replication.network import CONTROLLER, Message

if TYPE_CHECKING:
    from tests.simulation.replication.faults import Faults

_LOOK_MS: Final = 4
Condition = Callable[[], bool]


class Plot(ABC):
    """A story that is told step by step: it yields what has to be so before it goes on."""

    def __init__(self, faults: Faults) -> None:
        self.faults: Final = faults
        self.world: Final = faults.world
        random = self.world.random
        self.partition: Final[TopicIdPartition] = random.choice(self.world.partitions)
        self.held: Message | None = None
        self._steps: Final = self.steps()
        self._condition: Condition = lambda: True

    def begin(self) -> None:
        """Tell it."""
        self._go_on()

    def _go_on(self) -> None:
        if self.faults.is_over:
            self._release()
            return
        while self._condition():
            condition = next(self._steps, None)
            if condition is None:
                self._release()
                return
            self._condition = condition
        self.world.at(_LOOK_MS, self._go_on)

    def _release(self) -> None:
        self.world.is_quiet = False
        if self.held is not None:
            message, self.held = self.held, None
            self.world.network.on_sent = lambda message: None
            message.release()

    @abstractmethod
    def steps(self) -> Iterator[Condition]:
        """Yield what has to be so, one after the other."""

    # ---------------------------------------------------------------------------------------------------- what is seen

    @property
    def isr(self) -> set[int]:
        """The replicas in sync."""
        return set(self.world.controller.partitions[self.partition].isr)

    @property
    def leader(self) -> int:
        """The leader; -1 if there is none."""
        return self.world.controller.partitions[self.partition].leader

    def is_full(self) -> bool:
        """Whether all are in sync, and there is a leader."""
        return len(self.isr) == len(self.world.members) and self.leader > 0

    def hold(self, kind: str, is_it: Callable[[Message], bool]) -> None:
        """Hold back the next message of a kind."""
        network = self.world.network
        network.watched.add(kind)

        def look(message: Message) -> None:
            if self.held is None and message.kind == kind and is_it(message):
                message.is_held = True
                self.held = message
                self.world.say(f"{kind} from {message.sender} to {message.receiver} is held back")

        network.on_sent = look

    def wait(self, time_ms: int) -> Condition:
        """Return the condition that some time has passed."""
        until_ms = self.world.now_ms + time_ms
        return lambda: self.world.now_ms >= until_ms

    def two_others(self) -> tuple[int, int]:
        """Return two replicas besides the leader, in any order."""
        one, other = self.world.random.sample([each for each in self.world.members if each != self.leader], 2)
        return one, other


class LateAnswer(Plot):
    """A leader hears late that a replica is out of sync. Meanwhile it was deposed, and leads again."""

    def steps(self) -> Iterator[Condition]:
        """Cut a replica off, hold back the answer to the change, and have another lead until it has joined again."""
        yield self.is_full
        leader, (lost, other), world = self.leader, self.two_others(), self.world
        world.say(f"plot: {leader} hears late that {lost} is out of sync")
        self.faults.cut(leader, lost, world.now_ms + 5000)
        self.hold("change answer", lambda message: message.receiver == leader)
        yield lambda: self.held is not None and lost not in self.isr
        world.controller.move_leader(self.partition, other)
        yield self.is_full
        world.controller.move_leader(self.partition, leader)
        yield lambda: world.members[leader].led(self.partition) is not None
        yield self.wait(world.random.randint(0, 60))


class FetchOfALostDisk(Plot):
    """A Fetch arrives when its sender is back, with a new disk."""

    def steps(self) -> Iterator[Condition]:
        """Hold back a Fetch, replace the disk of its sender, and let it arrive when the broker is unfenced."""
        yield self.is_full
        leader, (follower, _), world = self.leader, self.two_others(), self.world
        world.fetch_sizes = (1, 2)
        yield self.wait(world.random.randint(300, 800))
        self.hold("fetch", lambda message: (message.sender, message.receiver) == (follower, leader))
        world.is_quiet = True
        yield lambda: self.held is not None
        yield lambda: self.faults.kill(follower, wipe=True)
        world.say(f"plot: a Fetch of {follower} arrives late")
        self.faults.start(world.members[follower])
        yield lambda: world.is_whole(follower) and world.controller.is_active(follower)
        yield self.wait(world.random.randint(0, 100))


class ChangeForALostDisk(Plot):
    """The change that lets a replica in arrives when that is back, with a new disk."""

    def steps(self) -> Iterator[Condition]:
        """Cut a replica off for a while, hold back the change that has it join, and replace its disk."""
        yield self.is_full
        leader, (follower, _), world = self.leader, self.two_others(), self.world
        self.faults.cut(leader, follower, world.now_ms + 600)
        yield lambda: follower not in self.isr
        world.network.cut.pop((leader, follower), None)
        world.network.cut.pop((follower, leader), None)
        self.hold("change", lambda message: message.sender == leader and message.receiver == CONTROLLER)
        yield lambda: self.held is not None
        world.fetch_sizes = (1, 2)
        yield lambda: self.faults.kill(follower, wipe=True)
        world.say(f"plot: {follower} joins late")
        self.faults.start(world.members[follower])
        yield lambda: world.is_whole(follower) and world.controller.is_active(follower)
        yield self.wait(world.random.randint(0, 100))


class LastReplicaStanding(Plot):
    """The last replica in sync loses what was not on its disk, and is the first one back (KIP-966)."""

    def steps(self) -> Iterator[Condition]:
        """Have all but the leader fenced, cut the power of the leader, and let the others come back after it."""
        yield self.is_full
        leader, others, world = self.leader, self.two_others(), self.world
        yield self.wait(world.random.randint(0, 300))
        for other in others:
            self.faults.cut(other, CONTROLLER, world.now_ms + 5000)
        yield lambda: self.isr == {leader}
        yield lambda: self.faults.kill(leader, wipe=False)
        world.say(f"plot: {leader} was the last one, and comes back first")
        self.faults.start(world.members[leader])
        yield lambda: world.is_whole(leader) and world.controller.is_active(leader)
        yield self.wait(world.random.randint(0, 100))
        for other in others:
            self.faults.cut(other, CONTROLLER, world.now_ms)


PLOTS: Final[tuple[type[Plot], ...]] = (LateAnswer, FetchOfALostDisk, ChangeForALostDisk, LastReplicaStanding)
