"""The coordinator of one partition of an internal topic: `Shard`.

    outcome = shard.run(lambda: shard.heartbeat(ticket, request), now)      # a request
    outcome = shard.tick(now)                                               # time has passed
    shard.apply(key, value, origin)                                         # a record of the log, at the start

`outcome.records` go to the log together. When they are committed there, call `keep`, and hand over `outcome.answers`.
If they cannot be written, call `undo`: then nothing has happened, and whoever waited still waits. Only the one who
asked has to be told.

A request has a ticket, by which its answer is handed over, at once or by a later outcome: a member that joins a group
waits for the others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, TypeVar

from octavo.coordinator.journal import Journal
from octavo.coordinator.timers import Key, Timers
from octavo.schemas.versioned import CoordinatorKey, CoordinatorValue, write_key, write_value

A = TypeVar("A")
Ticket = Callable[[Any], None]  # is called with the answer


class Now(NamedTuple):
    """The time."""

    wall_ms: int  # since 1970, for records
    clock_ms: int  # of a clock that never goes back, for timers


class Producer(NamedTuple):
    """The producer in whose transaction records are written."""

    id: int
    epoch: int


class Origin(NamedTuple):
    """Where a record is in the log, and whose transaction it belongs to."""

    offset: int
    producer: Producer | None = None


class Outcome(NamedTuple):
    """What came of a request, or of time passing."""

    records: list[tuple[bytes, bytes | None]]  # keys and values
    producer: Producer | None  # the records belong to its transaction
    answers: list[tuple[Ticket, Any]]
    effects: list[Any]  # what else has to be done once the records are committed
    is_decision: bool  # somebody may rely on the records even if the power fails
    mark: int  # of the journal, before anything was changed
    end: int  # of the journal, after everything


class Shard(ABC):
    """The state of a coordinator, and what is happening to it.

    State is kept in `Tracked` objects and `Table`s. What a record says is applied by `apply`, at the start and later
    alike, so that loading the log always leads to the same state.
    """

    def __init__(self) -> None:
        self.journal: Final = Journal()
        self.timers: Final = Timers(self.journal)
        self.now = Now(0, 0)
        self.end_offset = 0  # of the log; whoever runs the shard sets it before each call
        self._due: Key | None = None  # what `tick` had happen last
        self._records: list[tuple[bytes, bytes | None]] = []
        self._producer: Producer | None = None
        self._answers: list[tuple[Ticket, Any]] = []
        self._effects: list[Any] = []
        self._is_decision = False

    # ----------------------------------------------------------------------------------------- for the one who runs it

    def run(self, action: Callable[[], object], now: Now) -> Outcome:
        """Have something happen. If it raises an exception, nothing has happened."""
        self.now = now
        mark = self.journal.mark()
        self._records, self._answers, self._effects = [], [], []
        self._producer, self._is_decision = None, False
        try:
            action()
        except BaseException:
            self.undo(mark)
            raise
        return Outcome(
            self._records, self._producer, self._answers, self._effects, self._is_decision, mark, self.journal.mark()
        )

    def tick(self, now: Now) -> Outcome | None:
        """Have the next thing happen whose time has come. Returns None if there is nothing (more)."""
        next_ms = self.timers.next_ms
        if next_ms is None or next_ms > now.clock_ms:
            return None

        def expire() -> None:
            key = self.timers.take_due(now.clock_ms)
            assert key is not None
            self._due = key
            self.expired(key)

        return self.run(expire, now)

    def put_off(self, delay_ms: int) -> None:
        """Have later what `tick` had happen last, and what could not be written: others must not wait for it."""
        assert self._due is not None
        self.timers.set(self._due, self.now.clock_ms + delay_ms)
        self.journal.keep(self.journal.mark())

    def keep(self, outcome: Outcome) -> None:
        """Note that the records of an outcome are committed."""
        self.journal.keep(outcome.end)

    def undo(self, mark: int) -> None:
        """Undo everything since the mark of an outcome, whose records could not be written."""
        self.journal.undo(mark)
        self.timers.rebuild()

    # ------------------------------------------------------------------------------------------ for those built on it

    def write(self, key: CoordinatorKey[Any], value: CoordinatorValue | None, version: int = 0) -> None:
        """Write a record, and apply it."""
        origin = Origin(self.end_offset + len(self._records), self._producer)
        self.write_only(key, value, version)
        self.apply(key, value, origin)

    def write_only(self, key: CoordinatorKey[Any], value: CoordinatorValue | None, version: int = 0) -> None:
        """Write a record of what the state is already."""
        self._records.append((write_key(key), None if value is None else write_value(value, version)))

    def write_all(self, records: Iterable[tuple[bytes, bytes | None]]) -> int:
        """Write records that the caller applies, as they would be applied if they were read. Returns their offset."""
        offset = self.end_offset + len(self._records)
        self._records += records
        return offset

    def all_or_nothing(self, action: Callable[[], A]) -> A:
        """Do something, and have nothing of it happen if it raises an exception."""
        mark = self.journal.mark()
        lists: tuple[list[Any], ...] = (self._records, self._answers, self._effects)
        lengths = tuple(map(len, lists))
        try:
            return action()
        except BaseException:
            for each, length in zip(lists, lengths, strict=True):
                del each[length:]
            if self.journal.mark() != mark:
                self.undo(mark)
            raise

    def write_for(self, producer: Producer) -> None:
        """Have the records of this outcome be part of a transaction. Call it before the first `write`."""
        assert not self._records
        self._producer = producer

    def decide(self) -> None:
        """Note that somebody may rely on the records of this outcome even if the power fails."""
        self._is_decision = True

    def answer(self, ticket: Ticket, answer: Any) -> None:
        """Answer a request once the records are committed."""
        self._answers.append((ticket, answer))

    def effect(self, effect: Any) -> None:
        """Have something be done outside once the records are committed."""
        self._effects.append(effect)

    @property
    @abstractmethod
    def size(self) -> int:
        """How many groups, or transactional ids, there are."""

    @abstractmethod
    def apply(self, key: CoordinatorKey[Any], value: CoordinatorValue | None, origin: Origin) -> None:
        """Change the state as a record says."""

    @abstractmethod
    def apply_marker(self, producer: Producer, *, commit: bool) -> None:
        """Change the state as the marker at the end of a transaction says."""

    @abstractmethod
    def loaded(self) -> None:
        """Go on after all records of the log were applied."""

    @abstractmethod
    def resign(self) -> None:
        """Answer everybody who waits: another coordinator has the partition now."""

    @abstractmethod
    def expired(self, key: Key) -> None:
        """Do what has to happen at the time that was set for a key."""
