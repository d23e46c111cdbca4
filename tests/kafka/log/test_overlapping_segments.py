"""Segments that overlap: every reader gives what a consumer gets from Kafka when its fetches take whole segments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

import pytest

from octavo.errors import CorruptFile
from octavo.log import Consumer, DataDirectory, Log, LogConfig
from octavo.log.directory.standalone import watch_partition
from octavo.log.names import TopicPartition
from octavo.log.reading.readable_log import ReadableLog
from octavo.log.storage import DISK
from octavo.records import BatchBuilder, read_batches
from tests.batches import TIME_MS
from tests.kafka.judge import Judge
from tests.kafka.log.side_by_side import FOLDER, Refusal, SideBySide
from tests.unit.spark.queries import read

Rows = list[tuple[int, bytes]]  # offset, and what tells which segment the record is from

COMPACTED: Final = (*range(0, 473, 11), 473)
PARTITION: Final = TopicPartition("topic", 0)


def _segment(folder: Path, base_offset: int, mark: bytes, offsets: Iterable[int]) -> None:
    batches = []
    for offset in offsets:
        builder = BatchBuilder(base_offset=offset)
        builder.append(b"key-%d" % offset, mark * 300, timestamp_ms=TIME_MS + offset)
        batches.append(builder.build())
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{base_offset:020d}.log").write_bytes(b"".join(batches))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A partition whose first segment is compacted up to offset 473; some of what it was made of is there as well."""
    folder = tmp_path / "source" / FOLDER
    _segment(folder, 0, b"a", COMPACTED)
    _segment(folder, 63, b"b", range(63, 200))
    _segment(folder, 200, b"c", range(200, 481))
    return folder


def _rows(batches: bytes, first: int) -> Rows:
    records = [record for batch in read_batches(batches) for record in batch if record.offset >= first]
    return [(record.offset, (record.value or b"")[:1]) for record in records]


def _consumed(read: Callable[[int], bytes | Refusal], first: int) -> Rows:
    """What a consumer gets who reads on behind the last offset of each answer."""
    rows: Rows = []
    while True:
        batches = read(first)
        assert isinstance(batches, bytes)
        if not batches:
            return rows
        rows += _rows(batches, first)
        first = rows[-1][0] + 1


def _read(log: ReadableLog, first: int) -> Iterator[Rows]:
    for size in (5000, 64 << 10, 16 << 20):
        reader = log.reader(first, buffer_size=size)
        yield [(record.offset, (record.value or b"")[:1]) for record in reader.records()]


def _polled(folder: Path, first: int, most: int) -> Iterator[Rows]:
    with DataDirectory.open(folder, read_only=True) as data, Consumer(data, max_partition_fetch_bytes=most) as consumer:
        consumer.assign([PARTITION])
        consumer.seek(PARTITION, first)
        rows: Rows = []
        while records := consumer.poll(timeout=0):
            rows += [(record.offset, record.value[:1]) for record in records]
        yield rows
        consumer.seek(PARTITION, first)
        rows = []
        while (chunk := consumer.poll_arrow(timeout=0)) is not None:
            rows += [(row["offset"], row["value"][:1]) for row in chunk.to_pylist()]
        yield rows


def test_all_readers_give_what_kafka_gives(kafka_broker: Judge, source: Path, tmp_path: Path) -> None:
    both = SideBySide(kafka_broker, tmp_path, source=source)
    both.read_everything((1, 1000))
    answers = {first: _consumed(lambda at: both.read(at, 16 << 20), first) for first in (0, 62, 63, 150, 300, 474)}
    both.close()
    assert answers[0] == [(offset, b"a") for offset in COMPACTED] + [(offset, b"c") for offset in range(474, 481)]
    folder = both.octavo_folder
    with Log.open(folder, LogConfig()) as log, watch_partition(folder, LogConfig(), storage=DISK) as watched:
        for first, expected in answers.items():
            assert all(rows == expected for each in (log, watched) for rows in _read(each, first))
    for first, expected in answers.items():
        for most in (5000, 16 << 20):
            assert all(rows == expected for rows in _polled(folder.parent, first, most))
        for size in ("2000", "100000000"):
            rows = read(folder, startingOffsets=f'{{"topic":{{"0":{first}}}}}', maxBytesPerPartition=size)
            assert [(row["offset"], row["value"][:1]) for row in rows] == expected


def test_compaction_names_the_segment_that_it_cannot_clean(source: Path) -> None:
    config = LogConfig.from_properties({"cleanup.policy": "compact"})
    with Log.open(source, config) as log:
        log.roll()
        with pytest.raises(CorruptFile) as refused:
            log.compact()
    assert str(refused.value).startswith(str(source / "00000000000000000000.log"))
    assert refused.value.rule == (
        "topic-0 cannot be compacted: this segment has offsets up to 473, and the next one begins at 63"
    )
