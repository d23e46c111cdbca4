"""What happens when: the clock, the network, the disk's faults and the clients of one simulation: `World`."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final
from uuid import UUID

from octavo.broker.answers import Parts
from octavo.broker.wire.messages import Struct
from tests.crash.storage import PowerCut
from tests.simulation.checks.check import Check
from tests.simulation.disk import Fault, SimulatedDisk
from tests.simulation.machine import Clock, Machine
from tests.simulation.wire import Ask

Doing = Generator["Ask | int", Struct | None, None]  # a client: requests, and milliseconds to sleep
_FAILING: Final = (Fault.FAILS, Fault.FAILS_HALFWAY)
_KILLING: Final = (Fault.KILLED_BEFORE, Fault.KILLED_HALFWAY, Fault.KILLED_AFTER)
_LONG_MS: Final = 8_000  # the longest delay of a request, an answer or another thread


@dataclass
class Faults:
    """How likely it is that something goes wrong."""

    append_fails: float = 0.0
    append_kills: float = 0.0
    is_lost: float = 0.0  # a request or an answer
    is_late: float = 0.0  # a request, an answer or another thread


class Client:
    """Somebody who asks."""

    name: str
    patience_ms = 20_000
    is_in_order = False  # nothing that it asks comes to the broker after it has given up
    is_over = False  # it asks nothing any more
    is_settling = False  # nothing goes wrong any more, and it does only what is needed

    def run(self) -> Doing:
        """Ask, and sleep."""
        raise NotImplementedError


class World:
    """All that happens from a seed."""

    def __init__(self, seed: int, folder: Path, checks: Sequence[Check], *, trace: bool = False) -> None:
        self.random: Final = Random(seed)
        self._ids: Final = Random(seed + 1)
        self.clock: Final = Clock()
        self.faults = Faults()
        self.trace: Final[list[str]] = []
        self.number = 0  # of values and names
        self._is_traced: Final = trace
        self._checks: Final = checks
        self.requests = 0
        self.kills = 0
        self._events: Final[list[tuple[int, int, Callable[[], None]]]] = []
        self._event_number = 0
        self._handled: tuple[str, Ask] | None = None  # what the machine is at
        self.machine: Final = Machine(
            SimulatedDisk(folder, self._choose_fault), self.clock, self.new_id, self._submit_work
        )
        self.is_up = False
        self._has_acted = False  # the machine has done something, so that it may have more to do, and at another time

    # ------------------------------------------------------------------------------------------------------ for clients

    @property
    def now_ms(self) -> int:
        """The time since the start."""
        return self.clock.now_ms

    def new_id(self) -> UUID:
        """Return an id that nobody has."""
        return UUID(int=self._ids.getrandbits(128))

    def new_number(self) -> int:
        """Return a number that nobody has."""
        self.number += 1
        return self.number

    def happens(self, likelihood: float) -> bool:
        """Decide whether something happens."""
        return self.random.random() < likelihood

    def say(self, *words: object) -> None:
        """Add a line to the trace."""
        if self._is_traced:
            self.trace.append(f"{self.now_ms:>7} {' '.join(map(str, words))}")

    def begin(self, client: Client) -> None:
        """Let a client do what it does."""
        self._go_on(client, client.run(), None)

    def _go_on(self, client: Client, doing: Doing, answer: Struct | None) -> None:
        try:
            wanted = doing.send(answer)
        except StopIteration:
            client.is_over = True
            self.say(client.name, "ends")
            return
        if isinstance(wanted, Ask):
            self._ask(client, doing, wanted)
        else:
            self.after(wanted, lambda: self._go_on(client, doing, None))

    def _ask(self, client: Client, doing: Doing, ask: Ask) -> None:
        self.say(client.name, "asks", ask.name, ask.version, ask.content)
        frame = ask.frame(client.name)
        is_over = False

        def end(answer: Struct | None) -> None:
            nonlocal is_over
            if not is_over:
                is_over = True
                self._go_on(client, doing, answer)

        def arrive() -> None:
            if not self.is_up or (is_over and client.is_in_order):
                return
            self.requests += 1
            for check in self._checks:
                check.arrived(client.name, ask)
            incarnation = self.machine.incarnation
            self._handling(client.name, ask, lambda: self.machine.handle(frame, lambda parts: give(incarnation, parts)))

        def give(incarnation: int, parts: Parts | None) -> None:
            if parts is None or incarnation != self.machine.incarnation:
                return
            answer = ask.read(parts)
            self.say(client.name, "is answered", ask.name, answer)
            for check in self._checks:
                check.answered(client.name, ask, answer)
            if not self.happens(self.faults.is_lost):
                self.after(self._delay(), lambda: end(answer))

        if not self.happens(self.faults.is_lost):
            self.after(self._delay(), arrive)
        self.after(client.patience_ms, lambda: end(None))

    def _delay(self) -> int:
        if self.happens(self.faults.is_late):
            return self.random.randrange(_LONG_MS)
        return self.random.randrange(4)

    # ---------------------------------------------------------------------------------------------------------- events

    def after(self, delay_ms: int, event: Callable[[], None]) -> None:
        """Have something happen after some time."""
        self._event_number += 1
        heapq.heappush(self._events, (self.now_ms + delay_ms, self._event_number, event))

    def run(self, until_ms: int, is_done: Callable[[], bool] = lambda: False) -> bool:
        """Let time pass. Returns whether all was done before the time was over."""
        self._has_acted = True
        while True:
            next_ms = self._events[0][0] if self._events else math.inf
            if self._has_acted:
                broker_ms = self.machine.next_ms if self.is_up else math.inf
                self._has_acted = False
            if min(next_ms, broker_ms) > until_ms:
                self.clock.now_ms = until_ms
                return is_done()
            self.clock.now_ms = max(self.now_ms, int(min(next_ms, broker_ms)))
            if next_ms <= broker_ms:
                heapq.heappop(self._events)[2]()
            if self.is_up and (self._has_acted or broker_ms <= self.now_ms):
                self._guarded(self.machine.turn)
            if is_done():
                return True

    def _submit_work(self, work: Callable[[], None]) -> None:
        """Have something done by another thread, so to speak, unless the process is dead by then."""
        incarnation, handled = self.machine.incarnation, self._handled

        def do() -> None:
            if self.is_up and incarnation == self.machine.incarnation:
                self._handled = handled
                self._guarded(work)
                self._handled = None

        self.after(self._delay(), do)

    def _handling(self, who: str, ask: Ask, work: Callable[[], None]) -> None:
        self._handled = (who, ask)
        self._guarded(work)
        self._handled = None

    def _guarded(self, work: Callable[[], None]) -> None:
        self._has_acted = True
        try:
            work()
        except PowerCut:
            self.say("the process is killed")
            self._die()

    # ---------------------------------------------------------------------------------------------------------- faults

    def _choose_fault(self) -> Fault:
        faults = self.faults
        chosen = Fault.NONE
        if self.happens(faults.append_fails):
            chosen = self.random.choice(_FAILING)
        elif self.happens(faults.append_kills):
            chosen = self.random.choice(_KILLING)
        if chosen is not Fault.NONE:
            self.say("an append:", chosen.name)
        return chosen

    def kill(self) -> None:
        """Kill the process between two of its steps."""
        if self.is_up:
            self.say("the process is killed from outside")
            self._die()

    def _die(self) -> None:
        for check in self._checks:
            check.died(self._handled)
        self._handled = None
        self.kills += 1
        self._has_acted = True
        self.is_up = False
        self.after(self.random.choice((0, 100, 1_000, 5_000, 30_000)), self.start)

    def start(self) -> None:
        """Start the process, unless it runs."""
        if self.is_up:
            return
        self.machine.disk.restart()
        faults, self.faults = self.faults, Faults()  # a start that fails is no start
        try:
            self.machine.start()
        finally:
            self.faults = faults
        self.is_up = self._has_acted = True
        self.say("the process is started")
        for check in self._checks:
            check.started()

    # ------------------------------------------------------------------------------------------------ for the schedule

    def ask_now(self, ask: Ask) -> Struct:
        """Ask something without the network, and have all threads do their work at once."""
        given: list[Parts | None] = []
        self.machine.handle(ask.frame("observer"), given.append)
        if not given:
            self.run(self.now_ms + _LONG_MS, lambda: bool(given))
        assert given, f"{ask.name} is not answered"
        assert given[0] is not None
        return ask.read(given[0])
