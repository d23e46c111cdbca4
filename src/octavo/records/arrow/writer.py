"""Arrow columns as batches.

One call of the kernel writes all batches uncompressed; what is left for each of them is its checksum, and where it is
to be compressed, its compression.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from octavo.errors import InvalidInput
from octavo.records.arrow.checksums import checksum_tables
from octavo.records.arrow.columns import Int32s, Int64s, column, encode_rows, integers
from octavo.records.checksum import crc_of
from octavo.records.compression import compress
from octavo.records.kernels import Kernels, encode, kernels
from octavo.records.layout import (
    BATCH_HEADER,
    MAX_SEQUENCE,
    MAX_SIZE,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    Attributes,
    Codec,
    TimestampType,
)
from octavo.records.legacy import write_message
from octavo.records.v2 import write_batch

Bytes = npt.NDArray[np.uint8]

MAX_BATCH_SIZE: Final = 1 << 20  # just below Kafka's default for max.message.bytes

_CRC_AT: Final = BATCH_HEADER.at("crc")
_COVERED: Final = BATCH_HEADER.at("attributes")


class _Header(NamedTuple):
    """What a batch says once for all its records, where no column says it."""

    magic: int
    codec: Codec
    timestamp_type: TimestampType
    log_append_time_ms: int
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    transactional: bool
    control: bool
    delete_horizon_ms: int | None


def from_arrow(
    batch: pa.RecordBatch,
    *,
    magic: int = 2,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    base_offset: int = 0,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    log_append_time_ms: int = NO_TIMESTAMP,
    leader_epoch: int = NO_LEADER_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    delete_horizon_ms: int | None = None,
    max_size: int = MAX_BATCH_SIZE,
    max_count: int = MAX_SIZE,
) -> bytes:
    """Write the records of `batch` as batches of `magic`, each at most `max_size` bytes before compression.

    Columns as `to_arrow` gives them, all of them optional. Without `offset`, offsets count from `base_offset`. The
    columns that describe a batch (`leaderEpoch`, `producerId`, `producerEpoch`, `sequence`, `isTransactional`,
    `isControl`, `compression`, `timestampType`) count before the arguments of their names, and a new batch begins
    where one of them, or `position`, changes. `magic` is an argument only: a column of that name is what the records
    had.

    Raises `InvalidInput` for what the format cannot express.
    """
    header = _Header(
        magic,
        codec,
        timestamp_type,
        log_append_time_ms,
        leader_epoch,
        producer_id,
        producer_epoch,
        base_sequence,
        transactional,
        control,
        delete_horizon_ms,
    )
    if magic not in (0, 1, 2):
        raise InvalidInput(f"there is no magic {magic}")
    if max_size > MAX_SIZE or max_size < 1 or max_count < 1:
        raise InvalidInput(f"max_size and max_count must lie between 1 and {MAX_SIZE}")
    if not batch.num_rows:
        return b""
    rows = encode_rows(batch, base_offset)
    groups = _groups(batch, rows, header)
    _check(header, rows, groups)
    kernel_set = kernels(batch.nbytes)
    out, batches = _encode(kernel_set, rows, groups, magic, max_size, max_count)
    codecs = groups[batches[:, encode.GROUP], encode.ATTRIBUTES] & Attributes.CODEC
    if codecs.any():
        return _compressed(out, batches, groups, header, level)
    if magic == 2 and not kernel_set.checks_fast:
        _fill_checksums(out, batches)
    return out[: batches[-1, encode.END]].tobytes()


def _encode(
    kernel_set: Kernels, rows: encode.Rows, groups: Int64s, magic: int, max_size: int, max_count: int
) -> tuple[Bytes, Int64s]:
    """Run the kernel: the batches, uncompressed, and where each lies."""
    count = len(rows.offsets)
    first, last = int(rows.header_ends[0]), int(rows.header_ends[-1])
    # The widest a record's own fields get: five varints of 5 bytes, one of 10, and the attributes.
    size = count * (36 + BATCH_HEADER.size) + (last - first) * 10
    size += _extent(rows.key_starts, rows.key_lengths) + _extent(rows.value_starts, rows.value_lengths)
    size += _extent(rows.header_key_starts[first:last], rows.header_key_lengths[first:last])
    size += _extent(rows.header_value_starts[first:last], rows.header_value_lengths[first:last])
    # From Arrow's pool, which hands out memory again that is warm. What is not written to is not taken.
    out = np.frombuffer(pa.allocate_buffer(size), np.uint8)
    batches = np.empty((count, encode.BATCH_COLUMNS), np.int64)
    checksums = int(kernel_set.checks_fast)
    made = kernel_set.encode(checksum_tables(), rows, groups, magic, checksums, max_size, max_count, out, batches)
    return out, batches[:made]


def _extent(starts: Int32s, lengths: Int32s) -> int:
    """How many bytes a column has at the most, without looking at every row."""
    return int(starts[-1]) + max(0, int(lengths[-1])) - int(starts[0]) if len(starts) else 0


class _Column(NamedTuple):
    """What a batch says once: a value for each row, or one for all where no column gives it."""

    rows: Int64s | None
    default: int

    def at(self, rows: Int64s) -> Int64s:
        return np.full(len(rows), self.default, np.int64) if self.rows is None else self.rows[rows]


def _groups(batch: pa.RecordBatch, rows: encode.Rows, header: _Header) -> Int64s:
    """Runs of rows that share everything a batch says once."""
    codec = _Column(_codecs(batch), int(header.codec))
    kind = _Column(integers(batch, "timestampType"), int(header.timestamp_type))
    leader_epoch = _Column(integers(batch, "leaderEpoch"), header.leader_epoch)
    producer_id = _Column(integers(batch, "producerId"), header.producer_id)
    producer_epoch = _Column(integers(batch, "producerEpoch"), header.producer_epoch)
    transactional = _Column(integers(batch, "isTransactional"), int(header.transactional))
    control = _Column(integers(batch, "isControl"), int(header.control))
    sequence = _Column(integers(batch, "sequence"), header.base_sequence)
    position = _Column(integers(batch, "position"), 0)
    append_time = _Column(None, header.log_append_time_ms)
    if kind.rows is not None:  # the records were read with their append time
        is_append_time = kind.rows == TimestampType.LOG_APPEND_TIME
        append_time = _Column(np.where(is_append_time, rows.timestamps, header.log_append_time_ms), 0)
    shared = (codec, kind, leader_epoch, producer_id, producer_epoch, transactional, control, position, append_time)
    first = _first_rows(shared, sequence, rows.offsets)
    groups = np.empty((len(first), encode.GROUP_COLUMNS), np.int64)
    groups[:, encode.FIRST_ROW] = first
    groups[:, encode.LAST_ROW] = np.append(first[1:], batch.num_rows)
    groups[:, encode.ATTRIBUTES] = (
        codec.at(first)
        | np.where(kind.at(first) == TimestampType.LOG_APPEND_TIME, int(Attributes.LOG_APPEND_TIME), 0)
        | np.where(transactional.at(first), int(Attributes.TRANSACTIONAL), 0)
        | np.where(control.at(first), int(Attributes.CONTROL), 0)
        | (0 if header.delete_horizon_ms is None else int(Attributes.DELETE_HORIZON))
    )
    groups[:, encode.LEADER_EPOCH] = leader_epoch.at(first)
    groups[:, encode.PRODUCER_ID] = producer_id.at(first)
    groups[:, encode.PRODUCER_EPOCH] = producer_epoch.at(first)
    groups[:, encode.BASE_SEQUENCE] = sequence.at(first)
    groups[:, encode.APPEND_TIME] = append_time.at(first)
    groups[:, encode.DELETE_HORIZON] = 0 if header.delete_horizon_ms is None else header.delete_horizon_ms
    return groups


def _first_rows(shared: tuple[_Column, ...], sequence: _Column, offsets: Int64s) -> Int64s:
    """The rows with which a new group begins."""
    begins = None
    for column_ in shared:
        if column_.rows is not None:
            changes = column_.rows[1:] != column_.rows[:-1]
            begins = changes if begins is None else begins | changes
    if sequence.rows is not None:
        before, after = sequence.rows[:-1], sequence.rows[1:]
        expected = (before + np.diff(offsets)) & MAX_SEQUENCE
        changes = np.where(before < 0, after >= 0, after != expected)
        begins = changes if begins is None else begins | changes
    later = np.empty(0, np.int64) if begins is None else np.flatnonzero(begins) + 1
    return np.concatenate((np.zeros(1, np.int64), later))


def _codecs(batch: pa.RecordBatch) -> Int64s | None:
    names = column(batch, "compression")
    if names is None:
        return None
    encoded = names.dictionary_encode()
    try:
        numbers = [int(Codec[name.upper()]) for name in encoded.dictionary.to_pylist()]
    except KeyError as error:
        raise InvalidInput(f"there is no codec {error.args[0].lower()!r}") from None
    if names.null_count:
        raise InvalidInput("column 'compression' holds nulls")
    codecs: Int64s = np.array(numbers, np.int64)[encoded.indices.to_numpy()]
    return codecs


def _check(header: _Header, rows: encode.Rows, groups: Int64s) -> None:
    """Refuse what Kafka's builder refuses."""
    attributes = groups[:, encode.ATTRIBUTES]
    producers = groups[:, encode.PRODUCER_ID]
    control = (attributes & Attributes.CONTROL) != 0
    transactional = (attributes & Attributes.TRANSACTIONAL) != 0
    if header.magic < 2:
        beyond = int(np.bitwise_or.reduce(attributes)) & ~(Attributes.CODEC | Attributes.LOG_APPEND_TIME)
        if beyond or (producers != NO_PRODUCER_ID).any():
            raise InvalidInput(
                f"magic {header.magic} has no producers, transactions, control records or delete horizon"
            )
        if (attributes & Attributes.CODEC == Codec.ZSTD).any():
            raise InvalidInput(f"magic {header.magic} has no zstd")
        if rows.header_ends[-1] > rows.header_ends[0]:
            raise InvalidInput(f"magic {header.magic} has no headers")
        if header.magic == 0 and (attributes & Attributes.LOG_APPEND_TIME).any():
            raise InvalidInput("magic 0 has no timestamps")
    if (transactional & (producers == NO_PRODUCER_ID)).any():
        raise InvalidInput("a transactional batch needs a producer id")
    with_producer = producers != NO_PRODUCER_ID
    if (with_producer & (groups[:, encode.PRODUCER_EPOCH] == NO_PRODUCER_EPOCH)).any():
        raise InvalidInput("a batch with a producer id needs a producer epoch")
    if (with_producer & ~control & (groups[:, encode.BASE_SEQUENCE] < 0)).any():
        raise InvalidInput("a batch with a producer id needs a sequence")


def _fill_checksums(out: Bytes, batches: Int64s) -> None:
    """Compute and store the checksum of every batch of magic 2."""
    view = out.data
    for start, end in batches[:, [encode.START, encode.END]].tolist():
        view[start + _CRC_AT : start + _COVERED] = crc_of(view[start:end], 2).to_bytes(4, "big")


def _compressed(out: Bytes, batches: Int64s, groups: Int64s, header: _Header, level: int | None) -> bytes:
    """Compress the records of every batch that has a codec, and join them all."""
    view = out.data
    pieces: list[bytes | memoryview] = []
    for start, end, group, last_offset, max_timestamp in batches.tolist():
        attributes = int(groups[group, encode.ATTRIBUTES])
        codec = Codec(attributes & Attributes.CODEC)
        if header.magic == 2:
            records = view[start + BATCH_HEADER.size : end]
            packed = compress(codec, records, level=level) if codec else records
            pieces.append(write_batch(BATCH_HEADER.read(view, start), packed))
        elif codec:
            packed = compress(codec, view[start:end], level=level, magic=header.magic)
            pieces.append(write_message(last_offset, header.magic, attributes, max_timestamp, None, packed))
        else:
            pieces.append(view[start:end])
    return b"".join(pieces)
