"""A life of a compacted topic, drawn from a seed: whoever does the steps one after the other writes the same log.

    workload = Workload(seed, Shape(producers=3, transactions=2))
    for step in workload.take(100):
        clock.now_ms = step.time_ms
        log.roll() if step.rolls else log.append(step.batches, origin=step.origin)

Some keys are written far more often than others. There are tombstones, empty values, headers; producers of all kinds,
some of which fall silent or come back with another epoch; transactions that are committed, aborted, empty, interleaved,
longer than a segment; and where the shape says so one that never ends, until `end_all` ends it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, Literal, NamedTuple

from octavo.records import end_transaction_marker
from octavo.records.sequence import increment_sequence
from tests.batches import MAX_INT32, TIME_MS, build
from tests.kafka.answers import BatchSpec, Codec, RecordSpec

CODECS: Final[tuple[Codec, ...]] = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a workload is like."""

    keys: int = 40
    skew: float = 2.5  # 1 is none
    tombstones: float = 0.15
    keyless: float = 0.0  # as in a topic that was not compacted before
    codecs: Sequence[Codec] = ("none",)
    largest_batch: int = 8  # in records
    producers: int = 3  # idempotent ones
    transactions: int = 3  # producers of transactions
    hangs: bool = False  # one more, which begins a transaction and never ends it
    rolls: float = 0.06  # per step
    step_ms: int = 100  # between two steps, about


class Step(NamedTuple):
    """One thing done to the log, at a time: batches appended, or a new segment begun."""

    time_ms: int
    batches: bytes = b""
    origin: Literal["CLIENT", "COORDINATOR"] = "CLIENT"
    rolls: bool = False


class _Producer:
    """One producer, who counts its records."""

    def __init__(self, producer_id: int, sequence: int = 0) -> None:
        self.id = producer_id
        self.epoch = 0
        self.sequence = sequence
        self.is_open = False  # a transaction

    def advance(self, count: int) -> None:
        self.sequence = increment_sequence(self.sequence, count)

    def come_back(self) -> None:
        self.epoch += 1
        self.sequence = 0


class Workload:
    """The steps, endless."""

    def __init__(self, seed: int, shape: Shape | None = None, *, time_ms: int = TIME_MS) -> None:
        self.time_ms = time_ms
        self.shape = shape or Shape()  # may be changed on the way, but for the producers
        self._random = Random(seed)
        near_the_end = MAX_INT32 - 5  # of the sequences, which then begin again
        self._idempotent = [_Producer(100 + i, near_the_end if i == 1 else 0) for i in range(self.shape.producers)]
        self._transactional = [_Producer(200 + i) for i in range(self.shape.transactions)]
        self._hanging = _Producer(300)
        self._coordinator_epoch = 0

    def take(self, count: int) -> Iterator[Step]:
        """The next steps. A transaction that is to hang begins in the second half of them."""
        for number in range(count):
            self.time_ms += self._random.randrange(2 * self.shape.step_ms + 1)
            if self.shape.hangs and number == count // 2 and not self._hanging.is_open:
                yield self._transact(self._hanging)
            yield self._step()

    def end_all(self) -> Iterator[Step]:
        """Ends what is open, also what hangs."""
        for producer in (*self._transactional, self._hanging):
            if producer.is_open:
                yield self._end(producer)

    def _step(self) -> Step:
        random = self._random
        if random.random() < self.shape.rolls:
            return Step(self.time_ms, rolls=True)
        kind = random.random()
        if kind < 0.3 and self._idempotent:
            return self._produce(random.choice(self._idempotent))
        if kind < 0.75 and self._transactional:
            return self._transaction(random.choice(self._transactional))
        return self._append(self._records())

    # Producers

    def _produce(self, producer: _Producer) -> Step:
        if self._random.random() < 0.1:
            producer.come_back()
        return self._append(self._records(), producer)

    def _transaction(self, producer: _Producer) -> Step:
        ends = self._random.random() < 0.35
        if ends and (producer.is_open or self._random.random() < 0.2):  # some end with nothing in them
            return self._end(producer)
        return self._transact(producer)

    def _transact(self, producer: _Producer) -> Step:
        producer.is_open = True
        return self._append(self._records(), producer, transactional=True)

    def _end(self, producer: _Producer) -> Step:
        random = self._random
        producer.is_open = False
        if random.random() < 0.05:
            self._coordinator_epoch += 1
        if random.random() < 0.3:  # the second kind of transactions: each has an epoch of its own
            producer.come_back()
        marker = end_transaction_marker(
            random.random() < 0.6,
            timestamp_ms=self.time_ms,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            coordinator_epoch=self._coordinator_epoch,
        )
        return Step(self.time_ms, marker, "COORDINATOR")

    # Batches

    def _append(
        self, records: Sequence[RecordSpec], producer: _Producer | None = None, *, transactional: bool = False
    ) -> Step:
        spec = BatchSpec(
            records=records,
            codec=self._random.choice(self.shape.codecs),
            producer_id=producer.id if producer else -1,
            producer_epoch=producer.epoch if producer else -1,
            base_sequence=producer.sequence if producer else -1,
            transactional=transactional,
        )
        if producer:
            producer.advance(len(records))
        return Step(self.time_ms, build(spec))

    def _records(self) -> list[RecordSpec]:
        random = self._random
        count = random.choice((1, 1, 2, 3, random.randrange(1, self.shape.largest_batch + 1)))
        time_ms = self.time_ms
        records = []
        for _ in range(count):
            time_ms += random.choice((0, 1, 1, -3, 20))
            records.append(draw_record(random, self.shape, time_ms))
        return records


def draw_record(random: Random, shape: Shape, timestamp_ms: int) -> RecordSpec:
    """One record by itself."""
    key: bytes | None = b"key-%d" % int(shape.keys * random.random() ** shape.skew)
    if random.random() < shape.keyless:
        key = None
    elif random.random() < 0.02:
        key = b""
    headers: list[tuple[str, bytes | None]] = []
    if random.random() < 0.15:
        headers = [("a", random.choice((None, b"", b"header"))), ("ä", b"x" * random.choice((1, 80)))]
    return RecordSpec(timestamp_ms=timestamp_ms, key=key, value=_value(random, shape), headers=headers)


def _value(random: Random, shape: Shape) -> bytes | None:
    if random.random() < shape.tombstones:
        return None
    size = random.choice((0, 1, 20, 60, 200))
    return random.randbytes(size) if random.random() < 0.3 else (b"the same again and again, " * 8)[:size]
