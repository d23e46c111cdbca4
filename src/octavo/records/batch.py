"""The interface that batches of every magic share.

A `Batch` is a header and a view of the batch's bytes. Nothing is copied, decompressed or decoded before it is needed,
and the records are not checked before they are read. `v2` and `legacy` hold the two kinds of batches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from octavo.errors import ChecksumMismatch, Unsupported
from octavo.records import checksum
from octavo.records.kernels.machine import wrap64
from octavo.records.layout import (
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    Attributes,
    BatchHeader,
    Codec,
    MessageV1,
    TimestampType,
)
from octavo.records.record import Record

_CODEC = int(Attributes.CODEC)


class Batch(ABC):
    """One entry of a log: a batch of magic 2, or an old message (magic 0 or 1), which may wrap compressed messages.

    `read_batches` creates batches. Iterating yields the records lazily. It raises a `FormatError` at the first record
    that breaks a rule, and `Unsupported` if the batch names an unknown codec.
    """

    __slots__ = ("_max_decompressed", "data", "header", "position")

    data: memoryview  # the whole batch
    position: int  # where the batch begins in the buffer that was read
    header: BatchHeader | MessageV1
    _max_decompressed: int

    @abstractmethod
    def __iter__(self) -> Iterator[Record]: ...

    def __repr__(self) -> str:
        return (
            f"<Batch at {self.position}: magic {self.magic}, {self.size} bytes, last offset {self.last_offset}, "
            f"count {self.count}, attributes {self.attributes:#04x}>"
        )

    # Properties of every magic.

    @property
    def size(self) -> int:
        """The number of bytes of the whole batch."""
        return len(self.data)

    @property
    def magic(self) -> int:
        """The version of the format: 0, 1 or 2."""
        return self.header.magic

    @property
    def crc(self) -> int:
        """The stored checksum; see `verify`."""
        return self.header.crc

    @property
    def attributes(self) -> int:
        """The low byte of the attributes, which is all that Kafka reads; see `Attributes`."""
        return self.header.attributes & 0xFF

    @property
    @abstractmethod
    def base_offset(self) -> int:
        """The first offset. For an old compressed wrapper, this decompresses the messages, which may raise."""

    @property
    @abstractmethod
    def last_offset(self) -> int:
        """The last offset; compaction may have removed the record that had it."""

    @property
    def next_offset(self) -> int:
        """The offset after the last offset of the batch."""
        return wrap64(self.last_offset + 1)

    @property
    @abstractmethod
    def base_timestamp_ms(self) -> int:
        """The base of the timestamp deltas in magic 2; the message's timestamp in magic 1; -1 in magic 0."""

    @property
    @abstractmethod
    def max_timestamp_ms(self) -> int:
        """The largest timestamp of the records, or their append time; -1 if there is none."""

    @property
    def timestamp_type(self) -> TimestampType:
        """The meaning of the timestamps of all records in the batch."""
        if self.magic == 0:
            return TimestampType.NONE
        if self.attributes & Attributes.LOG_APPEND_TIME:
            return TimestampType.LOG_APPEND_TIME
        return TimestampType.CREATE_TIME

    @property
    def codec(self) -> Codec:
        """The compression of the records; raises `Unsupported` for a number that is not assigned."""
        number = self.attributes & _CODEC
        try:
            return Codec(number)
        except ValueError:
            raise Unsupported(self.position, f"there is no codec {number}") from None

    @property
    def is_compressed(self) -> bool:
        """Whether the attributes name a codec, even one that does not exist."""
        return self.attributes & _CODEC != 0

    # Properties of magic 2 only. An old message returns the values that mean "none".

    @property
    def count(self) -> int | None:
        """The number of records that the header declares; None in old compressed wrappers, which do not declare it."""
        return None if self.is_compressed else 1

    @property
    def leader_epoch(self) -> int:
        """The epoch of the leader that appended the batch; -1 if it has none."""
        return NO_LEADER_EPOCH

    @property
    def producer_id(self) -> int:
        """The id of the idempotent or transactional producer; -1 if there is none."""
        return NO_PRODUCER_ID

    @property
    def producer_epoch(self) -> int:
        """The epoch of the producer; -1 if there is none."""
        return NO_PRODUCER_EPOCH

    @property
    def base_sequence(self) -> int:
        """The sequence number of the first record; -1 if it has none."""
        return NO_SEQUENCE

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last record; -1 if it has none."""
        return NO_SEQUENCE

    @property
    def is_transactional(self) -> bool:
        """Whether the batch is part of a transaction."""
        return False

    @property
    def is_control(self) -> bool:
        """Whether this is a control batch, whose records are for Kafka itself; see `read_control`."""
        return False

    @property
    def delete_horizon_ms(self) -> int | None:
        """The time from which compaction may remove the tombstones in the batch; None if it is not set."""
        return None

    # The checksum.

    def verify(self) -> None:
        """Verify the stored checksum; raises `ChecksumMismatch` if it does not match the bytes that it covers."""
        computed = checksum.crc_of(self.data, self.header.magic)
        if computed != self.header.crc:
            raise ChecksumMismatch(self.position, self.header.crc, computed)

    @property
    def is_valid(self) -> bool:
        """Whether `verify` would pass."""
        try:
            self.verify()
        except ChecksumMismatch:
            return False
        return True
