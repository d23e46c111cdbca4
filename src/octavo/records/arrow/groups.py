"""Decide which rows share a batch: consecutive rows that agree in all fields that a batch stores once."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from octavo.errors import InvalidInput
from octavo.records.arrow.flat_columns import FlatColumns, Int64s, column, integers
from octavo.records.arrow.numbers import to_numpy
from octavo.records.compression import compress
from octavo.records.fields import check_range
from octavo.records.kernels import encode_input
from octavo.records.layout import (
    MAX_INT16,
    MAX_INT32,
    MAX_INT64,
    MAX_SEQUENCE,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    Attributes,
    Codec,
    TimestampType,
)


class BatchFields(NamedTuple):
    """The fields that a batch stores once for all its records. A column that gives a field overrides it."""

    magic: int
    codec: Codec
    level: int | None
    timestamp_type: TimestampType
    log_append_time_ms: int
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    transactional: bool
    control: bool
    delete_horizon_ms: int | None


# The lowest and the highest value of a batch's field, by the name of its column.
_RANGES: Final = {
    "timestampType": (int(TimestampType.NONE), int(TimestampType.LOG_APPEND_TIME)),
    "leaderEpoch": (NO_LEADER_EPOCH, MAX_INT32),
    "producerId": (NO_PRODUCER_ID, MAX_INT64),
    "producerEpoch": (NO_PRODUCER_EPOCH, MAX_INT16),
    "sequence": (NO_SEQUENCE, MAX_SEQUENCE),
}


def check_arguments(fields: BatchFields) -> None:
    """Raises `InvalidInput` for values that no batch can hold, whatever the columns are."""
    if fields.magic not in (0, 1, 2):
        raise InvalidInput(f"there is no magic {fields.magic}")
    if fields.codec not in list(Codec):
        raise InvalidInput(f"there is no codec {fields.codec}")
    if fields.magic > 0 and fields.timestamp_type == TimestampType.NONE:
        raise InvalidInput(f"magic {fields.magic} needs a timestamp type")
    check_range("log_append_time_ms", fields.log_append_time_ms, NO_TIMESTAMP, MAX_INT64)
    check_range("leader_epoch", fields.leader_epoch, *_RANGES["leaderEpoch"])
    check_range("producer_id", fields.producer_id, *_RANGES["producerId"])
    check_range("producer_epoch", fields.producer_epoch, *_RANGES["producerEpoch"])
    check_range("base_sequence", fields.base_sequence, *_RANGES["sequence"])
    if fields.delete_horizon_ms is not None:
        check_range("delete_horizon_ms", fields.delete_horizon_ms, 0, MAX_INT64)


class _Column(NamedTuple):
    """A value for each row, or one value for all rows."""

    rows: Int64s | None
    value: int

    def is_always(self, value: int) -> bool:
        return self.rows is None and self.value == value

    def at(self, rows: Int64s) -> Int64s:
        return np.full(len(rows), self.value, np.int64) if self.rows is None else self.rows[rows]


def _column(rows: Int64s | None, default: int) -> _Column:
    """Return `rows`, or their one value if all are equal, or `default` if `rows` is None."""
    if rows is None:
        return _Column(None, default)
    lowest = int(rows.min())
    return _Column(None, lowest) if lowest == int(rows.max()) else _Column(rows, default)


# The columns of which each row may say something else than the arguments.
_OF_ROWS: Final = {*_RANGES, "compression", "isTransactional", "isControl", "position"}


def groups_of(batch: pa.RecordBatch, columns: FlatColumns, fields: BatchFields) -> Int64s:
    """Return the table of groups for the encoding kernel; raises `InvalidInput` for what Kafka's builder refuses."""
    if _OF_ROWS.isdisjoint(batch.schema.names) and not (fields.control and fields.transactional):
        groups = one_group(batch.num_rows, fields)
    else:
        groups = _groups_by_columns(batch, columns, fields)
    _check(fields, columns.rows, groups)
    return groups


def one_group(count: int, fields: BatchFields) -> Int64s:
    """Return the table for rows that have all their fields from the arguments, as most have."""
    groups = np.zeros((1, encode_input.GROUP_COLUMNS), np.int64)
    group = groups[0]
    group[encode_input.GROUP_LAST_ROW] = count
    group[encode_input.GROUP_ATTRIBUTES] = (
        int(fields.codec)
        | int(Attributes.LOG_APPEND_TIME) * (fields.timestamp_type == TimestampType.LOG_APPEND_TIME)
        | int(Attributes.TRANSACTIONAL) * bool(fields.transactional)
        | int(Attributes.CONTROL) * bool(fields.control)
        | int(Attributes.DELETE_HORIZON) * (fields.delete_horizon_ms is not None)
    )
    group[encode_input.GROUP_LEADER_EPOCH] = fields.leader_epoch
    group[encode_input.GROUP_PRODUCER_ID] = fields.producer_id
    group[encode_input.GROUP_PRODUCER_EPOCH] = fields.producer_epoch
    group[encode_input.GROUP_BASE_SEQUENCE] = fields.base_sequence
    group[encode_input.GROUP_APPEND_TIME] = fields.log_append_time_ms
    group[encode_input.GROUP_DELETE_HORIZON] = fields.delete_horizon_ms or 0
    return groups


def _groups_by_columns(batch: pa.RecordBatch, columns: FlatColumns, fields: BatchFields) -> Int64s:
    def given(name: str, default: int) -> _Column:
        rows = integers(batch, name)
        found = _column(rows, default)
        if rows is not None and name in _RANGES:
            lowest, highest = (rows.min(), rows.max()) if found.rows is not None else (found.value, found.value)
            check_range(f"column {name!r}", int(lowest), *_RANGES[name])
            check_range(f"column {name!r}", int(highest), *_RANGES[name])
        return found

    codec = _column(_codecs(batch), int(fields.codec))
    kind = given("timestampType", int(fields.timestamp_type))
    leader_epoch = given("leaderEpoch", fields.leader_epoch)
    producer_id = given("producerId", fields.producer_id)
    producer_epoch = given("producerEpoch", fields.producer_epoch)
    transactional = given("isTransactional", int(fields.transactional))
    control = given("isControl", int(fields.control))
    sequence = integers(batch, "sequence")
    given("sequence", fields.base_sequence)
    position = given("position", 0)
    append_time = _append_times(batch, columns, kind, fields)
    shared = [codec, kind, leader_epoch, producer_id, producer_epoch, transactional, control, position, append_time]
    begins = _changes(shared)
    if sequence is not None:
        begins = begins | _breaks(sequence, columns.rows.offsets)
    if column(batch, "position") is None:
        begins = begins | _markers(control, transactional, batch.num_rows)
    first = np.concatenate((np.zeros(1, np.int64), np.flatnonzero(begins) + 1))
    groups = np.empty((len(first), encode_input.GROUP_COLUMNS), np.int64)
    groups[:, encode_input.GROUP_FIRST_ROW] = first
    groups[:, encode_input.GROUP_LAST_ROW] = np.append(first[1:], batch.num_rows)
    groups[:, encode_input.GROUP_ATTRIBUTES] = (
        codec.at(first)
        | np.where(kind.at(first) == TimestampType.LOG_APPEND_TIME, int(Attributes.LOG_APPEND_TIME), 0)
        | np.where(transactional.at(first), int(Attributes.TRANSACTIONAL), 0)
        | np.where(control.at(first), int(Attributes.CONTROL), 0)
        | (0 if fields.delete_horizon_ms is None else int(Attributes.DELETE_HORIZON))
    )
    groups[:, encode_input.GROUP_LEADER_EPOCH] = leader_epoch.at(first)
    groups[:, encode_input.GROUP_PRODUCER_ID] = producer_id.at(first)
    groups[:, encode_input.GROUP_PRODUCER_EPOCH] = producer_epoch.at(first)
    groups[:, encode_input.GROUP_BASE_SEQUENCE] = fields.base_sequence if sequence is None else sequence[first]
    groups[:, encode_input.GROUP_APPEND_TIME] = append_time.at(first)
    groups[:, encode_input.GROUP_DELETE_HORIZON] = 0 if fields.delete_horizon_ms is None else fields.delete_horizon_ms
    return groups


def _append_times(batch: pa.RecordBatch, columns: FlatColumns, kind: _Column, fields: BatchFields) -> _Column:
    """Return the append times of the batches: the records' own timestamps, if a column declares them append times."""
    if column(batch, "timestampType") is None or kind.is_always(TimestampType.CREATE_TIME):
        return _Column(None, fields.log_append_time_ms)
    if kind.rows is None:
        return _column(columns.timestamps_ms(), 0)
    is_append_time = kind.rows == TimestampType.LOG_APPEND_TIME
    return _Column(np.where(is_append_time, columns.timestamps_ms(), fields.log_append_time_ms), 0)


def _changes(columns: list[_Column]) -> npt.NDArray[np.bool_]:
    """Return, for every row but the first, whether any column changes there; a single False if no column has rows."""
    begins: npt.NDArray[np.bool_] = np.zeros(1, bool)
    for one in columns:
        if one.rows is not None:
            begins = begins | (one.rows[1:] != one.rows[:-1])
    return begins


def _breaks(sequence: Int64s, offsets: Int64s) -> npt.NDArray[np.bool_]:
    """Return, for every row but the first, whether its sequence fails to advance as its offset does."""
    before, after = sequence[:-1], sequence[1:]
    follows = (before + np.diff(offsets)) & MAX_SEQUENCE
    breaks: npt.NDArray[np.bool_] = np.where(before < 0, after >= 0, after != follows)
    return breaks


def _markers(control: _Column, transactional: _Column, count: int) -> npt.NDArray[np.bool_]:
    """Return, for every row but the first, whether it ends a transaction: such a marker is a batch of its own."""
    if control.is_always(0) or transactional.is_always(0):
        return np.zeros(1, bool)
    rows = np.arange(1, count)
    markers: npt.NDArray[np.bool_] = (control.at(rows) & transactional.at(rows)) != 0
    return markers


def _codecs(batch: pa.RecordBatch) -> Int64s | None:
    names = column(batch, "compression")
    if names is None:
        return None
    if names.null_count:
        raise InvalidInput("column 'compression' holds nulls")
    if not (pa.types.is_string(names.type) or pa.types.is_dictionary(names.type)):
        raise InvalidInput(f"column 'compression' is {names.type}, not the names of codecs")
    encoded = names if pa.types.is_dictionary(names.type) else names.dictionary_encode()
    numbers = []
    for name in encoded.dictionary.to_pylist():
        if not isinstance(name, str) or name.upper() not in Codec.__members__:
            raise InvalidInput(f"there is no codec {name!r}")
        numbers.append(int(Codec[name.upper()]))
    codecs: Int64s = np.array(numbers, np.int64)[to_numpy(encoded.indices)]
    return codecs


def _check(fields: BatchFields, rows: encode_input.Rows, groups: Int64s) -> None:
    """Raises `InvalidInput` for a combination of fields that Kafka's builder refuses."""
    attributes = groups[:, encode_input.GROUP_ATTRIBUTES]
    if fields.level is not None:
        for codec in np.unique(attributes & Attributes.CODEC).tolist():
            compress(codec, b"", level=fields.level, magic=fields.magic)  # refuses a level that the codec does not have
    if fields.magic < 2:
        _check_old(fields.magic, rows, groups)
    with_producer = groups[:, encode_input.GROUP_PRODUCER_ID] != NO_PRODUCER_ID
    if (~with_producer & ((attributes & Attributes.TRANSACTIONAL) != 0)).any():
        raise InvalidInput("a transactional batch needs a producer id")
    if not with_producer.any():
        return
    if (with_producer & (groups[:, encode_input.GROUP_PRODUCER_EPOCH] == NO_PRODUCER_EPOCH)).any():
        raise InvalidInput("a producer id needs a producer epoch")
    control = (attributes & Attributes.CONTROL) != 0
    if (with_producer & ~control & (groups[:, encode_input.GROUP_BASE_SEQUENCE] < 0)).any():
        raise InvalidInput("a producer's records need a sequence number")


def _check_old(magic: int, rows: encode_input.Rows, groups: Int64s) -> None:
    attributes = int(np.bitwise_or.reduce(groups[:, encode_input.GROUP_ATTRIBUTES]))
    codecs = groups[:, encode_input.GROUP_ATTRIBUTES] & Attributes.CODEC
    for name, present in (
        ("zstd", (codecs == Codec.ZSTD).any()),
        ("headers", len(rows.header_ends)),
        ("a leader epoch", (groups[:, encode_input.GROUP_LEADER_EPOCH] != NO_LEADER_EPOCH).any()),
        ("a producer", (groups[:, encode_input.GROUP_PRODUCER_ID] != NO_PRODUCER_ID).any()),
        ("transactions", attributes & Attributes.TRANSACTIONAL),
        ("control records", attributes & Attributes.CONTROL),
        ("a delete horizon", attributes & Attributes.DELETE_HORIZON),
        ("append times", magic == 0 and attributes & Attributes.LOG_APPEND_TIME),
    ):
        if present:
            raise InvalidInput(f"messages of magic {magic} have no place for {name}")
