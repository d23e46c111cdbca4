"""The readers of kafka-python and aiokafka, used as their consumers use them, and aiokafka's builder.

Checksums are verified, and the key and value of every record are accessed. Each pass returns how many records it saw.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from aiokafka.record import default_records, memory_records
from kafka.codec import has_snappy
from kafka.record import MemoryRecords

from octavo.records import Codec, read_batches

# Without its compiled modules aiokafka is as slow as kafka-python, and not a fair peer.
for _class in (memory_records.MemoryRecords, default_records.DefaultRecordBatchBuilder):
    assert _class.__module__.startswith("aiokafka.record._crecords"), "aiokafka's compiled modules are missing"


def read_with_aiokafka(data: bytes) -> int:
    """Read all records once with aiokafka; return their number."""
    return _read(memory_records.MemoryRecords(data))


def read_all_fields_with_aiokafka(data: bytes) -> int:
    """Read all records once with aiokafka, and access every field for which `to_arrow` makes a column."""
    records = memory_records.MemoryRecords(data)
    count = 0
    while records.has_next():
        batch = records.next_batch()
        if not batch.validate_crc():
            raise AssertionError("a checksum is wrong")
        for record in batch:
            record.offset, record.timestamp, record.timestamp_type, record.key, record.value, record.headers  # noqa: B018
            count += 1
    return count


def read_with_kafka_python(data: bytes) -> int:
    """Read all records once with kafka-python; return their number."""
    return _read(MemoryRecords(data))


def _read(records: Any) -> int:
    count = 0
    while records.has_next():
        batch = records.next_batch()
        if not batch.validate_crc():
            raise AssertionError("a checksum is wrong")
        for record in batch:
            record.key, record.value  # noqa: B018 (accessing them is the point)
            count += 1
    return count


def read_objects(data: bytes) -> int:
    """Read all records once as Octavo's `Record` objects; return their number."""
    count = 0
    for batch in read_batches(data):
        for record in batch:
            record.key, record.value  # noqa: B018
            count += 1
    return count


def kafka_python_reads(codec: str) -> bool:
    """Whether the library that kafka-python needs for this codec is installed."""
    return codec != "snappy" or bool(has_snappy())


class Row(NamedTuple):
    """The fields of a record, as input for aiokafka's builder."""

    timestamp_ms: int
    key: bytes
    value: bytes


def build_with_aiokafka(
    records: Sequence[Row], codec: Codec, batch_count: int, room: int
) -> Iterator[bytes | bytearray]:
    """Build batches of `batch_count` records with aiokafka, each of at most `room` bytes."""
    for first in range(0, len(records), batch_count):
        builder = default_records.DefaultRecordBatchBuilder(2, int(codec), 0, -1, -1, -1, room)
        append = builder.append
        for delta, (timestamp_ms, key, value) in enumerate(records[first : first + batch_count]):
            append(delta, timestamp_ms, key, value, [])
        yield builder.build()
