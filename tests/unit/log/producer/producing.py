"""Directories to produce to, clocks that stand still, and what is in a topic then."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from octavo.log import DataDirectory, Isolation, Producer
from octavo.log.storage import DISK, Storage
from octavo.records import Batch, Record, read_batches
from tests.clock import Clock

TIME_MS: Final = 1_700_000_000_000


@contextmanager
def directory(folder: Path, *, partitions: int = 1, storage: Storage = DISK, **config: str) -> Iterator[DataDirectory]:
    """A directory with one topic "t"; names of settings with `_` for `.`."""
    settings = {name.replace("_", "."): value for name, value in config.items()}
    with DataDirectory.open(folder / "data", clock=Clock(TIME_MS), storage=storage) as data:
        data.create_topic("t", partitions, settings)
        yield data


@contextmanager
def producing(folder: Path, *, partitions: int = 1, **settings: Any) -> Iterator[tuple[DataDirectory, Producer]]:
    """A producer to "t" with no thread: what waits does so until somebody asks for it."""
    with directory(folder, partitions=partitions) as data, Producer(data, clock=Clock(), **settings) as producer:
        yield data, producer


def batches(data: DataDirectory, partition: int = 0, topic: str = "t") -> list[Batch]:
    """All batches of a partition."""
    log = data.log(topic, partition)
    return list(read_batches(bytes(log.read(0, 1 << 30, isolation=Isolation.LOG_END).records)))


def records(data: DataDirectory, partition: int = 0, topic: str = "t") -> list[Record]:
    """All records of a partition but those of control."""
    return [record for batch in batches(data, partition, topic) if not batch.is_control for record in batch]


def values(data: DataDirectory, partition: int = 0, topic: str = "t") -> list[bytes | None]:
    """Their values."""
    return [record.value for record in records(data, partition, topic)]
