"""`convert` against what Apache Kafka makes of the same batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from octavo.errors import Unsupported
from octavo.records import Codec, Record, convert, read_batches
from octavo.records.layout import BATCH_HEADER
from tests.batches import TIME_MS, build, generate
from tests.kafka.answers import BatchSpec, ReadBatch
from tests.kafka.judge import Judge, KafkaError

Generated = list[tuple[BatchSpec, bytes]]


@pytest.fixture(scope="module")
def generated() -> Generated:
    return [(spec, build(spec)) for spec, _ in generate(seed=30, count=400)]


def _lower(generated: Generated) -> Iterator[tuple[BatchSpec, bytes, int]]:
    for spec, data in generated:
        for magic in range(spec.magic):
            yield spec, data, magic


def test_down_conversion_gives_what_kafka_sends_to_old_consumers(kafka39: Judge, generated: Generated) -> None:
    compared = 0
    for spec, data, magic in _lower(generated):
        if spec.codec == "zstd" and not spec.control:
            with pytest.raises(Unsupported):
                convert(data, magic=magic)
            with pytest.raises(KafkaError, match="zstandard"):
                kafka39.down_convert(data, magic)
            continue
        ours = convert(data, magic=magic).data
        theirs = kafka39.down_convert(data, magic)
        if spec.codec == "none":
            assert ours == theirs, spec
        else:
            assert [list(batch) for batch in read_batches(ours)] == [list(batch) for batch in read_batches(theirs)]
            assert _headers(kafka39, ours) == _headers(kafka39, theirs)
        compared += 1
    assert compared > 300


def test_up_conversion_gives_the_batch_that_kafka_appends(kafka_broker: Judge, generated: Generated) -> None:
    compared = 0
    for spec, data in generated:
        renumbered = any(record.offset is not None for record in spec.records)
        if spec.magic == 2 or renumbered or spec.timestamp_type == "LogAppendTime":
            continue  # Kafka gives new offsets, and takes no append times from producers
        ours = convert(data, magic=2).data
        theirs = kafka_broker.validate(
            data, codec=spec.codec, first_offset=spec.base_offset, now_ms=TIME_MS, leader_epoch=-1
        ).data
        if spec.codec == "none":
            assert ours == theirs, spec
        else:
            assert _fields(ours) == _fields(theirs)
        compared += 1
    assert compared > 80


@pytest.mark.parametrize("codec", list(Codec))
def test_another_codec_changes_nothing_that_kafka_reads(kafka: Judge, generated: Generated, codec: Codec) -> None:
    chosen = [data for spec, data in generated if spec.magic == 2][::3]
    converted = [convert(data, codec=codec) for data in chosen]
    assert not any(result.lost for result in converted)
    before, after = kafka.read_many(chosen), kafka.read_many(result.data for result in converted)
    for old, new in zip(before, after, strict=True):
        assert new.fault is None
        for was, now in zip(old.batches, new.batches, strict=True):
            assert now.codec == codec.name.lower()
            assert replace(now, codec=was.codec, size=was.size, checksum=was.checksum) == was


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_old_messages_are_wrapped_and_unwrapped(kafka39: Judge, generated: Generated, magic: int, codec: Codec) -> None:
    for spec, data in generated:
        if spec.magic == magic:
            converted = convert(data, codec=codec)
            reading = kafka39.read(converted.data)
            assert reading.fault is None
            assert {batch.codec for batch in reading.batches} == {codec.name.lower()}
            assert _records(converted.data) == _records(data)
            assert not converted.lost


def _records(data: bytes) -> list[Record]:
    return [record for batch in read_batches(data) for record in batch]


def _headers(kafka: Judge, data: bytes) -> list[ReadBatch]:
    """What Kafka reads but for what depends on the compressor."""
    reading = kafka.read(data)
    assert reading.fault is None
    return [replace(batch, size=0, checksum=0) for batch in reading.batches]


def _fields(data: bytes) -> tuple[object, list[Record]]:
    """A batch but for what depends on the compressor."""
    return BATCH_HEADER.read(data)._replace(length=0, crc=0), _records(data)
