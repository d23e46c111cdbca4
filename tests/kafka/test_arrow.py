"""Arrow columns against Apache Kafka: it reads what `from_arrow` writes, and `to_arrow` reads what it writes."""

from __future__ import annotations

import pytest

from octavo.records import Codec, Header, Record
from octavo.records.compression import decompress
from octavo.records.layout import BATCH_HEADER, MAGIC_AT, MESSAGE_V0, MESSAGE_V1
from tests.batches import generate
from tests.columns import records_of, rows_of, told_rows, write_columns
from tests.kafka.answers import BatchSpec, ReadRecord
from tests.kafka.judge import Judge

COUNTS = {"interpreted": 400, "compiled": 2000}  # any 200 in a row hold every combination

Generated = list[tuple[BatchSpec, list[Record]]]


@pytest.fixture(scope="module")
def all_generated() -> Generated:
    return list(generate(seed=20, count=max(COUNTS.values())))


@pytest.fixture(scope="module")
def all_built(kafka: Judge, all_generated: Generated) -> list[bytes]:
    return kafka.build_many(spec for spec, _ in all_generated)


@pytest.fixture
def generated(all_generated: Generated, each_kind_of_kernel: str) -> Generated:
    """Batches to build, and what reading them gives: so many as the kernels get through in a few seconds."""
    return all_generated[: COUNTS[each_kind_of_kernel]]


@pytest.fixture
def built(all_built: list[bytes], generated: Generated) -> list[bytes]:
    """The generated batches as Kafka builds them."""
    return all_built[: len(generated)]


def test_columns_hold_what_kafka_wrote(generated: Generated, built: list[bytes]) -> None:
    for (spec, records), data in zip(generated, built, strict=True):
        assert records_of(data) == records, spec


def test_columns_hold_what_kafka_reads(kafka: Judge, built: list[bytes]) -> None:
    for data, reading in zip(built, kafka.read_many(built), strict=True):
        assert rows_of(data) == told_rows(reading.batches)


def test_many_batches_of_all_kinds_in_one_buffer(generated: Generated, built: list[bytes]) -> None:
    """Chunks that end anywhere give the same records as one batch at a time."""
    expected = [record for _, records in generated for record in records]
    buffer = b"".join(built)
    assert records_of(buffer) == expected
    assert records_of(buffer, max_rows=7) == expected
    assert records_of(buffer, max_bytes=3000) == expected


def test_kafka_reads_what_columns_wrote(kafka: Judge, generated: Generated) -> None:
    ours = [write_columns(spec) for spec, _ in generated]
    for (spec, records), reading in zip(generated, kafka.read_many(ours), strict=True):
        assert reading.fault is None, spec
        assert all(batch.valid for batch in reading.batches)
        told = [record for batch in reading.batches for record in batch.records]
        sequences = spec.last_offset is None and not any(record.offset for record in spec.records)
        assert [_record(record, sequences) for record in told] == [
            record if sequences else record._replace(sequence=-1) for record in records
        ], spec


def test_uncompressed_columns_become_the_bytes_that_kafka_builds(generated: Generated, built: list[bytes]) -> None:
    compared = 0
    for (spec, _), data in zip(generated, built, strict=True):
        # A batch that compaction has made smaller keeps offsets that no record has: columns cannot say which.
        kept = spec.last_offset is None and (not spec.records or spec.records[0].offset in (None, spec.base_offset))
        if spec.codec == "none" and (kept or spec.magic < 2):
            assert write_columns(spec) == data, spec
            compared += 1
    assert compared > len(generated) // 6


def test_compressed_columns_hold_the_same_stream_as_kafkas(generated: Generated, built: list[bytes]) -> None:
    for (spec, _), data in zip(generated, built, strict=True):
        if spec.codec != "none" and spec.last_offset is None and spec.records[0].offset in (None, spec.base_offset):
            assert _stream(spec, write_columns(spec)) == _stream(spec, data), spec


def _stream(spec: BatchSpec, data: bytes) -> tuple[bytes, bytes]:
    """What of a batch does not depend on the compressor, and what its stream holds."""
    if spec.magic == 2:
        start = BATCH_HEADER.size
        head = BATCH_HEADER.write(BATCH_HEADER.read(data)._replace(length=0, crc=0))
    else:  # a wrapper has no key: two lengths stand before its value
        layout = MESSAGE_V1 if spec.magic else MESSAGE_V0
        start = layout.size + 8
        head = data[:8] + data[MAGIC_AT : layout.size]
    return head, bytes(decompress(Codec[spec.codec.upper()], data[start:], magic=spec.magic))


def _record(told: ReadRecord, sequences: bool) -> Record:
    headers = tuple(Header(key, value) for key, value in told.headers)
    return Record(told.offset, told.timestamp_ms, told.key, told.value, headers, told.sequence if sequences else -1)
