"""What tests of the coordinator have in common."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from octavo.log import DataDirectory, Isolation
from octavo.log.coordinator import ProducerIdentity
from octavo.log.names import TopicPartition
from octavo.records import BatchBuilder
from tests.clock import Clock
from tests.crash.storage import FastStorage

T0: Final = TopicPartition("t", 0)
T1: Final = TopicPartition("t", 1)
TIME_MS: Final = 1_700_000_000_000


@contextmanager
def opened(folder: Path, clock: Clock | None = None, storage: FastStorage | None = None) -> Iterator[DataDirectory]:
    """A directory with a topic "t" of two partitions."""
    clock = Clock() if clock is None else clock
    with DataDirectory.open(folder, storage=FastStorage() if storage is None else storage, clock=clock) as data:
        if "t" not in data.topics:
            data.create_topic("t", 2)
        yield data


def send(
    data: DataDirectory, producer: ProducerIdentity, partition: TopicPartition, value: bytes, sequence: int
) -> int:
    """Append a record as part of the producer's transaction; its offset."""
    builder = BatchBuilder(
        producer_id=producer.producer_id, producer_epoch=producer.epoch, base_sequence=sequence, transactional=True
    )
    builder.append(b"key", value, timestamp_ms=data.now_ms())
    return data.log(*partition).append(builder.build()).base_offset


def committed(data: DataDirectory, partition: TopicPartition) -> list[bytes | None]:
    """The values that a reader of committed data sees."""
    return [record.value for record in data.log(*partition).reader(isolation=Isolation.READ_COMMITTED).records()]


def is_decided(data: DataDirectory, partition: TopicPartition) -> bool:
    """Whether no transaction is open in a partition."""
    log = data.log(*partition)
    return log.last_stable_offset == log.end_offset
