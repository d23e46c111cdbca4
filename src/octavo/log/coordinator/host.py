"""Run the coordinator of one partition of an internal topic: `Host`.

It loads the shard from the log, appends what the shard writes, and then hands over the answers. Any thread may call it.
One with an `ALLOWANCE` never pauses: `MustWait` is raised, and nothing has happened, if the shard has to be loaded, if
another thread is at it or at its log, if an append waits for the disk, and if something has to be done outside.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Final, Generic, TypeVar

from octavo.coordinator.shard import Now, Origin, Outcome, Producer, Shard, Ticket
from octavo.errors import AppendRefused, BadDirectory, LogError, OctavoError
from octavo.log.append.readiness import ALLOWANCE, MustWait, TakesLong, Unfinished, Unperformed, is_quick
from octavo.log.coordinator.internal_topic import replay
from octavo.log.log import Log
from octavo.log.origin import Origin as AppendOrigin
from octavo.log.ownership.fork_safe import make_rlock
from octavo.records import Batch
from octavo.records.control import ControlType, EndTransactionMarker, read_control
from octavo.records.layout import (
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    Attributes,
    BatchHeader,
)
from octavo.records.v2 import write_batch, write_plain_record
from octavo.schemas.versioned import CoordinatorKey, UnknownKey, UnknownValue, read_value_of

A = TypeVar("A")
S = TypeVar("S", bound=Shard)
ReadKey = Callable[[bytes], CoordinatorKey[Any] | UnknownKey]

_MAX_RECORDS: Final = 512 << 10  # bytes of the records of a batch
_PUT_OFF_MS: Final = 500  # until that is tried again which could not be written at its time, as in Kafka


class _AtOnce:
    """Holds a lock in the body of a `with`, or raises `MustWait` if another thread has it."""

    def __init__(self, lock: threading.RLock) -> None:
        self._lock: Final = lock

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise MustWait

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class Host(Generic[S]):
    """The shard of one partition, while this node leads it."""

    def __init__(
        self,
        log: Log,
        make: Callable[[], S],
        read_key: ReadKey,
        *,
        wall_ms: Callable[[], int],
        clock_ms: Callable[[], int],
        perform: Callable[[Any, bool], None] = lambda effect, durable: None,
        is_brief: Callable[[Any], bool] = lambda effect: False,
        recover: Callable[[], None] = lambda: None,
        noticed: Callable[[S], None] = lambda shard: None,
    ) -> None:
        """Run nothing yet: the shard is loaded when it is needed.

        perform: does what a shard wants done outside, once its records are written; it is told what is `durable`, and
            raises `Unperformed` if a thread with an `ALLOWANCE` would pause
        is_brief: tells whether that can be tried by a thread with an `ALLOWANCE`
        recover: repairs what a crash has left outside, before anybody gets to the shard that was loaded
        noticed: is told when something may have happened to the shard; it must not wait for anything
        """
        self.log: Final = log
        self._make: Final = make
        self._read_key: Final = read_key
        self._wall_ms: Final = wall_ms
        self._clock_ms: Final = clock_ms
        self._perform: Final = perform
        self._is_brief: Final = is_brief
        self._recover: Final = recover
        self._noticed: Final = noticed
        self._lock: Final = make_rlock()
        self._at_once: Final = _AtOnce(self._lock)
        self._shard: S | None = None  # loaded when first needed, and again after a write whose end is not known
        self._last: S | None = None  # the one that was in use last: somebody may still wait there for an answer
        self._next_ms: int | None = None
        self._damage: BadDirectory | None = None  # why nothing can be loaded

    def run(self, action: Callable[[S], object], *, durable: bool = False, finishes: bool = False) -> None:
        """Have something happen to the shard, write what it writes, and hand answers over.

        durable: decisions are flushed before anybody is answered
        finishes: the caller has another thread `finish` what is `Unfinished`

        Raises what `Log.append` raises; then nothing has happened. Raises what `perform` raises; then it has happened,
        but nobody is answered.
        """
        with self.held():
            shard = self._loaded()
            outcome = self._run(shard, lambda: action(shard), durable=durable, finishes=finishes)
        self._hand_over(outcome, durable=durable)

    def held(self) -> AbstractContextManager[object]:
        """Let nobody else do anything to the shard in the body of a `with`."""
        return self._lock if ALLOWANCE.left is None else self._at_once

    def ask(self, question: Callable[[S], A]) -> A:
        """Return what the shard knows, without changing it."""
        with self.held():
            return question(self._loaded())

    def tick(self) -> None:
        """Have everything happen whose time has come.

        What cannot happen, such as a record that is too large, keeps nothing else from happening: it is tried again
        later, and the first such exception is raised in the end. Where nothing can be written, that is raised at once.
        """
        failed: Exception | None = None
        while True:
            with self.held():
                if self._next_ms is None:
                    break
                shard = self._loaded()  # if the end of the last write is not known, from the log
                shard.end_offset = self.log.end_offset
                try:
                    outcome = shard.tick(self._now())
                    if outcome is not None:
                        self._write(shard, outcome, durable=False)
                except Exception as error:
                    if self._shard is not shard or not _is_of_one(error):
                        raise
                    shard.put_off(_PUT_OFF_MS)
                    failed = failed or error
                    continue
                if outcome is None:
                    self._next_ms = shard.timers.next_ms
                    break
            self._hand_over(outcome)
        if failed is not None:
            raise failed

    @property
    def next_ms(self) -> int | None:
        """When `tick` has something to do, in milliseconds of the clock; None if it never has."""
        return self._next_ms

    def load(self) -> None:
        """Load the state, unless that was done already."""
        with self._lock:
            self._loaded()

    def apply_marker(self, producer: Producer, *, commit: bool) -> None:
        """Tell the shard of a marker that was written to its partition."""
        with self._lock:
            shard = self._shard
            if shard is None:  # loading will find the marker
                return
            outcome = self._run(shard, lambda: shard.apply_marker(producer, commit=commit), durable=False)
        self._hand_over(outcome)

    def resign(self) -> None:
        """Give the partition up: answer those who wait, and forget the state."""
        with self._lock:
            self._shard = None
            self._next_ms = None
            answers = self._give_up()
        for ticket, answer in answers:
            ticket(answer)

    # ------------------------------------------------------------------------------------------------------------ parts

    def _now(self) -> Now:
        return Now(self._wall_ms(), self._clock_ms())

    def _run(self, shard: S, action: Callable[[], object], *, durable: bool, finishes: bool = False) -> Outcome:
        shard.end_offset = self.log.end_offset
        self._shard = None  # an interrupt in the middle of anything has everything loaded again
        try:
            outcome = shard.run(action, self._now())
        except Exception:
            self._keep(shard)  # it has undone everything
            raise
        self._write(shard, outcome, durable=durable, finishes=finishes)
        return outcome

    def _write(self, shard: S, outcome: Outcome, *, durable: bool, finishes: bool = False) -> None:
        if outcome.records or outcome.effects:
            self._shard = None  # if an exception comes in the middle of the write, everything is loaded again
            try:
                self._append(outcome, finishes=finishes)
            except (OctavoError, OSError, TakesLong):
                shard.undo(outcome.mark)
                self._keep(shard)
                raise
        shard.keep(outcome)
        self._keep(shard)
        if durable and outcome.is_decision:
            self.log.flush()

    def _append(self, outcome: Outcome, *, finishes: bool) -> None:
        may_pause = ALLOWANCE.left is None
        is_long = outcome.effects and not (finishes and all(map(self._is_brief, outcome.effects)))
        if not may_pause and (is_long or self.log.would_wait()):
            raise MustWait
        if outcome.records:
            batches = _batches(outcome, self._wall_ms())
            if not may_pause and not is_quick(len(batches)):
                raise MustWait
            self.log.append(batches, origin=AppendOrigin.COORDINATOR)

    def _keep(self, shard: S) -> None:
        self._shard = self._last = shard
        self._next_ms = shard.timers.next_ms
        self._noticed(shard)

    def _hand_over(self, outcome: Outcome, *, durable: bool = False) -> None:
        for number, effect in enumerate(outcome.effects):
            try:
                self._perform(effect, durable)
            except Unperformed as rest:
                left = outcome._replace(effects=[rest.effect, *outcome.effects[number + 1 :]])
                raise Unfinished(partial(self._hand_over, left, durable=durable)) from None
        for ticket, answer in outcome.answers:
            ticket(answer)

    def _loaded(self) -> S:
        if self._shard is None:
            if self._damage is not None:  # to find that again may take minutes, for each request
                raise self._damage.with_traceback(None)
            if ALLOWANCE.left is not None:
                raise MustWait
            for ticket, answer in self._give_up():
                ticket(answer)
            shard = self._make()
            try:
                replay(self.log, 0, lambda batch: apply_batch(shard, batch, self._read_key))
            except BadDirectory as damage:
                self._damage = damage
                raise
            shard.journal.keep(shard.journal.mark())
            shard.end_offset = self.log.end_offset
            outcome = shard.run(shard.loaded, self._now())
            self._write(shard, outcome, durable=False)
            self._finish_loading(outcome)
        assert self._shard is not None
        return self._shard

    def _give_up(self) -> list[tuple[Ticket, Any]]:
        """Forget the shard that was in use, and return the answers for those who wait there."""
        shard, self._last = self._last, None
        return [] if shard is None else shard.run(shard.resign, self._now()).answers

    def _finish_loading(self, outcome: Outcome) -> None:
        """Do what was left undone, while nobody else gets to the shard. If that fails, nothing is loaded."""
        try:
            self._hand_over(outcome)
            self._recover()
        except BaseException:
            self._shard = None
            raise


def _is_of_one(error: Exception) -> bool:
    """Return whether something could not be written for a reason of its own, which others do not have."""
    if isinstance(error, LogError | OSError):
        return isinstance(error, AppendRefused)
    return not isinstance(error, TakesLong)


def apply_batch(shard: Shard, batch: Batch, read_key: ReadKey) -> None:
    """Change the state of a shard as a batch of its log says. Raises a `FormatError`."""
    producer = Producer(batch.producer_id, batch.producer_epoch) if batch.is_transactional else None
    for record in batch:
        if batch.is_control:
            control = read_control(record, position=batch.position)
            if isinstance(control, EndTransactionMarker) and producer is not None:
                shard.apply_marker(producer, commit=control.type is ControlType.COMMIT)
        elif record.key is not None:
            key = read_key(record.key)
            if isinstance(key, UnknownKey):
                continue
            value = read_value_of(key, record.value)
            if not isinstance(value, UnknownValue):
                shard.apply(key, value, Origin(record.offset, producer))


def _batches(outcome: Outcome, now_ms: int) -> bytes:
    """The records of an outcome as batches; those of a producer belong to its transaction."""
    built: list[bytes] = []
    records: list[bytes] = []
    size = 0
    for key, value in outcome.records:
        record = write_plain_record(len(records), key, value)
        if records and size + len(record) > _MAX_RECORDS:
            built.append(_batch(records, outcome.producer, now_ms))
            record, records, size = write_plain_record(0, key, value), [], 0
        records.append(record)
        size += len(record)
    built.append(_batch(records, outcome.producer, now_ms))
    return b"".join(built)


def _batch(records: Sequence[bytes], producer: Producer | None, now_ms: int) -> bytes:
    header = BatchHeader(
        base_offset=0,
        length=0,
        leader_epoch=NO_LEADER_EPOCH,
        magic=2,
        crc=0,
        attributes=0 if producer is None else Attributes.TRANSACTIONAL,
        last_offset_delta=len(records) - 1,
        base_timestamp_ms=now_ms,
        max_timestamp_ms=now_ms,
        producer_id=NO_PRODUCER_ID if producer is None else producer.id,
        producer_epoch=NO_PRODUCER_EPOCH if producer is None else producer.epoch,
        base_sequence=NO_SEQUENCE if producer is None else 0,  # as in Kafka, always 0
        record_count=len(records),
    )
    return write_batch(header, b"".join(records))
