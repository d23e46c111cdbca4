"""Make logs for Spark to read: segments of a gigabyte, made of copies of batches that Apache Kafka wrote.

Offsets and timestamps continue from segment to segment, so that ranges of both make sense. Indexes are like Kafka's.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

from benchmarks.data import FOLDER, DataSet, prepare
from benchmarks.measure import tell
from octavo.records import read_batches
from octavo.records.checksum import crc32c
from octavo.records.layout import BATCH_HEADER

RECORDS: Final = 8_720_000  # number of records in a segment: a gigabyte, uncompressed
TOPIC: Final = "events"
_INTERVAL: Final = 4096  # number of bytes between two index entries
_CRC_AT: Final = BATCH_HEADER.at("crc")
_COVERED_FROM: Final = BATCH_HEADER.at("attributes")
_BASE_TIME_AT: Final = BATCH_HEADER.at("base_timestamp_ms")
_MAX_TIME_AT: Final = BATCH_HEADER.at("max_timestamp_ms")


def make(codec: str, segments: int, scale: int) -> Path:
    """Make a data directory with one partition of this many segments, unless it exists; return its path."""
    data_set = DataSet(codec=codec, count=RECORDS // scale)
    folder = FOLDER / "spark" / f"{codec}-{data_set.count}-{segments}"
    if folder.exists():
        return folder
    prepare([data_set])
    tell(f"a log of {segments * data_set.count:,} records: {data_set.shape}")
    unfinished = folder.with_suffix(".part")
    partition = unfinished / f"{TOPIC}-0"
    partition.mkdir(parents=True, exist_ok=True)
    shift_ms = _length_ms(data_set.read())
    for number in range(segments):
        _write_segment(partition, bytearray(data_set.read()), number * data_set.count, number * shift_ms)
    (partition / "leader-epoch-checkpoint").write_text("0\n0\n")
    unfinished.rename(folder)
    return folder


def _length_ms(data: bytes) -> int:
    """Return how many milliseconds a segment covers: the next one begins that much later."""
    batches = list(read_batches(data, verify=False))
    return batches[-1].max_timestamp_ms - batches[0].max_timestamp_ms + 1


def _write_segment(folder: Path, data: bytearray, base_offset: int, shift_ms: int) -> None:
    offsets, times = bytearray(), bytearray()
    unindexed, largest_ms = 0, -1
    for batch in read_batches(bytes(data), verify=False):
        at = batch.position
        last_offset = base_offset + batch.last_offset
        max_ms = batch.max_timestamp_ms + shift_ms
        struct.pack_into(">q", data, at, base_offset + batch.base_offset)
        base_ms = struct.unpack_from(">q", data, at + _BASE_TIME_AT)[0]
        struct.pack_into(">q", data, at + _BASE_TIME_AT, base_ms + shift_ms)
        struct.pack_into(">q", data, at + _MAX_TIME_AT, max_ms)
        covered = memoryview(data)[at + _COVERED_FROM : at + batch.size]
        struct.pack_into(">I", data, at + _CRC_AT, crc32c(covered))
        if unindexed > _INTERVAL:
            offsets += struct.pack(">ii", last_offset - base_offset, at)
            if max_ms > largest_ms:
                times += struct.pack(">qi", max_ms, last_offset - base_offset)
                largest_ms = max_ms
            unindexed = 0
        unindexed += batch.size
    name = f"{base_offset:020d}"
    (folder / f"{name}.log").write_bytes(data)
    (folder / f"{name}.index").write_bytes(offsets)
    (folder / f"{name}.timeindex").write_bytes(times)
