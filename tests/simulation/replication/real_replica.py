"""What is in the log of a replica on a simulated disk: `RealReplica`, for the checks."""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Final

from octavo.log import Isolation, Log
from octavo.records import BatchBuilder, read_batches
from tests.clock import TIME_MS
from tests.simulation.replication.memory_log import Entry

_VALUE: Final = struct.Struct(">i")
_HEAD: Final = struct.Struct(">qi")  # base offset, and the size of what follows
_ENOUGH: Final = 1 << 30
# A log is cut between batches, but ends where the leader says, as Kafka's does. That is within a batch, perhaps, if the
# start of the leader's log has moved on.
HOLE: Final = Entry(-1, -1)


def batch_of(values: list[int]) -> bytes:
    """Return a batch with these values, one a record."""
    builder = BatchBuilder(base_offset=0, leader_epoch=-1)
    for value in values:
        builder.append(None, _VALUE.pack(value), timestamp_ms=TIME_MS)
    return builder.build()


@lru_cache(1 << 14)
def _entries_of(batch: bytes) -> tuple[Entry, ...]:
    (read,) = read_batches(batch)
    return tuple(Entry(read.leader_epoch, _VALUE.unpack(bytes(record.value or b""))[0]) for record in read)


class RealReplica:
    """A log that is open."""

    def __init__(self, log: Log) -> None:
        self.log: Final = log

    @property
    def start_offset(self) -> int:
        """Where the log begins."""
        return self.log.start_offset

    @property
    def end_offset(self) -> int:
        """Where it ends."""
        return self.log.end_offset

    @property
    def high_watermark(self) -> int:
        """How far it is committed."""
        return self.log.high_watermark

    @property
    def entries(self) -> list[Entry]:
        """Everything between its start and its end."""
        log, entries = self.log, list[Entry]()
        offset = start = log.start_offset
        while offset < log.end_offset:
            result = log.read(offset, _ENOUGH, isolation=Isolation.LOG_END)
            data, position = bytes(result.records), 0
            if not data:
                entries += [HOLE] * (log.end_offset - offset)
                break
            while position < len(data):
                base, size = _HEAD.unpack_from(data, position)
                batch = data[position : position + _HEAD.size + size]
                found = _entries_of(batch)
                entries += found[max(0, offset - base) :]
                offset, position = base + len(found), position + len(batch)
        assert len(entries) == log.end_offset - start, f"{len(entries)} records from {start} to {log.end_offset}"
        return entries


class NoReplica:
    """A log that nobody has open."""

    start_offset: Final = 0
    end_offset: Final = 0
    high_watermark: Final = 0
    entries: Final = ()
