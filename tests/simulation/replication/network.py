"""The network of the simulation: messages that are late, lost, or held back for as long as it hurts (`Network`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tests.simulation.replication.world import World

CONTROLLER: Final = 0  # its number; those of brokers are positive
TIMEOUT_MS: Final = 60  # of most requests
Reply = Callable[[Any], None]


class Message:
    """A message under way."""

    __slots__ = ("arrived", "deliver", "is_held", "kind", "receiver", "sender")

    def __init__(self, sender: int, receiver: int, kind: str, deliver: Callable[[], None]) -> None:
        self.sender: Final = sender
        self.receiver: Final = receiver
        self.kind: Final = kind
        self.deliver: Final = deliver
        self.is_held = False
        self.arrived = False

    def arrive(self) -> None:
        """Be delivered, unless it is held back."""
        if not self.is_held and not self.arrived:
            self.arrived = True
            self.deliver()

    def release(self) -> None:
        """Let a message that was held back arrive now."""
        self.is_held = False
        self.arrive()


class Network:
    """Carries requests and answers."""

    def __init__(self, world: World) -> None:
        self.cut: Final[dict[tuple[int, int], int]] = {}  # until when, by sender and receiver
        self.paused: Final[dict[int, int]] = {}  # until when a process is stopped
        self.loses = 0.0  # of messages
        self.is_late = 0.0  # of messages
        self.is_calm = False  # nothing is late
        self.messages: Final[list[Message]] = []  # those that somebody looks at, see `watch`
        self.watched: Final[set[str]] = set()  # kinds of messages
        self.on_sent: Callable[[Message], None] = lambda message: None
        self._world: Final = world

    def is_paused(self, number: int) -> bool:
        """Return whether a process does nothing now."""
        return self.paused.get(number, 0) > self._world.now_ms

    def send(self, sender: int, receiver: int, kind: str, deliver: Callable[[], None]) -> None:
        """Send a message."""
        world = self._world
        random = world.random
        if kind in self.watched:
            message = Message(sender, receiver, kind, deliver)
            self.on_sent(message)
            if message.is_held:
                return
            self.messages.append(message)
            deliver = message.arrive
        if self.cut.get((sender, receiver), 0) > world.now_ms or random.random() < self.loses:
            return
        delay_ms = 1 if self.is_calm else random.choice((1, 1, 2, 3, 5, 30))
        if not self.is_calm and random.random() < self.is_late:
            delay_ms = random.randint(100, 1200)  # it arrives when its sender has long given up
        world.at(delay_ms, deliver)

    def ask(
        self,
        sender: int,
        receiver: int,
        kind: str,
        serve: Callable[[Reply], None],
        on_answer: Callable[[Any], None],
        on_failure: Callable[[], None],
        timeout_ms: int = TIMEOUT_MS,
    ) -> None:
        """Send a request, and have it answered, or fail. A request that was lost may have been carried out."""
        world = self._world
        life, is_open = world.members[sender].life_number, True

        def arrive() -> None:
            if receiver != CONTROLLER:
                if not world.members[receiver].is_up:
                    return
                if self.is_paused(receiver):
                    world.at(self.paused[receiver] - world.now_ms, arrive)
                    return
            serve(answer)

        def answer(content: Any) -> None:
            self.send(receiver, sender, f"{kind} answer", lambda: finish(lambda: on_answer(content)))

        def finish(action: Callable[[], None]) -> None:
            nonlocal is_open
            if self.is_paused(sender):
                world.at(self.paused[sender] - world.now_ms, lambda: finish(action))
            elif is_open and world.members[sender].is_up and world.members[sender].life_number == life:
                is_open = False
                action()

        self.send(sender, receiver, kind, arrive)
        world.at(timeout_ms, lambda: finish(on_failure))
