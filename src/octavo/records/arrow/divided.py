"""Write Arrow columns as batches of several logs, such as the partitions of a topic, in one call of the kernel."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa

from octavo.records.arrow.flat_columns import Int64s, check_names, columns_of
from octavo.records.arrow.groups import BatchFields, check_arguments, one_group
from octavo.records.arrow.writer import compressed_batches, encode_groups
from octavo.records.fields import check_range, codec_of
from octavo.records.kernels import encode, encode_input
from octavo.records.layout import (
    LENGTH_AT,
    MAX_SIZE,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    Buffer,
    Codec,
    TimestampType,
)

_OFFSET_BYTES: Final = np.arange(LENGTH_AT)


def from_arrow_divided(
    batch: pa.RecordBatch,
    ends: Int64s,
    *,
    codec: Codec | str = Codec.NONE,
    level: int | None = None,
    max_size: int,
) -> list[list[Buffer]]:
    """Write the records of `batch` as batches of magic 2 for several logs; returns the bytes of each log.

    The rows of the first log end before row `ends[0]`, those of the next one before `ends[1]`. Every log has some. The
    columns are `key`, `value`, `headers` and `timestamp`, as in `from_arrow`. Every batch has the base offset 0:
    the log assigns offsets. Raises `InvalidInput` for what the format cannot express.
    """
    fields = BatchFields(
        magic=2,
        codec=codec_of(codec),
        level=level,
        timestamp_type=TimestampType.CREATE_TIME,
        log_append_time_ms=NO_TIMESTAMP,
        leader_epoch=NO_LEADER_EPOCH,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
        base_sequence=NO_SEQUENCE,
        transactional=False,
        control=False,
        delete_horizon_ms=None,
    )
    check_arguments(fields)
    check_range("max_size", max_size, 1, MAX_SIZE)
    check_names(batch)
    assert (np.diff(ends, prepend=0) > 0).all(), "every log has rows"
    assert ends[-1] == batch.num_rows, "every row belongs to a log"
    groups = one_group(batch.num_rows, fields).repeat(len(ends), axis=0)
    groups[1:, encode_input.GROUP_FIRST_ROW] = ends[:-1]
    groups[:, encode_input.GROUP_LAST_ROW] = ends
    out, batches = encode_groups(columns_of(batch, 0), groups, 2, max_size, MAX_SIZE)
    out[batches[:, encode.BATCH_START, None] + _OFFSET_BYTES] = 0  # which no checksum covers
    of_groups = np.searchsorted(batches[:, encode.BATCH_GROUP], np.arange(len(ends) + 1))
    if fields.codec:
        pieces = compressed_batches(out.data, batches, groups, fields)
        return [pieces[first:end] for first, end in pairwise(of_groups.tolist())]
    limits = [*batches[of_groups[:-1], encode.BATCH_START].tolist(), int(batches[-1, encode.BATCH_END])]
    return [[out.data[start:end]] for start, end in pairwise(limits)]
