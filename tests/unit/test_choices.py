"""Mend 1.7: whoever takes a choice takes Kafka's word and the member of the enumeration alike, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from octavo.errors import InvalidInput
from octavo.inspect import Binary, Dump
from octavo.log import (
    ConsumerConfig,
    DataDirectory,
    Isolation,
    Log,
    LogConfig,
    OffsetReset,
    Origin,
    Producer,
    ProducerConfig,
    WatchedLog,
)
from octavo.records import (
    BatchBuilder,
    Codec,
    TimestampType,
    convert,
    empty_batch,
    end_transaction_marker,
    from_arrow,
    read_batches,
)
from octavo.records.arrow.divided import from_arrow_divided

TIME_MS = 1_700_000_000_000


@pytest.fixture
def data(tmp_path: Path) -> Iterator[DataDirectory]:
    """A topic with a record that is committed, one that is aborted, and one of a transaction that is open."""
    with DataDirectory.open(tmp_path / "data", clock=lambda: TIME_MS) as opened:
        opened.create_topic("t", 1)
        log = opened.log("t", 0)
        log.append(batch("plain"))
        log.append(batch("aborted", 5000))
        marker = end_transaction_marker(
            False, timestamp_ms=TIME_MS, producer_id=5000, producer_epoch=0, coordinator_epoch=0
        )
        log.append(marker, origin=Origin.COORDINATOR)
        log.append(batch("open", 6000))
        yield opened


def batch(value: str, producer_id: int = -1) -> bytes:
    builder = BatchBuilder(
        producer_id=producer_id,
        producer_epoch=-1 if producer_id < 0 else 0,
        base_sequence=-1 if producer_id < 0 else 0,
        transactional=producer_id >= 0,
    )
    builder.append(None, value.encode(), timestamp_ms=TIME_MS + len(value))
    return builder.build()


SEEN = {
    "read_uncommitted": [b"plain", b"aborted", b"open"],
    "read_committed": [b"plain"],
    Isolation.HIGH_WATERMARK: [b"plain", b"aborted", b"open"],
    Isolation.READ_COMMITTED: [b"plain"],
}


def both(data: DataDirectory) -> list[Log | WatchedLog]:
    log = data.log("t", 0)
    return [log, Log.open(log.folder, read_only=True)]


@pytest.mark.parametrize("isolation", SEEN)
def test_1_7_a_word_reads_what_its_member_reads(data: DataDirectory, isolation: Isolation | str) -> None:
    for log in both(data):
        with log if isinstance(log, WatchedLog) else _Open():
            found = [record.value for record in log.reader(0, isolation=isolation).records()]
            assert found == SEEN[isolation]
            is_committed = found == [b"plain"]
            end = log.last_stable_offset if is_committed else log.end_offset
            assert list(read_batches(log.read(0, 1 << 20, isolation=isolation).records))[-1].last_offset == end - 1
            newest = log.offset_for_timestamp(TIME_MS + len("plain") + 1, isolation=isolation)
            assert newest is not None
            assert newest.offset == 1
            largest = log.max_timestamp_offset(isolation=isolation)
            assert largest is not None
            assert largest.offset == 1


def test_1_7_a_watched_log_finds_no_timestamp_that_is_not_committed(data: DataDirectory) -> None:
    log = data.log("t", 0)
    later = BatchBuilder(producer_id=6000, producer_epoch=0, base_sequence=1, transactional=True)
    later.append(None, b"later", timestamp_ms=TIME_MS + 1000)
    log.append(later.build())
    for isolation in ("read_committed", Isolation.READ_COMMITTED):
        with Log.open(log.folder, read_only=True) as watched:
            assert watched.offset_for_timestamp(TIME_MS + 500, isolation=isolation) is None
        with Log.open(log.folder, read_only=True) as watched:
            assert watched.max_timestamp_offset(isolation=isolation) is None


class _Open:
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


class Choice(NamedTuple):
    """Something that takes a choice: words, with the members that mean the same."""

    call: Callable[[Any], Any]
    same: dict[str, Any]


def builds(**given: Any) -> bytes:
    builder = BatchBuilder(log_append_time_ms=TIME_MS, **given)
    builder.append(b"k", b"v", timestamp_ms=TIME_MS)
    return builder.build()


ROWS = pa.RecordBatch.from_pydict({"value": pa.array([b"v" * 100], pa.binary())})
CODECS = {codec.name.lower(): codec for codec in Codec}
TIMES = {"CreateTime": TimestampType.CREATE_TIME, "LogAppendTime": TimestampType.LOG_APPEND_TIME}
ISOLATIONS = {"read_uncommitted": Isolation.HIGH_WATERMARK, "read_committed": Isolation.READ_COMMITTED}
RESETS = {word: OffsetReset(word) for word in ("earliest", "latest", "none")}

CHOICES = {
    "BatchBuilder codec": Choice(lambda choice: builds(codec=choice), CODECS),
    "BatchBuilder timestamp_type": Choice(lambda choice: builds(timestamp_type=choice), TIMES),
    "empty_batch": Choice(lambda choice: empty_batch(base_offset=0, last_offset=1, timestamp_type=choice), TIMES),
    "from_arrow codec": Choice(lambda choice: bytes(from_arrow(ROWS, codec=choice)), CODECS),
    "from_arrow timestamp_type": Choice(
        lambda choice: bytes(from_arrow(ROWS, timestamp_type=choice, log_append_time_ms=TIME_MS)), TIMES
    ),
    "from_arrow_divided": Choice(
        lambda choice: [bytes(b"".join(one)) for one in from_arrow_divided(ROWS, [1], codec=choice, max_size=1000)],  # type: ignore[arg-type]  # a list will do
        CODECS,
    ),
    "convert": Choice(lambda choice: convert(builds(), codec=choice), CODECS),
    "ProducerConfig": Choice(lambda choice: ProducerConfig(compression_type=choice).compression_type, CODECS),
    "ProducerConfig.of": Choice(
        lambda choice: ProducerConfig.of({"compression.type": choice}).compression_type, CODECS
    ),
    "acks": Choice(lambda choice: str(ProducerConfig.of(acks=choice).acks), {"-1": -1, "0": 0, "1": 1}),
    "ConsumerConfig isolation": Choice(
        lambda choice: ConsumerConfig(isolation_level=choice).isolation_level, ISOLATIONS
    ),
    "ConsumerConfig.of isolation": Choice(
        lambda choice: ConsumerConfig.of({"isolation.level": choice}).isolation_level, ISOLATIONS
    ),
    "ConsumerConfig reset": Choice(lambda choice: ConsumerConfig(auto_offset_reset=choice).auto_offset_reset, RESETS),
    "ConsumerConfig.of reset": Choice(
        lambda choice: ConsumerConfig.of(auto_offset_reset=choice).auto_offset_reset, RESETS
    ),
    "LogConfig timestamp": Choice(lambda choice: LogConfig(message_timestamp_type=choice), TIMES),
    "LogConfig compression": Choice(
        lambda choice: LogConfig(compression_type=choice),
        {"uncompressed": Codec.NONE} | {word: codec for word, codec in CODECS.items() if codec},
    ),
}

NO_CHOICES: tuple[Any, ...] = ("nonsense", "", "READ_COMMITTED", "Gzip", 7, True, 1.0, None, [], object())


@pytest.mark.parametrize("choice", CHOICES)
def test_1_7_words_and_members_mean_the_same(choice: str) -> None:
    call, same = CHOICES[choice]
    for word, member in same.items():
        assert call(word) == call(member)
    assert len({str(call(word)) for word in same}) == len(same)


@pytest.mark.parametrize("choice", CHOICES)
def test_1_7_anything_else_is_refused_by_name(choice: str) -> None:
    for wrong in NO_CHOICES:
        if (choice, wrong) == ("convert", None):
            continue  # which keeps the codec
        with pytest.raises(InvalidInput, match="must be"):
            CHOICES[choice].call(wrong)


@pytest.mark.parametrize("wrong", NO_CHOICES)
def test_1_7_a_log_refuses_anything_else(data: DataDirectory, wrong: Any) -> None:
    for log in both(data):
        with log if isinstance(log, WatchedLog) else _Open():
            calls: list[Callable[..., object]] = [
                partial(log.read, 0, 100),
                partial(log.reader, 0),
                partial(log.offset_for_timestamp, 0),
                log.max_timestamp_offset,
            ]
            for call in calls:
                with pytest.raises(InvalidInput, match=r"isolation cannot be .*: it must be one of read_uncommitted, "):
                    call(isolation=wrong)
    with pytest.raises(InvalidInput, match="origin cannot be"):
        data.log("t", 0).append(batch("no"), origin=wrong)
    with pytest.raises(InvalidInput, match="it must be one of none, gzip, snappy, lz4, zstd"):
        Producer(data, {"compression.type": wrong})


def test_1_7_an_origin_that_is_no_member_checks_sequences_as_its_word_says(data: DataDirectory) -> None:
    log = data.log("t", 0)
    log.append(batch("more", -1), origin="client")
    with pytest.raises(InvalidInput):
        log.append(batch("more", -1), origin="CLIENT")
    assert log.end_offset == 5


@pytest.mark.parametrize("binary", Binary)
def test_1_7_a_dump_takes_words_and_members(data: DataDirectory, binary: Binary) -> None:
    path = data.log("t", 0).segments[0].path
    assert list(Dump(path, binary=binary.value)) == list(Dump(path, binary=binary))
    with pytest.raises(InvalidInput, match="binary cannot be 'nonsense'"):
        Dump(path, binary="nonsense")
