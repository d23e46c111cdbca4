"""Every bit of a batch's header is flipped: each reader gives what is true up to there, and then all of it or an error.

A header is looked at before the checksum is verified. No reader may leave out, skip or repeat records because of it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest

from octavo.errors import FormatError, OctavoError, Truncated
from octavo.inspect import Dump
from octavo.log import DataDirectory, Log
from octavo.log.consumer import Consumer
from octavo.log.names import TopicPartition
from octavo.log.origin import Origin
from octavo.log.reading.readable_log import ReadableLog
from octavo.log.view import Isolation
from octavo.log.watched.watched_directory import WatchedDirectory
from octavo.records import BatchBuilder, Codec, end_transaction_marker, read_batches, to_arrow
from octavo.records.layout import BATCH_HEADER
from tests.soak.plugin import Soak
from tests.unit.spark.queries import plan

TIME_MS: Final = 1_700_000_000_000
PARTITION: Final = TopicPartition("events", 0)
MOST_POLLS: Final = 60

Seen = tuple[int, bytes | None]
Directory = DataDirectory | WatchedDirectory
Reader = Callable[[Path, Directory, list[Seen]], None]


def _append(log: Log, count: int, *, producer_id: int = -1, sequence: int = 0, codec: Codec = Codec.NONE) -> None:
    transactional = producer_id >= 0
    builder = BatchBuilder(
        codec=codec,
        producer_id=producer_id,
        producer_epoch=0 if transactional else -1,
        base_sequence=sequence if transactional else -1,
        transactional=transactional,
    )
    for number in range(count):
        builder.append(b"k", b"%d" % (log.end_offset + number) * 100, timestamp_ms=TIME_MS + log.end_offset + number)
    log.append(builder.build())


def _end(log: Log, producer_id: int, *, commit: bool) -> None:
    marker = end_transaction_marker(
        commit, timestamp_ms=TIME_MS, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0
    )
    log.append(marker, origin=Origin.COORDINATOR)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with batches of every kind, a few of each, so that each kind has some before it and behind it."""
    folder = tmp_path_factory.mktemp("flips")
    with DataDirectory.open(folder) as data:
        data.create_topic("events", 1, {"index.interval.bytes": "400"})
        log = data.log(*PARTITION)
        for turn in range(3):
            _append(log, 10)
            _append(log, 5, producer_id=1, sequence=5 * turn)
            _append(log, 10, codec=Codec.LZ4)
            _end(log, 1, commit=turn != 1)
            _append(log, 5, producer_id=2, sequence=5 * turn, codec=Codec.ZSTD)
            _append(log, 3)
            _end(log, 2, commit=turn == 1)
        _append(log, 1)
    return folder


def _segment(folder: Path) -> Path:
    (path,) = (folder / PARTITION.folder).glob("*.log")
    return path


# ------------------------------------------------------------------------------------------------------------- readers


def _reader(isolation: Isolation) -> Reader:
    def read(folder: Path, data: Directory, seen: list[Seen]) -> None:
        records = data.log(*PARTITION).reader(0, isolation=isolation).records()
        seen.extend((record.offset, record.value) for record in records)

    return read


def _poll(level: str, *, most: int) -> Reader:
    def read(folder: Path, data: Directory, seen: list[Seen]) -> None:
        with Consumer(data, {"auto.offset.reset": "earliest", "isolation.level": level}) as consumer:
            consumer.assign([PARTITION])
            for _ in range(MOST_POLLS):
                records = consumer.poll(max_records=most)
                seen += ((record.offset, record.value) for record in records)
                if not records:
                    return
        raise AssertionError("the consumer does not come to an end")

    return read


def _poll_arrow(level: str) -> Reader:
    def read(folder: Path, data: Directory, seen: list[Seen]) -> None:
        settings = {"auto.offset.reset": "earliest", "isolation.level": level, "max.partition.fetch.bytes": 2000}
        with Consumer(data, settings) as consumer:
            consumer.assign([PARTITION])
            for _ in range(MOST_POLLS):
                chunk = consumer.poll_arrow()
                if chunk is None:
                    return
                seen += zip(chunk.column("offset").to_pylist(), chunk.column("value").to_pylist(), strict=True)
        raise AssertionError("the consumer does not come to an end")

    return read


def _spark(**options: str) -> Reader:
    def read(folder: Path, data: Directory, seen: list[Seen]) -> None:
        reader, tasks, _ = plan(folder, **options)
        for task in tasks:
            for batch in reader.read(task):
                assert isinstance(batch, pa.RecordBatch)
                seen += zip(batch.column("offset").to_pylist(), batch.column("value").to_pylist(), strict=True)

    return read


def _dump(folder: Path, data: Directory, seen: list[Seen]) -> None:
    for line in Dump(_segment(folder)):
        record = json.loads(line)
        if not record["isControl"]:
            seen.append((record["offset"], bytes.fromhex(record["value"])))


def _arrow(folder: Path, data: Directory, seen: list[Seen]) -> None:
    reader = to_arrow(_segment(folder).read_bytes(), columns=("offset", "value", "isControl"), follows=-1)
    for chunk in reader:
        rows = zip(*(column.to_pylist() for column in chunk.columns), strict=True)
        seen += ((offset, value) for offset, value, is_control in rows if not is_control)
    if reader.torn_tail is not None:
        raise Truncated(reader.torn_tail, "so it says where it ends")


READERS: Final[dict[str, tuple[bool, Reader]]] = {  # with whether they see only what is committed
    "LogReader": (False, _reader(Isolation.LOG_END)),
    "LogReader, committed": (True, _reader(Isolation.READ_COMMITTED)),
    "poll": (False, _poll("read_uncommitted", most=4)),
    "poll, committed": (True, _poll("read_committed", most=500)),
    "poll_arrow": (False, _poll_arrow("read_uncommitted")),
    "poll_arrow, committed": (True, _poll_arrow("read_committed")),
    "spark": (False, _spark()),
    "spark, committed": (True, _spark(kafka_isolation_level="read_committed")),
    "dump": (False, _dump),
    "to_arrow": (False, _arrow),
}


def _seen(read: Reader, folder: Path, data: Directory) -> tuple[list[Seen], OctavoError | None]:
    seen: list[Seen] = []
    try:
        read(folder, data, seen)
    except OctavoError as error:
        return seen, error
    return seen, None


Flip = tuple[int, int, int]  # which batch, which byte of its header, which bit

# Of the second turn: data, of a transaction, compressed, abort marker, compressed and committed, data, commit marker.
TARGETS: Final = range(7, 14)
EVERY_BIT: Final = (BATCH_HEADER.at("attributes") + 1, BATCH_HEADER.at("last_offset_delta") + 3)


def _some_flips() -> Iterator[Flip]:
    """A bit of every byte, and all bits of those that decide most, of batches of all kinds."""
    for at in range(BATCH_HEADER.size):
        yield TARGETS[at % len(TARGETS)], at, at % 8
    for number in TARGETS:
        for at in EVERY_BIT:
            yield from ((number, at, bit) for bit in range(8))


def _check(folder: Path, name: str, flips: Iterable[Flip]) -> None:
    """Flip one bit after the other: what is seen is true, and whole unless something is raised."""
    is_committed, read = READERS[name]
    path = _segment(folder)
    whole = path.read_bytes()
    begins = [batch.position for batch in read_batches(whole)]
    with DataDirectory.open(folder, read_only=True) as data:
        truth, error = _seen(read, folder, data)
        assert error is None
        assert len(truth) == (85 if is_committed else 100)
    try:
        with path.open("r+b", buffering=0) as file:
            for number, at, bit in flips:
                position = begins[number] + at
                os.pwrite(file.fileno(), bytes([whole[position] ^ 1 << bit]), position)
                with DataDirectory.open(folder, read_only=True) as data:
                    seen, error = _seen(read, folder, data)
                assert seen == (truth if error is None else truth[: len(seen)]), (number, at, bit, error)
                assert error is None or isinstance(error, FormatError), error
                os.pwrite(file.fileno(), whole[position : position + 1], position)
    finally:
        path.write_bytes(whole)


@pytest.mark.parametrize("name", list(READERS))
def test_a_flipped_bit_of_a_header_neither_hides_nor_repeats_records(folder: Path, name: str) -> None:
    _check(folder, name, _some_flips())


@pytest.mark.parametrize("number", TARGETS)
def test_who_begins_near_a_flipped_bit_misses_nothing_either(folder: Path, number: int) -> None:
    path = _segment(folder)
    whole = path.read_bytes()
    batches = list(read_batches(whole))
    position = batches[number].position
    starts = {batch.base_offset + more for batch in batches[number - 1 : number + 2] for more in (0, 1, 3)}
    try:
        with DataDirectory.open(folder, read_only=True) as data, path.open("r+b", buffering=0) as file:
            log = data.log(*PARTITION)
            truth = [(record.offset, record.value) for record in log.reader(0).records()]
            for at in (BATCH_HEADER.at("base_offset") + 7, *EVERY_BIT):
                for bit in range(8):
                    os.pwrite(file.fileno(), bytes([whole[position + at] ^ 1 << bit]), position + at)
                    for start in starts:
                        _check_from(log, start, [each for each in truth if each[0] >= start])
                os.pwrite(file.fileno(), whole[position + at : position + at + 1], position + at)
    finally:
        path.write_bytes(whole)


def _check_from(log: ReadableLog, start: int, truth: list[Seen]) -> None:
    seen: list[Seen] = []
    try:
        seen.extend((record.offset, record.value) for record in log.reader(start, buffer_size=300).records())
    except FormatError:
        assert seen == truth[: len(seen)]
    else:
        assert seen == truth


@pytest.mark.soak
@pytest.mark.parametrize("name", list(READERS))
def test_no_bit_of_a_header_hides_or_repeats_records(folder: Path, name: str, soak: Soak) -> None:
    flips = [(number, at, bit) for at in range(BATCH_HEADER.size) for bit in range(8) for number in TARGETS]
    _check(folder, name, (flips[seed % len(flips)] for seed in soak.seeds()))
