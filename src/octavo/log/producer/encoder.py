"""Encodes columns as batches: `Encoder`, and `Parcel`, the batches of one partition that are appended together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from octavo.errors import RecordTooLarge
from octavo.log.coordinator.producer_identity import ProducerIdentity
from octavo.log.producer.future import Delivery
from octavo.log.producer.record_columns import Int64s, RecordColumns
from octavo.records import BatchBuilder, Codec, read_batches
from octavo.records.checksum import crc_of
from octavo.records.compression import compress
from octavo.records.kernels import Kernels, encode, encode_input
from octavo.records.kernels.batch_checksums import checksum_tables
from octavo.records.kernels.machine import SLACK
from octavo.records.layout import (
    ATTRIBUTES_AT,
    BATCH_HEADER,
    CRC_AT,
    HEADER_SIZE,
    MAX_SIZE,
    NO_LEADER_EPOCH,
    NO_TIMESTAMP,
    Attributes,
    Buffer,
)
from octavo.records.v2 import write_batch

_BASE_OFFSET_BYTES: Final = np.arange(BATCH_HEADER.at("length"))
_MOST_RECORD_FIELDS: Final = 36  # maximum: five varints of 5 bytes, one of 10, and the attributes
_MOST_HEADER_FIELDS: Final = 10

# Kafka's `CompressionRatioEstimator` learns quickly that it was too optimistic, and slowly that there is room.
_WORSE: Final = 0.05
_BETTER: Final = 0.005
_CAUTION: Final = 1.05


class Sealed(NamedTuple):
    """One complete batch, ready to be appended, and the rows of its records."""

    data: Buffer
    first: int  # first row in the parcel
    last: int  # row after the last one


class Attempt(NamedTuple):
    """An append of batches of a parcel that was begun, and whose outcome is not noted yet."""

    producer: ProducerIdentity
    sequence: int
    record_count: int
    rows: Any  # their indexes in the delivery
    end: int  # index after the last of the batches


class Parcel:
    """Batches of one partition, in order, whose records belong to one delivery."""

    __slots__ = ("attempt", "batches", "bumped_for", "data", "delivery", "done", "partition", "rows")

    def __init__(self, partition: int, delivery: Delivery, rows: Any, batches: list[Sealed], data: Buffer) -> None:
        self.partition: Final = partition
        self.delivery: Final = delivery
        self.rows: Final = rows  # indexes of its records in the delivery: an array, or a slice
        self.batches: Final = batches
        self.data: Final = data  # all batches, one after the other
        self.attempt: Attempt | None = None  # left set by an exception from outside
        self.done = 0  # number of batches whose outcome is known
        self.bumped_for = -1  # index of the batch for which another epoch was taken

    @property
    def count(self) -> int:
        """Number of records."""
        return self.batches[-1].last - self.batches[0].first

    def rows_of(self, batches: Sequence[Sealed]) -> Any:
        """The indexes of the records of successive batches in the delivery: an array, or a slice."""
        first, last = batches[0].first, batches[-1].last
        if isinstance(self.rows, slice):
            return slice(self.rows.start + first, self.rows.start + last)
        return self.rows[first:last]


class Share(NamedTuple):
    """The rows that go to one partition, and the sequence number of the first."""

    partition: int
    first: int
    last: int  # row after the last one
    sequence: int


class Writer(NamedTuple):
    """The fields of a batch about its producer."""

    producer_id: int
    producer_epoch: int
    is_transactional: bool


class Encoded(NamedTuple):
    """An uncompressed batch in the encoder's memory."""

    start: int
    end: int
    share: int  # index of its share
    first: int
    last: int  # row after the last one

    @property
    def size(self) -> int:
        """Size in bytes."""
        return self.end - self.start


class Encoder:
    """Encodes records as batches, in memory that it reuses."""

    def __init__(self, codec: Codec, level: int | None, batch_size: int) -> None:
        self._codec: Final = codec
        self._level: Final = level
        self._batch_size: Final = batch_size
        self._ratio = 1.0  # estimated ratio of compressed to uncompressed bytes
        self._memory = np.empty(0, np.uint8)

    @property
    def max_size(self) -> int:
        """The uncompressed size at which a batch is expected to reach `batch.size` when compressed."""
        if self._codec == Codec.NONE:
            return max(1, self._batch_size)
        room = max(0, self._batch_size - HEADER_SIZE)
        return min(MAX_SIZE, HEADER_SIZE + int(room / max(0.01, self._ratio * _CAUTION)))

    def encode(
        self, columns: RecordColumns, order: Int64s | None, shares: Sequence[Share], writer: Writer, kernels: Kernels
    ) -> list[Encoded]:
        """Encode the records of all shares as batches, in order. The batches are valid until the next call."""
        attributes = int(self._codec) | (Attributes.TRANSACTIONAL if writer.is_transactional else 0)
        who = (writer.producer_id, writer.producer_epoch)
        groups = np.array(
            [
                (share.first, share.last, attributes, NO_LEADER_EPOCH, *who, share.sequence, NO_TIMESTAMP, 0)
                for share in shares
            ],
            np.int64,
        )
        rows = columns.rows(order)
        max_size = self.max_size
        size = columns.size + columns.count * _MOST_RECORD_FIELDS + int(columns.header_ends[-1]) * _MOST_HEADER_FIELDS
        # A batch ends with its share, or where the next record does not fit. In the second case, the batch and that
        # record together exceed the maximum size.
        most = min(columns.count, len(shares) + 2 * size // max(1, max_size - HEADER_SIZE) + 2)
        out = self._room(size + most * HEADER_SIZE + SLACK)
        table = np.empty((most, encode.BATCH_COLUMNS), np.int64)
        checks = kernels.checks_fast and self._codec == Codec.NONE
        count = kernels.encode(checksum_tables(), rows, 0, groups, 2, int(checks), max_size, MAX_SIZE, out, table)
        if count < 0:
            assert count != encode_input.NO_ROOM, "the room for batches was computed too small"
            raise RecordTooLarge(size, MAX_SIZE, "the largest batch")
        if not checks and self._codec == Codec.NONE:
            view = out.data
            for start, end in table[:count, [encode.BATCH_START, encode.BATCH_END]].tolist():
                view[start + CRC_AT : start + ATTRIBUTES_AT] = crc_of(view[start:end], 2).to_bytes(4, "big")
        out[table[:count, encode.BATCH_START, None] + _BASE_OFFSET_BYTES] = 0  # as in clients: the log assigns offsets
        return _batches(table[:count])

    def seal(self, batches: Sequence[Encoded], first: int) -> tuple[list[Sealed], Buffer]:
        """Complete batches of one partition, and compress them if configured. Return them, and all their bytes.

        `first`: the first row of the parcel, from which the rows of its batches are counted.
        """
        view = self._memory.data
        if self._codec == Codec.NONE:
            data: Buffer = view[batches[0].start : batches[-1].end]
            sealed = [
                Sealed(view[batch.start : batch.end], batch.first - first, batch.last - first) for batch in batches
            ]
            return sealed, data
        sealed = [
            Sealed(self._compressed(view[batch.start : batch.end]), batch.first - first, batch.last - first)
            for batch in batches
        ]
        return sealed, sealed[0].data if len(sealed) == 1 else b"".join([batch.data for batch in sealed])

    def _compressed(self, batch: memoryview) -> bytes:
        plain = batch[HEADER_SIZE:]
        packed = compress(self._codec, plain, level=self._level)
        seen = len(packed) / len(plain)
        self._ratio = max(self._ratio + _WORSE, seen) if seen > self._ratio else max(self._ratio - _BETTER, seen)
        return write_batch(BATCH_HEADER.read(batch), packed)

    def _room(self, size: int) -> npt.NDArray[np.uint8]:
        if len(self._memory) < size or len(self._memory) > 8 * size + (1 << 22):
            self._memory = np.empty(size + size // 4, np.uint8)
        return self._memory


def _batches(table: Int64s) -> list[Encoded]:
    batches = []
    first = 0
    for start, end, share, last_offset, _ in table.tolist():
        batches.append(Encoded(start, end, share, first, last_offset + 1))  # offsets are row numbers
        first = last_offset + 1
    return batches


def renumbered(batch: Buffer, producer_id: int, producer_epoch: int, sequence: int) -> bytes:
    """Return the batch with this producer id and epoch, and sequence numbers from `sequence` on."""
    header = BATCH_HEADER.read(batch)._replace(
        producer_id=producer_id, producer_epoch=producer_epoch, base_sequence=sequence
    )
    return write_batch(header, memoryview(batch)[HEADER_SIZE:])


def halves(sealed: Sealed, level: int | None) -> list[Sealed]:
    """Split a batch into two with the same base sequence. The caller must renumber them."""
    [batch] = read_batches(bytes(sealed.data))
    records = list(batch)
    middle = len(records) // 2
    made = []
    for first, last in ((0, middle), (middle, len(records))):
        builder = BatchBuilder(
            codec=batch.codec,
            level=level,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
            transactional=batch.is_transactional,
        )
        for record in records[first:last]:
            builder.append(record.key, record.value, timestamp_ms=record.timestamp_ms, headers=record.headers)
        made.append(Sealed(builder.build(), sealed.first + first, sealed.first + last))
    return made
