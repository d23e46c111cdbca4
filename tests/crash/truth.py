"""What follows from batches, told in plain Python: who wrote what, what is decided, what a reader may see.

Nothing of the log's own bookkeeping is asked: neither its producers nor its snapshots, nor its transaction indexes. It
is all worked out from the batches, one after the other, by the rules of Kafka's protocol.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from octavo.records import read_batches
from octavo.records.control import ControlType, EndTransactionMarker, read_control

SEQUENCES: Final = 1 << 31  # after the last of them comes 0
REMEMBERED: Final = 5  # batches of a producer


class Seen(NamedTuple):
    """A record as an application sees it."""

    offset: int
    key: bytes | None
    value: bytes | None


class Written(NamedTuple):
    """A batch, as its bytes tell."""

    base_offset: int
    next_offset: int
    producer_id: int
    epoch: int
    first_sequence: int
    is_transactional: bool
    is_commit: bool | None  # of a marker; None where it is none
    coordinator_epoch: int
    timestamp_ms: int
    is_control: bool
    records: tuple[Seen, ...]

    @property
    def last_offset(self) -> int:
        return self.next_offset - 1

    @property
    def last_sequence(self) -> int:
        return (
            (self.first_sequence + self.last_offset - self.base_offset) % SEQUENCES if self.first_sequence >= 0 else -1
        )


@lru_cache(maxsize=1 << 14)
def read(data: bytes) -> Written:
    """One batch."""
    batch = next(iter(read_batches(data)))
    records = tuple(Seen(record.offset, record.key, record.value) for record in batch)
    is_commit, coordinator_epoch = None, -1
    if batch.is_control:
        for record in batch:
            control = read_control(record)
            if isinstance(control, EndTransactionMarker):
                is_commit, coordinator_epoch = control.type is ControlType.COMMIT, control.coordinator_epoch
    return Written(
        batch.base_offset,
        batch.last_offset + 1,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.is_transactional,
        is_commit,
        coordinator_epoch,
        batch.max_timestamp_ms,
        batch.is_control,
        records,
    )


class Remembered(NamedTuple):
    """One of the last batches of a producer."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int


@dataclass(slots=True)
class Producer:
    """What is known of a producer."""

    epoch: int = -1
    coordinator_epoch: int = -1
    timestamp_ms: int = -1
    batches: list[Remembered] = field(default_factory=list)
    opened: list[int] = field(default_factory=list)  # the offsets of the batches of its open transaction

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else -1

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else -1

    @property
    def first_open(self) -> int:
        return self.opened[0] if self.opened else -1

    def take(self, batch: Written) -> None:
        if self.epoch != batch.epoch:
            self.batches.clear()
            self.epoch = batch.epoch
        self.timestamp_ms = batch.timestamp_ms
        if batch.is_commit is not None:
            self.coordinator_epoch = batch.coordinator_epoch
            self.opened.clear()
            return
        size = batch.last_offset - batch.base_offset
        self.batches.append(Remembered(batch.last_sequence, batch.last_offset, size, batch.timestamp_ms))
        del self.batches[:-REMEMBERED]
        if batch.is_transactional:
            self.opened.append(batch.base_offset)


class Aborted(NamedTuple):
    """A transaction that was aborted."""

    producer_id: int
    offsets: tuple[int, ...]  # of its batches
    marker: int
    last_stable_offset: int  # once it was over


class Told(NamedTuple):
    """All that batches tell, from the first to the last of them."""

    producers: dict[int, Producer]
    aborted: list[Aborted]
    hidden: set[int]  # the offsets of the batches of aborted transactions
    undecided: set[int]  # and those of open ones

    @property
    def first_open(self) -> int | None:
        return min((one.first_open for one in self.producers.values() if one.opened), default=None)


def tell(batches: Iterable[Written]) -> Told:
    """What they tell."""
    told = Told({}, [], set(), set())
    for batch in batches:
        if batch.producer_id < 0:
            continue
        if batch.is_control and batch.is_commit is None:
            continue
        producer = told.producers.setdefault(batch.producer_id, Producer())
        if batch.is_commit is False and producer.opened:
            others = [one.first_open for one in told.producers.values() if one is not producer and one.opened]
            stable = min(others, default=batch.base_offset + 1)
            told.aborted.append(Aborted(batch.producer_id, tuple(producer.opened), batch.base_offset, stable))
            told.hidden.update(producer.opened)
        producer.take(batch)
    told.undecided.update(offset for one in told.producers.values() for offset in one.opened)
    return told


def visible(batches: Sequence[Written], told: Told, last_stable_offset: int) -> list[Seen]:
    """What an application may see of `batches` that reads committed data; what was aborted is told by `told`."""
    return [
        record
        for batch in batches
        if not batch.is_control and not (batch.is_transactional and batch.base_offset in told.hidden)
        for record in batch.records
        if record.offset < last_stable_offset
    ]


def latest(records: Iterable[Seen]) -> dict[bytes, tuple[int, bytes]]:
    """The last value of every key that is not deleted, and its offset."""
    found: dict[bytes, tuple[int, bytes]] = {}
    for offset, key, value in records:
        if key is None:
            continue
        if value is None:
            found.pop(key, None)
        else:
            found[key] = offset, value
    return found
