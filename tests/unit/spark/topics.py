"""Topics to read: many small segments, records that tell their offsets."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from octavo.log import DataDirectory
from octavo.records import BatchBuilder, Codec, Header

SMALL: Final = {"internal.segment.bytes": "2048", "index.interval.bytes": "512", "retention.ms": "-1"}
TIME_MS: Final = 1_700_000_000_000


def batch(first: int, count: int = 5, *, codec: Codec = Codec.NONE, size: int = 40) -> bytes:
    """Records that tell their offsets, if they are appended at `first`."""
    builder = BatchBuilder(codec=codec)
    for number in range(first, first + count):
        key = None if number % 7 == 0 else b"%d" % number
        value = None if number % 11 == 0 else b"%d" % number * size
        headers = [Header("n", b"%d" % number), Header("", None)] if number % 3 == 0 else []
        builder.append(key, value, timestamp_ms=TIME_MS + number * 10, headers=headers)
    return builder.build()


def write_topic(folder: Path, topic: str = "events", partitions: int = 1, batches: int = 100) -> None:
    """A topic of many segments, of five records a batch."""
    with DataDirectory.open(folder) as data:
        data.create_topic(topic, partitions, SMALL)
        for partition in range(partitions):
            log = data.log(topic, partition)
            for number in range(batches):
                log.append(batch(number * 5, codec=list(Codec)[number % 5]))


def write_segment(folder: Path, *, batches: int = 60, size: int = 40) -> None:
    """A topic of one segment that is sealed, of five records a batch, and a batch in another."""
    with DataDirectory.open(folder) as data:
        data.create_topic("events", 1, {"retention.ms": "-1", "index.interval.bytes": "512"})
        log = data.log("events", 0)
        for number in range(batches):
            log.append(batch(number * 5, size=size))
        log.roll()
        log.append(batch(batches * 5, size=size))
