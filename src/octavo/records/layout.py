"""The fixed-size structures of Kafka's message formats, each declared once.

A structure is a `NamedTuple` whose annotations say how each field is stored; `Layout` derives its size,
the position of every field, a reader and a writer. All integers are big-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum, IntFlag
from typing import Annotated, Any, Final, Generic, NamedTuple, TypeVar, get_type_hints

from octavo.errors import Truncated

Int8 = Annotated[int, "b"]
Int16 = Annotated[int, "h"]
Int32 = Annotated[int, "i"]
UInt32 = Annotated[int, "I"]
Int64 = Annotated[int, "q"]

MAX_INT16: Final = 2**15 - 1
MAX_INT32: Final = 2**31 - 1  # also the maximum record count and offset delta
MAX_INT64: Final = 2**63 - 1
MIN_INT64: Final = -MAX_INT64 - 1

Buffer = bytes | bytearray | memoryview  # what is taken for bytes

T = TypeVar("T", bound=tuple[Any, ...])


class Place(NamedTuple):
    """The place of one field, counted from the start of its structure."""

    name: str
    position: int
    size: int


class Layout(Generic[T]):
    """The byte layout of the fields of one `NamedTuple`."""

    def __init__(self, fields: type[T]) -> None:
        hints = get_type_hints(fields, include_extras=True)
        self._fields = fields
        self._positions: dict[str, int] = {}
        self._codes: dict[str, str] = {}
        code = ">"
        for name, hint in hints.items():
            self._positions[name] = struct.calcsize(code)
            self._codes[name] = hint.__metadata__[0]
            code += self._codes[name]
        self._struct = struct.Struct(code)
        self.size: Final = self._struct.size

    def at(self, name: str) -> int:
        """Return the byte position of the field `name` from the start of the structure."""
        return self._positions[name]

    def places(self) -> Iterator[Place]:
        """Yield the place of each field, in order; together the fields fill the structure."""
        ends = [*self._positions.values(), self.size][1:]
        for (name, position), end in zip(self._positions.items(), ends, strict=True):
            yield Place(name, position, end - position)

    def read(self, buffer: Buffer, position: int = 0) -> T:
        """Read the structure at `position`; raises `Truncated` if the buffer ends before it does."""
        try:
            return tuple.__new__(self._fields, self._struct.unpack_from(buffer, position))
        except struct.error:
            raise Truncated(
                position, f"{self._fields.__name__} takes {self.size} bytes, {len(buffer) - position} are left"
            ) from None

    def write(self, fields: T) -> bytes:
        """Return the bytes of the structure."""
        return self._struct.pack(*fields)

    def only(self, *names: str) -> struct.Struct:
        """Return a `struct.Struct` that reads only the fields `names`, which are given in their order."""
        code = ">"
        for name in names:
            code += f"{self._positions[name] - struct.calcsize(code)}x{self._codes[name]}"
        return struct.Struct(code)


class BatchHeader(NamedTuple):
    """The header of a batch of magic 2. `crc` covers only what follows it."""

    base_offset: Int64  # first offset; outside the checksum because the broker assigns it in place
    length: Int32  # bytes after this field
    leader_epoch: Int32  # epoch of the leader that appended the batch; also assigned in place
    magic: Int8  # at the same place in every format, so that a reader can tell them apart
    crc: UInt32  # CRC-32C of everything after it
    attributes: Int16  # see `Attributes`; Java reads and writes the low byte only
    last_offset_delta: Int32  # unchanged by compaction; gives the last offset and the last sequence
    base_timestamp_ms: Int64  # timestamp of the first record, or the delete horizon if that flag is set
    max_timestamp_ms: Int64  # largest timestamp, or the append time if that flag is set
    producer_id: Int64
    producer_epoch: Int16
    base_sequence: Int32
    record_count: Int32  # compaction makes it smaller than last_offset_delta + 1, down to 0


class MessageV0(NamedTuple):
    """The fields before the key and value of a message of magic 0; `crc` covers everything after it."""

    offset: Int64
    length: Int32  # bytes after this field
    crc: UInt32  # CRC-32
    magic: Int8
    attributes: Int8


class MessageV1(NamedTuple):
    """The fields before the key and value of a message of magic 1; `crc` covers everything after it."""

    offset: Int64
    length: Int32
    crc: UInt32
    magic: Int8
    attributes: Int8
    timestamp_ms: Int64


BATCH_HEADER: Final = Layout(BatchHeader)
assert BATCH_HEADER.size == 61

MESSAGE_V0: Final = Layout(MessageV0)
assert MESSAGE_V0.size == 18

MESSAGE_V1: Final = Layout(MessageV1)
assert MESSAGE_V1.size == 26

MAGIC_AT: Final = BATCH_HEADER.at("magic")
assert MAGIC_AT == MESSAGE_V0.at("magic") == MESSAGE_V1.at("magic") == 16

LENGTH_AT: Final = BATCH_HEADER.at("length")
LOG_OVERHEAD: Final = BATCH_HEADER.at("leader_epoch")  # the offset and the length field, which `length` does not count
assert LOG_OVERHEAD == 12

# The other fields of a batch of magic 2.
HEADER_SIZE: Final = BATCH_HEADER.size
LEADER_EPOCH_AT: Final = BATCH_HEADER.at("leader_epoch")
CRC_AT: Final = BATCH_HEADER.at("crc")
ATTRIBUTES_AT: Final = BATCH_HEADER.at("attributes")  # the checksum covers everything from here on
FLAGS_AT: Final = ATTRIBUTES_AT + 1  # low byte of the attributes, which holds all flags
LAST_OFFSET_DELTA_AT: Final = BATCH_HEADER.at("last_offset_delta")
BASE_TIMESTAMP_AT: Final = BATCH_HEADER.at("base_timestamp_ms")
MAX_TIMESTAMP_AT: Final = BATCH_HEADER.at("max_timestamp_ms")
PRODUCER_ID_AT: Final = BATCH_HEADER.at("producer_id")  # the first byte is below 128 if there is a producer id
PRODUCER_EPOCH_AT: Final = BATCH_HEADER.at("producer_epoch")
BASE_SEQUENCE_AT: Final = BATCH_HEADER.at("base_sequence")
COUNT_AT: Final = BATCH_HEADER.at("record_count")

# No entry of a log is shorter than a message of magic 0 with a null key and a null value.
MIN_LENGTH: Final = MESSAGE_V0.size - LOG_OVERHEAD + 4 + 4
assert MIN_LENGTH == 14
MIN_SIZE: Final = LOG_OVERHEAD + MIN_LENGTH  # smallest size of a whole batch
assert MESSAGE_V1.size <= MIN_SIZE  # so the fields before a key can be read unchecked

MAX_SIZE: Final = MAX_INT32  # Java holds a batch in one array, and a segment's size in an int

MAX_SEQUENCE: Final = MAX_INT32  # 0 follows it

NO_OFFSET: Final = -1
NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_LEADER_EPOCH: Final = -1


class Attributes(IntFlag):
    """The flags in a batch's attributes. Magic 0 has only the codec, magic 1 also has the append-time flag."""

    CODEC = 0x07  # a number, not flags: see `Codec`
    LOG_APPEND_TIME = 0x08
    TRANSACTIONAL = 0x10
    CONTROL = 0x20
    DELETE_HORIZON = 0x40  # base_timestamp_ms is the time from which tombstones may be removed (KIP-534)


class Codec(IntEnum):
    """The compression of a batch's records. The numbers are those on disk; 5 to 7 are not assigned."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


CODEC_WORDS: Final = {codec.name.lower(): codec for codec in Codec}  # in Kafka's configurations


class TimestampType(IntEnum):
    """The meaning of a record's timestamp. The numbers are those of Kafka and of Spark's `timestampType` column."""

    NONE = -1  # magic 0 has no timestamps
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


TIMESTAMP_TYPE_WORDS: Final = {
    "NoTimestampType": TimestampType.NONE,
    "CreateTime": TimestampType.CREATE_TIME,
    "LogAppendTime": TimestampType.LOG_APPEND_TIME,
}
