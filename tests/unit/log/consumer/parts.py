"""What tests of the consumer have in common."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from octavo.log import DataDirectory, Log
from octavo.log.consumer import ConsumerRecord
from octavo.records import BatchBuilder, Codec
from octavo.records.v2 import HeaderLike
from tests.clock import Clock
from tests.crash.storage import FastStorage
from tests.unit.log.coordinator.parts import T0 as T0
from tests.unit.log.coordinator.parts import T1 as T1
from tests.unit.log.coordinator.parts import TIME_MS as TIME_MS


@contextmanager
def opened(folder: Path, clock: Clock | None = None) -> Iterator[DataDirectory]:
    """A directory with a topic "t" of two partitions."""
    clock = Clock() if clock is None else clock
    with DataDirectory.open(folder, storage=FastStorage(), clock=clock) as data:
        if "t" not in data.topics:
            data.create_topic("t", 2, {"message.timestamp.after.max.ms": str(1 << 60)})
        yield data


def write(log: Log, first: int, count: int, *, per_batch: int = 10, codec: Codec = Codec.NONE, size: int = 20) -> None:
    """Append records with the numbers from `first` on for values, a millisecond between them."""
    for begin in range(first, first + count, per_batch):
        builder = BatchBuilder(codec=codec)
        for number in range(begin, min(begin + per_batch, first + count)):
            headers: list[HeaderLike] = [("h", b"%d" % number)] if number % 3 == 0 else []
            key = None if number % 5 == 0 else b"%d" % number
            value = b"%d" % number + b" " * size
            builder.append(key, value, timestamp_ms=TIME_MS + number, headers=headers)
        log.append(builder.build())


def numbers(records: list[ConsumerRecord]) -> list[int]:
    """What `write` has written."""
    return [int(record.value) for record in records]
