"""Build batches: `BatchBuilder` for all three magics, `empty_batch` for what compaction leaves behind.

Without compression, the same records give the same bytes as Kafka's `MemoryRecordsBuilder`. What Kafka's builder
refuses is refused here with `InvalidInput`, before any of it is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from octavo.errors import InvalidInput
from octavo.records.compression import compress
from octavo.records.fields import bytes_of, check_control_key, check_fields, check_range, codec_of, timestamp_type_of
from octavo.records.kernels.machine import wrap64
from octavo.records.layout import (
    BATCH_HEADER,
    MAX_INT32,
    MAX_INT64,
    MAX_SIZE,
    MIN_INT64,
    NO_LEADER_EPOCH,
    NO_OFFSET,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    Attributes,
    BatchHeader,
    Buffer,
    Codec,
    TimestampType,
)
from octavo.records.legacy import message_size, write_message
from octavo.records.record import Record
from octavo.records.v2 import HeaderLike, record_size, write_batch, write_headers, write_record


class _Candidate(NamedTuple):
    """A record that was checked but is not written yet."""

    offset: int
    timestamp_ms: int
    key: Buffer | None
    value: Buffer | None
    header_count: int
    headers: bytes
    size: int


class BatchBuilder:
    """Collects the records of one batch and writes it, header last.

    In magic 2 the result is one batch. In magic 0 and 1 each record becomes a message of its own; with a codec, one
    wrapper holds all of them. `append` returns None when a record no longer fits: `max_size` limits `size`, `max_count`
    limits the number of records. As in Kafka, the first record always fits, so that every record fits somewhere.

    codec, timestamp_type: or Kafka's words for them, such as "zstd" and "LogAppendTime"
    timestamp_type, log_append_time_ms: with LOG_APPEND_TIME, readers see that time as the timestamp of all records
    delete_horizon_ms: the time from which compaction may remove the batch's tombstones
    transactional, producer_id, producer_epoch, base_sequence: fields of an idempotent or transactional producer

    Raises `InvalidInput` for a combination that the format cannot express.
    """

    def __init__(
        self,
        magic: int = 2,
        *,
        codec: Codec | str = Codec.NONE,
        level: int | None = None,
        timestamp_type: TimestampType | str = TimestampType.CREATE_TIME,
        log_append_time_ms: int = NO_TIMESTAMP,
        base_offset: int = 0,
        leader_epoch: int = NO_LEADER_EPOCH,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        transactional: bool = False,
        control: bool = False,
        delete_horizon_ms: int | None = None,
        max_size: int | None = None,
        max_count: int | None = None,
    ) -> None:
        if magic not in (0, 1, 2):
            raise InvalidInput(f"there is no magic {magic}")
        codec = codec_of(codec)
        timestamp_type = timestamp_type_of(timestamp_type)
        if magic > 0 and timestamp_type == TimestampType.NONE:
            raise InvalidInput(f"magic {magic} needs a timestamp type")
        check_range("base_offset", base_offset, 0, MAX_INT64)
        check_range("log_append_time_ms", log_append_time_ms, NO_TIMESTAMP, MAX_INT64)
        if delete_horizon_ms is not None:
            check_range("delete_horizon_ms", delete_horizon_ms, 0, MAX_INT64)
        check_fields(leader_epoch, producer_id, producer_epoch, base_sequence, transactional, control)
        if level is not None:
            compress(codec, b"", level=level, magic=magic)  # refuses a level that the codec does not have
        self.magic: Final = magic
        self.codec: Final = codec
        self._level = level
        self._timestamp_type = timestamp_type
        self._log_append_time_ms = log_append_time_ms
        self._base_offset = base_offset
        self._leader_epoch = leader_epoch
        self._producer_id = producer_id
        self._producer_epoch = producer_epoch
        self._base_sequence = base_sequence
        self._transactional = transactional
        self._control = control
        self._has_delete_horizon = delete_horizon_ms is not None
        self._max_size = MAX_SIZE if max_size is None else min(max_size, MAX_SIZE)
        self._max_count = MAX_INT32 if max_count is None else min(max_count, MAX_INT32)
        self._base_timestamp_ms = delete_horizon_ms  # if None, the first record's timestamp
        self._max_timestamp_ms = NO_TIMESTAMP
        self._last_offset: int | None = None
        self._count = 0
        self._records = bytearray()
        if magic < 2:
            self._check_old()

    def _check_old(self) -> None:
        if self.codec == Codec.ZSTD:
            raise InvalidInput(f"messages of magic {self.magic} cannot be compressed with zstd")
        for name, given in (
            ("a leader epoch", self._leader_epoch != NO_LEADER_EPOCH),
            ("a producer", self._producer_id != NO_PRODUCER_ID or self._base_sequence != NO_SEQUENCE),
            ("transactions", self._transactional),
            ("control records", self._control),
            ("a delete horizon", self._has_delete_horizon),
        ):
            if given:
                raise InvalidInput(f"messages of magic {self.magic} have no place for {name}")

    @property
    def count(self) -> int:
        """The number of records so far."""
        return self._count

    @property
    def next_offset(self) -> int:
        """The offset of the next record, unless the caller gives another."""
        return self._base_offset if self._last_offset is None else self._last_offset + 1

    @property
    def size(self) -> int:
        """The number of bytes that `build` returns; with a codec, an upper bound."""
        return self._size(len(self._records)) if self._count else 0

    def size_with(
        self,
        key: Buffer | None,
        value: Buffer | None,
        *,
        timestamp_ms: int,
        headers: Sequence[HeaderLike] = (),
        offset: int | None = None,
    ) -> int:
        """Return what `size` would be after `append` with these arguments; raises like `append`."""
        candidate = self._new_candidate(key, value, timestamp_ms, headers, offset)
        return self._size(len(self._records) + candidate.size)

    def has_room_for(
        self,
        key: Buffer | None,
        value: Buffer | None,
        *,
        timestamp_ms: int,
        headers: Sequence[HeaderLike] = (),
        offset: int | None = None,
    ) -> bool:
        """Return whether `append` would accept a record with these arguments; raises like `append`."""
        return self._has_room_for(self._new_candidate(key, value, timestamp_ms, headers, offset))

    def append(
        self,
        key: Buffer | None,
        value: Buffer | None,
        *,
        timestamp_ms: int,
        headers: Sequence[HeaderLike] = (),
        offset: int | None = None,
    ) -> int | None:
        """Add a record and return its offset, or return None if the batch is full.

        Raises `InvalidInput` if this batch cannot hold such a record, whether it is full or not.
        """
        return self._append(self._new_candidate(key, value, timestamp_ms, headers, offset))

    def append_record(self, record: Record) -> int | None:
        """Add a record that was read from a log, with its own offset if it has one; otherwise like `append`.

        In a control batch, the record may be of an unknown type: rewriting a log must not lose it.
        """
        offset = None if record.offset == NO_OFFSET else record.offset
        return self._append(self._candidate(record.key, record.value, record.timestamp_ms, record.headers, offset))

    def build(self, *, last_offset: int | None = None) -> bytes:
        """Return the bytes of the batch, which are empty if there are no records. More records may be added afterwards.

        last_offset: the last offset in the header, if compaction has removed the last records; magic 2 only

        Raises `InvalidInput` for an impossible `last_offset`.
        """
        if self._last_offset is None:
            return b""
        if last_offset is None:
            last_offset = self._last_offset
        elif self.magic < 2:
            raise InvalidInput(f"messages of magic {self.magic} have no place for a last offset")
        elif not self._last_offset <= last_offset <= min(self._base_offset + MAX_INT32, MAX_INT64):
            raise InvalidInput(f"last offset {last_offset} is not possible behind {self._last_offset}")
        if self.codec == Codec.NONE:
            body = bytes(self._records)
        else:
            body = compress(self.codec, self._records, level=self._level, magic=self.magic)
        if self.magic < 2 and self.codec == Codec.NONE:
            return body
        if self.magic < 2:
            return write_message(last_offset, self.magic, self._attributes(), self._wrapper_timestamp_ms(), None, body)
        return write_batch(self._header(last_offset), body)

    def _new_candidate(
        self,
        key: Buffer | None,
        value: Buffer | None,
        timestamp_ms: int,
        headers: Sequence[HeaderLike],
        offset: int | None,
    ) -> _Candidate:
        """Check a new record, not one from a log: like `_candidate`, but a control record must be of a known type."""
        candidate = self._candidate(key, value, timestamp_ms, headers, offset)
        if self._control:
            check_control_key(candidate.key)
        return candidate

    def _candidate(
        self,
        key: Buffer | None,
        value: Buffer | None,
        timestamp_ms: int,
        headers: Sequence[HeaderLike],
        offset: int | None,
    ) -> _Candidate:
        """Check a record and compute its size; raises `InvalidInput` if the batch cannot hold it."""
        if offset is None:
            offset = self.next_offset
        if self._last_offset is not None and offset <= self._last_offset:
            raise InvalidInput(f"offset {offset} does not go forward from {self._last_offset}")
        if not 0 <= offset - self._base_offset <= MAX_INT32 or offset > MAX_INT64:
            raise InvalidInput(f"offset {offset} is out of reach of a batch that begins at {self._base_offset}")
        check_range("timestamp_ms", timestamp_ms, NO_TIMESTAMP, MAX_INT64)
        key, value = bytes_of("a record's key", key), bytes_of("a record's value", value)
        if self.magic < 2:
            if headers:
                raise InvalidInput(f"messages of magic {self.magic} have no place for headers")
            if self._timestamp_type == TimestampType.LOG_APPEND_TIME:
                timestamp_ms = self._log_append_time_ms
            size = message_size(self.magic, key, value)
            written = b""
        else:
            written = write_headers(headers)
            base_ms = timestamp_ms if self._base_timestamp_ms is None else self._base_timestamp_ms
            delta_ms = wrap64(timestamp_ms - base_ms)
            size = record_size(delta_ms, offset - self._base_offset, key, value, len(headers), len(written))
        if size > MAX_SIZE - BATCH_HEADER.size:
            raise InvalidInput(f"a record of {size:,} bytes does not fit into a batch of at most {MAX_SIZE:,}")
        return _Candidate(offset, timestamp_ms, key, value, len(headers), written, size)

    def _has_room_for(self, candidate: _Candidate) -> bool:
        if self._count == 0:
            return True
        size = self._size(len(self._records) + candidate.size)
        return self._count < self._max_count and size <= self._max_size

    def _append(self, record: _Candidate) -> int | None:
        if not self._has_room_for(record):
            return None
        if self._base_timestamp_ms is None:
            self._base_timestamp_ms = record.timestamp_ms
        offset_delta = record.offset - self._base_offset
        if self.magic == 2:
            delta_ms = wrap64(record.timestamp_ms - self._base_timestamp_ms)
            write_record(
                self._records, delta_ms, offset_delta, record.key, record.value, record.header_count, record.headers
            )
        else:
            # The offsets inside a wrapper of magic 1 are relative, so that a broker need not rewrite them (KIP-31).
            offset = offset_delta if self.magic == 1 and self.codec != Codec.NONE else record.offset
            attributes = self._attributes() & ~Attributes.CODEC
            self._records += write_message(
                offset, self.magic, attributes, record.timestamp_ms, record.key, record.value
            )
        self._count += 1
        self._last_offset = record.offset
        self._max_timestamp_ms = max(self._max_timestamp_ms, record.timestamp_ms)
        return record.offset

    def _size(self, records_size: int) -> int:
        if self.codec != Codec.NONE:
            records_size = _compressed_size_at_most(self.codec, records_size)
        if self.magic == 2:
            return BATCH_HEADER.size + records_size
        return records_size if self.codec == Codec.NONE else message_size(self.magic, None, None) + records_size

    def _attributes(self) -> int:
        attributes = int(self.codec)
        if self._timestamp_type == TimestampType.LOG_APPEND_TIME and self.magic > 0:
            attributes |= Attributes.LOG_APPEND_TIME
        if self._transactional:
            attributes |= Attributes.TRANSACTIONAL
        if self._control:
            attributes |= Attributes.CONTROL
        if self._has_delete_horizon:
            attributes |= Attributes.DELETE_HORIZON
        return attributes

    def _wrapper_timestamp_ms(self) -> int:
        """Return the largest timestamp, or the append time; also used as the max timestamp of a batch of magic 2."""
        if self._timestamp_type == TimestampType.LOG_APPEND_TIME:
            return self._log_append_time_ms
        return self._max_timestamp_ms

    def _header(self, last_offset: int) -> BatchHeader:
        assert self._base_timestamp_ms is not None
        return BatchHeader(
            base_offset=self._base_offset,
            length=0,
            leader_epoch=self._leader_epoch,
            magic=self.magic,
            crc=0,
            attributes=self._attributes(),
            last_offset_delta=last_offset - self._base_offset,
            base_timestamp_ms=self._base_timestamp_ms,
            max_timestamp_ms=self._wrapper_timestamp_ms(),
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            base_sequence=self._base_sequence,
            record_count=self._count,
        )


def empty_batch(
    *,
    base_offset: int,
    last_offset: int,
    timestamp_type: TimestampType | str = TimestampType.CREATE_TIME,
    max_timestamp_ms: int = NO_TIMESTAMP,
    leader_epoch: int = NO_LEADER_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
) -> bytes:
    """Build a batch of magic 2 without records (61 bytes), as compaction leaves it to preserve offsets or a producer.

    Raises `InvalidInput` for a combination that the format cannot express.
    """
    if not 0 <= base_offset <= last_offset <= min(base_offset + MAX_INT32, MAX_INT64):
        raise InvalidInput(f"a batch cannot reach from offset {base_offset} to {last_offset}")
    timestamp_type = timestamp_type_of(timestamp_type)
    if timestamp_type == TimestampType.NONE:
        raise InvalidInput("magic 2 needs a timestamp type")
    check_range("max_timestamp_ms", max_timestamp_ms, MIN_INT64, MAX_INT64)
    check_fields(leader_epoch, producer_id, producer_epoch, base_sequence, transactional, control)
    attributes = Attributes.TRANSACTIONAL * transactional | Attributes.CONTROL * control
    if timestamp_type == TimestampType.LOG_APPEND_TIME:
        attributes |= Attributes.LOG_APPEND_TIME
    header = BatchHeader(
        base_offset=base_offset,
        length=0,
        leader_epoch=leader_epoch,
        magic=2,
        crc=0,
        attributes=attributes,
        last_offset_delta=last_offset - base_offset,
        base_timestamp_ms=NO_TIMESTAMP,
        max_timestamp_ms=max_timestamp_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=0,
    )
    return write_batch(header, b"")


def _compressed_size_at_most(codec: Codec, size: int) -> int:
    """Return an upper bound for `size` bytes compressed with `codec`. Incompressible data has some overhead."""
    if codec == Codec.SNAPPY:  # the library's own bound for each block of 32 KiB
        return size + size // 6 + 36 * (size // 32768 + 1) + 16
    return size + size // 256 + 128
