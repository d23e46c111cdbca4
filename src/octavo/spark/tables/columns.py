"""The columns of a table that logs are exported to.

    key, value                              as they are in the log, unless `raw` is false
    topic, partition, offset, timestamp, timestampType, headers
    leaderEpoch, producerId, ...            with `batch_info`: what the source has with includeBatchInfo
    columns of the value                    with a decoder of values, under the names of its fields
    parse_error                             with a decoder: why a value does not fit; its columns are null then
    day                                     of the timestamp, in UTC; null if there is no timestamp that a date can hold

All are nullable, as Spark's connector has them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from octavo.errors import InvalidInput
from octavo.log.names import TopicPartition
from octavo.records.arrow.schema import TIMESTAMP

if TYPE_CHECKING:
    from octavo.values import ValueDecoder

DAY: Final = pa.field("day", pa.date32())
PARSE_ERROR: Final = pa.field("parse_error", pa.string())
RAW: Final = ("key", "value")

_US_PER_DAY: Final = 86_400_000_000
_LAST_DAY: Final = 2_932_896  # 9999-12-31, the last one that Python, Spark and SQL can write
_NO_DAY: Final = -1  # no record has this day: negative timestamps are none in Kafka

_HEADERS: Final = pa.list_(
    pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
)
_RECORD: Final = [
    pa.field("key", pa.binary()),
    pa.field("value", pa.binary()),
    pa.field("topic", pa.string()),
    pa.field("partition", pa.int32()),
    pa.field("offset", pa.int64()),
    pa.field("timestamp", TIMESTAMP),
    pa.field("timestampType", pa.int32()),
    pa.field("headers", _HEADERS),
]
_BATCH: Final = [
    pa.field("leaderEpoch", pa.int32()),
    pa.field("producerId", pa.int64()),
    pa.field("producerEpoch", pa.int16()),
    pa.field("sequence", pa.int32()),
    pa.field("isTransactional", pa.bool_()),
    pa.field("isControl", pa.bool_()),
    pa.field("compression", pa.string()),
    pa.field("magic", pa.int8()),
    pa.field("file", pa.string()),
    pa.field("position", pa.int64()),
]


@dataclass(frozen=True)
class TableColumns:
    """The columns of a table, and how they come from those of the source. Spark sends this to the workers."""

    raw: bool = True
    batch_info: bool = False
    decoder: ValueDecoder | None = None
    prefix: str = ""  # put before the names of the value's fields

    def __post_init__(self) -> None:
        """Check the names. Raises `InvalidInput` if two columns would have the same."""
        ours = {field.name.lower() for field in (*_RECORD, *_BATCH, PARSE_ERROR, DAY)}
        seen: dict[str, str] = {}
        for field in self._typed:
            if field.name.lower() in ours:
                raise InvalidInput(
                    f"the value has a field {field.name!r}, and the table has a column of this name: give a prefix "
                    "for the columns of the value"
                )
            other = seen.get(field.name.lower())
            if other is not None:
                raise InvalidInput(
                    f"the value has fields {other!r} and {field.name!r}, which tables do not tell apart: give a schema "
                    "with only one of them"
                )
            seen[field.name.lower()] = field.name

    @cached_property
    def source(self) -> pa.Schema:
        """The columns that have to be read from the log."""
        return pa.schema([*_RECORD, *(_BATCH if self.batch_info else [])])

    @cached_property
    def table(self) -> pa.Schema:
        """All columns of the table."""
        kept = [field for field in self.source if self.raw or field.name not in RAW]
        return pa.schema([*kept, *self._typed, *([PARSE_ERROR] if self.decoder else []), DAY])

    @cached_property
    def _typed(self) -> list[pa.Field]:
        if self.decoder is None:
            return []
        return [field.with_name(self.prefix + field.name) for field in self.decoder.schema]

    def rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of the source with the columns of the table, but for `day`."""
        arrays = [batch.column(field.name) for field in self.source if self.raw or field.name not in RAW]
        if self.decoder is not None:
            decoded = self.decoder.decode(batch.column("value"))
            arrays += [*decoded.columns.columns, decoded.errors]
        return pa.RecordBatch.from_arrays(arrays, schema=self._without_day)

    @cached_property
    def _without_day(self) -> pa.Schema:
        return pa.schema(list(self.table)[:-1])


def by_partition(batch: pa.RecordBatch) -> Iterator[tuple[TopicPartition, pa.RecordBatch]]:
    """Divide rows of several partitions, which follow each other in the order of the partitions."""
    topics, numbers = batch.column("topic"), batch.column("partition")
    last = batch.num_rows - 1
    if last < 0:
        return
    if numbers[0] == numbers[last] and topics[0] == topics[last]:  # then so is everything between
        yield TopicPartition(topics[0].as_py(), numbers[0].as_py()), batch
        return
    codes = topics.dictionary_encode().indices.to_numpy()
    parts = np.flatnonzero((np.diff(codes) != 0) | (np.diff(numbers.to_numpy()) != 0)) + 1
    for begin, end in zip([0, *parts.tolist()], [*parts.tolist(), batch.num_rows], strict=True):
        yield TopicPartition(topics[begin].as_py(), numbers[begin].as_py()), batch.slice(begin, end - begin)


def by_day(batch: pa.RecordBatch) -> Iterator[tuple[int | None, pa.RecordBatch]]:
    """Divide rows by the day of their timestamp, in UTC. The rows of a day stay in their order."""
    timestamps = batch.column("timestamp")
    if timestamps.null_count:
        timestamps = pc.fill_null(timestamps, pa.scalar(-1, TIMESTAMP))
    us = timestamps.view(pa.int64()).to_numpy()
    first, last = _day(int(us.min())), _day(int(us.max()))
    if first == last is not None:
        yield first, batch
        return
    days = us // _US_PER_DAY
    days[(days < 0) | (days > _LAST_DAY)] = _NO_DAY
    order = np.argsort(days, kind="stable")
    sorted_days = days[order]
    borders = [0, *(np.flatnonzero(np.diff(sorted_days)) + 1).tolist(), len(days)]
    for begin, end in pairwise(borders):  # copied: as a slice, a few rows that wait would keep all in memory
        yield _day(int(sorted_days[begin]) * _US_PER_DAY), batch.take(pa.array(order[begin:end]))


def _day(us: int) -> int | None:
    day = us // _US_PER_DAY
    return day if 0 <= day <= _LAST_DAY else None


def timestamp_range_us(batch: pa.RecordBatch) -> tuple[int, int] | None:
    """Return the smallest and the largest timestamp; None if no row has one."""
    timestamps = batch.column("timestamp")
    if timestamps.null_count:
        timestamps = timestamps.drop_null()
    if not len(timestamps):
        return None
    us = timestamps.view(pa.int64()).to_numpy()
    return int(us.min()), int(us.max())
