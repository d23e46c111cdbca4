"""A broker on a simulated disk, with its clock in our hands: `Machine`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final, NamedTuple
from uuid import UUID

from octavo.broker.answers import Answer, Later, Parked, Parts, Wait
from octavo.broker.broker import Broker
from octavo.broker.config import Settings, read_settings
from octavo.log.append.readiness import prepare
from octavo.log.directory.data_directory import DataDirectory
from tests.clock import TIME_MS
from tests.simulation.disk import SimulatedDisk

SESSION_MS: Final = 10_000  # of members of classic groups
REBALANCE_MS: Final = 15_000
CONSUMER_SESSION_MS: Final = 45_000
CONSUMER_BEAT_MS: Final = 5_000
RETENTION_MS: Final = 60_000  # of offsets, where they expire
EXPIRY_CHECK_MS: Final = 5_000
SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": "500",
    "group.consumer.session.timeout.ms": str(CONSUMER_SESSION_MS),
    "group.consumer.heartbeat.interval.ms": str(CONSUMER_BEAT_MS),
    "add.partitions.to.txn.retry.backoff.max.ms": "0",  # no thread waits: nothing else would happen meanwhile
}
EXPIRING: Final = {
    "offsets.retention.minutes": str(RETENTION_MS // 60_000),
    "offsets.retention.check.interval.ms": str(EXPIRY_CHECK_MS),
}
OnParts = Callable[[Parts | None], None]
Later_ = Callable[[Callable[[], None]], None]  # has something be done in another thread, so to speak


@cache
def _settings(is_expiring: bool) -> Settings:
    return read_settings(SETTINGS | EXPIRING if is_expiring else SETTINGS)


class Connection(NamedTuple):
    """Where a request comes from."""

    listener: tuple[str, int] = ("broker", 9092)
    listener_name: str = "PLAINTEXT"
    peer: str = "10.0.0.1"


class Clock:
    """The time, in milliseconds since the start of the simulation."""

    def __init__(self) -> None:
        self.now_ms = 0

    def wall_ms(self) -> int:
        """Return the time of day."""
        return TIME_MS + self.now_ms

    def monotonic_ms(self) -> int:
        """Return the time of a clock that never goes back."""
        return self.now_ms


class Machine:
    """A process that serves, or is dead.

    submit: has something done later, as by another thread
    """

    def __init__(self, disk: SimulatedDisk, clock: Clock, new_id: Callable[[], UUID], submit: Later_) -> None:
        self.disk: Final = disk
        self._clock: Final = clock
        self._new_id: Final = new_id
        self._submit: Final = submit
        self._waiting: dict[Wait, tuple[int, OnParts]] = {}
        self._number = 0
        self.is_expiring = False  # offsets are forgotten if nobody uses them
        self.incarnation = 0  # which process it is
        self.parked: list[Parked] = []  # of this process, answered or not
        prepare()

    def start(self) -> None:
        """Start a process, which loads the coordinators while it serves."""
        self.incarnation += 1
        self.parked = []
        self._waiting = {}
        self.directory = DataDirectory.open(
            self.disk.folder,
            recover="as-kafka",
            storage=self.disk,
            clock=self._clock.wall_ms,
            monotonic=self._clock.monotonic_ms,
            new_id=self._new_id,
        )
        self.broker = Broker(self.directory, _settings(self.is_expiring).config, say=lambda message: None)
        self.broker.run_here(lambda: None)
        self._submit(self.broker.coordinators.load)

    def handle(self, frame: bytes, give: OnParts) -> None:
        """Answer a request, now or later."""
        self._go_on(self.broker.handle(memoryview(frame), Connection()), give)

    def _go_on(self, answer: Answer, give: OnParts) -> None:
        if isinstance(answer, Later):
            work = answer.work
            self._submit(lambda: self._take(work(), give))
        else:
            self._take(answer, give)

    def _take(self, answer: Parts | Wait | None, give: OnParts) -> None:
        if not isinstance(answer, Wait):
            give(answer)
            return
        self._number += 1
        self._waiting[answer] = (self._number, give)
        if isinstance(answer, Parked):
            self.parked.append(answer)
        self.broker.watch(answer)

    def turn(self) -> None:
        """Have everything happen whose time has come, as the thread that serves does between requests."""
        for work in self.broker.coordinators.time.tick():
            self._submit(work)
        woken = [wait for wait in self.broker.take_woken() if wait in self._waiting]
        for wait in sorted(woken, key=lambda each: self._waiting[each][0]):
            answer = wait.retry(False)
            if answer is not None:
                self.broker.forget(wait)
                self._go_on(answer, self._waiting.pop(wait)[1])

    @property
    def next_ms(self) -> float:
        """When `turn` has something to do."""
        return self.broker.coordinators.time.next_ms
