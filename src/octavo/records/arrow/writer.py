"""Write Arrow columns as batches.

One kernel call writes all batches uncompressed. After that, only the batches that have a codec need further work.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from octavo.errors import InvalidInput
from octavo.records.arrow.flat_columns import FlatColumns, Int64s, check_names, columns_of
from octavo.records.arrow.groups import BatchFields, check_arguments, groups_of
from octavo.records.arrow.output_memory import take_memory
from octavo.records.checksum import crc_of
from octavo.records.compression import compress
from octavo.records.fields import check_range, codec_of, timestamp_type_of
from octavo.records.kernels import encode, encode_input, kernels
from octavo.records.kernels.batch_checksums import checksum_tables
from octavo.records.kernels.machine import SLACK
from octavo.records.layout import (
    ATTRIBUTES_AT,
    BATCH_HEADER,
    CRC_AT,
    MAX_INT64,
    MAX_SIZE,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    Attributes,
    Buffer,
    Codec,
    TimestampType,
)
from octavo.records.legacy import write_message
from octavo.records.v2 import write_batch

Bytes = npt.NDArray[np.uint8]

DEFAULT_MAX_SIZE: Final = 1 << 20  # just below Kafka's default for max.message.bytes
_WORTH_A_VIEW: Final = 1 << 18  # less than so many bytes are copied, since they would keep more memory than they need


def from_arrow(
    batch: pa.RecordBatch,
    *,
    magic: int = 2,
    codec: Codec | str = Codec.NONE,
    level: int | None = None,
    base_offset: int = 0,
    timestamp_type: TimestampType | str = TimestampType.CREATE_TIME,
    log_append_time_ms: int = NO_TIMESTAMP,
    leader_epoch: int = NO_LEADER_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    delete_horizon_ms: int | None = None,
    max_size: int = DEFAULT_MAX_SIZE,
    max_count: int = MAX_SIZE,
) -> memoryview:
    """Write the records of `batch` as batches of `magic`, each at most `max_size` bytes before compression.

    The columns are those that `to_arrow` returns; all of them are optional. Without `offset`, offsets count from
    `base_offset`. The columns that describe a batch (`leaderEpoch`, `producerId`, `producerEpoch`, `sequence`,
    `isTransactional`, `isControl`, `compression`, `timestampType`) override the corresponding arguments. A new batch
    begins where one of them, or `position`, changes. A column `magic` is ignored: it says which magic the records had,
    and the argument says which they get. A record larger than `max_size` gets a batch of its own.

    The result is a read-only memoryview that keeps its memory alive; `bytes(result)` is a copy.

    Raises `InvalidInput` for what the format cannot express.
    """
    fields = BatchFields(
        magic=magic,
        codec=codec_of(codec),
        level=level,
        timestamp_type=timestamp_type_of(timestamp_type),
        log_append_time_ms=log_append_time_ms,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=transactional,
        control=control,
        delete_horizon_ms=delete_horizon_ms,
    )
    check_arguments(fields)
    check_range("max_size", max_size, 1, MAX_SIZE)
    check_range("max_count", max_count, 1, MAX_SIZE)
    if not isinstance(batch, pa.RecordBatch):
        raise InvalidInput(f"a pyarrow.RecordBatch is wanted, not {type(batch).__name__}")
    check_range("base_offset", base_offset, 0, MAX_INT64 - batch.num_rows)
    if not batch.num_rows:
        return memoryview(b"")
    check_names(batch)
    columns = columns_of(batch, base_offset)
    groups = groups_of(batch, columns, fields)
    out, batches = encode_groups(columns, groups, magic, max_size, max_count)
    if (groups[:, encode_input.GROUP_ATTRIBUTES] & Attributes.CODEC).any():
        return memoryview(b"".join(compressed_batches(out.data, batches, groups, fields)))
    size = int(batches[-1, encode.BATCH_END])
    if size < _WORTH_A_VIEW:
        return memoryview(out[:size].tobytes())
    view: memoryview = out.data
    return view[:size].toreadonly()


def encode_groups(
    columns: FlatColumns, groups: Int64s, magic: int, max_size: int, max_count: int
) -> tuple[pa.Buffer, Int64s]:
    """Encode all rows with the kernel; returns memory with the uncompressed batches, and a table of their positions."""
    rows = columns.rows
    count = len(rows.offsets)
    # The maximum size of a record's own fields: five varints of 5 bytes, one of 10, and the attributes.
    size = columns.size + count * 36 + columns.header_count * 10
    # A batch ends with its group, at `max_count`, or where the next record does not fit: then its records and that one
    # are together larger than `max_size` without the header. It also ends where the next offset is out of range, which
    # is so rare that it is worth a second attempt.
    full = 2 * size // max(1, max_size - BATCH_HEADER.size)
    most = min(count, len(groups) + count // max_count + full + 2)
    kernel_set = kernels(size, at_once=True)
    for room in (most, count):
        out = take_memory(size + room * BATCH_HEADER.size + SLACK)
        batches = np.empty((room, encode.BATCH_COLUMNS), np.int64)
        made = kernel_set.encode(
            checksum_tables(),
            rows,
            int(columns.micros),
            groups,
            magic,
            int(kernel_set.checks_fast),
            max_size,
            max_count,
            out,
            batches,
        )
        if made != encode_input.NO_ROOM:
            break
    assert made != encode_input.NO_ROOM, "the room for batches was computed too small"
    if made < 0:
        raise _refused(columns, -1 - made)
    if magic == 2 and not kernel_set.checks_fast:
        _fill_checksums(out.data, batches[:made])
    return out, batches[:made]


def _refused(columns: FlatColumns, row: int) -> InvalidInput:
    """Return the error that says why the kernel refused `row`."""
    offset, timestamp_ms = int(columns.rows.offsets[row]), int(columns.timestamps_ms()[row])
    if offset < 0:
        return InvalidInput(f"the offset {offset} is negative")
    if timestamp_ms < NO_TIMESTAMP:
        return InvalidInput(f"the timestamp {timestamp_ms} ms is negative, which Kafka refuses (-1 means none)")
    if row and offset <= int(columns.rows.offsets[row - 1]):
        return InvalidInput(f"offsets must grow from row to row of a batch; {offset} does not")
    return InvalidInput(f"the record of row {row} does not fit into a batch of at most {MAX_SIZE:,} bytes")


def _fill_checksums(view: memoryview, batches: Int64s) -> None:
    """Compute and store the checksum of every batch of magic 2."""
    for start, end in batches[:, [encode.BATCH_START, encode.BATCH_END]].tolist():
        view[start + CRC_AT : start + ATTRIBUTES_AT] = crc_of(view[start:end], 2).to_bytes(4, "big")


def compressed_batches(view: memoryview, batches: Int64s, groups: Int64s, fields: BatchFields) -> list[Buffer]:
    """Compress the records of every batch that has a codec; returns each batch by itself."""
    pieces: list[Buffer] = []
    for start, end, group, last_offset, max_timestamp in batches.tolist():
        attributes = int(groups[group, encode_input.GROUP_ATTRIBUTES])
        codec = attributes & Attributes.CODEC
        if not codec:
            pieces.append(view[start:end])
        elif fields.magic == 2:
            packed = compress(codec, view[start + BATCH_HEADER.size : end], level=fields.level)
            pieces.append(write_batch(BATCH_HEADER.read(view, start), packed))
        else:
            packed = compress(codec, view[start:end], level=fields.level, magic=fields.magic)
            pieces.append(write_message(last_offset, fields.magic, attributes, max_timestamp, None, packed))
    return pieces
