"""Read the batches of all segments of a partition, check them, and show the sound ones to the other checks."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence

import numpy as np
from crc32c import crc32c

from octavo.inspect.verify.batch_columns import COLUMNS, Table
from octavo.inspect.verify.folder import read_at
from octavo.inspect.verify.partition import BatchCheck, PartitionFolder, SegmentData
from octavo.inspect.verify.problem import Problem
from octavo.log.names import LOG, file_name

_HEADER = struct.Struct(">qiibIhiqqqhii")
_ROWS = 1 << 12


def walk_segments(folder: PartitionFolder, checks: Sequence[BatchCheck]) -> Iterator[Problem]:
    """Yield the problems of all segments, and show their sound batches to `checks`."""
    bases = folder.segments
    for number, base_offset in enumerate(bases):
        entry = folder.files[file_name(base_offset, LOG)]
        behind = bases[number + 1] if number + 1 < len(bases) else None
        segment = SegmentData(base_offset, entry, is_last=behind is None, next_base_offset=behind)
        for check in checks:
            yield from check.begin(segment)
        with folder.open(entry.name) as descriptor:
            for table in _tables(descriptor, segment):
                for check in checks:
                    yield from check.batches(table)
        for check in checks:
            yield from check.end(segment)


def _tables(descriptor: int, segment: SegmentData) -> Iterator[Table]:
    end = os.fstat(descriptor).st_size
    table = np.full((_ROWS, COLUMNS), -1, np.int64)
    rows = 0
    while segment.end_position + _HEADER.size <= end:
        position = segment.end_position
        (base, length, epoch, magic, crc, attributes, delta, _, newest, producer, producer_epoch, sequence, count) = (
            _HEADER.unpack(read_at(descriptor, _HEADER.size, position))
        )
        data = read_at(descriptor, max(length - 9, 0), position + 21)
        if magic != 2 or length < 49 or len(data) < length - 9 or crc32c(data) != crc:
            segment.is_sound = False
            break
        kind, coordinator = -1, -1
        if attributes & 0x20 and count == 1 and len(data) >= 57:
            kind = int.from_bytes(data[47:49])  # the key follows five fields of a byte each
            coordinator = int.from_bytes(data[52:56]) if kind < 2 else -1
        header = (position, length + 12, magic, attributes & 0xFF, base, base + delta, epoch)
        table[rows] = (*header, newest, producer, producer_epoch, sequence, count, kind, coordinator)
        rows += 1
        segment.end_position += length + 12
        segment.end_offset = base + delta + 1
        segment.largest_timestamp = max(segment.largest_timestamp, newest)
        if rows == _ROWS:
            yield table
            rows = 0
    if rows:
        yield table[:rows]
