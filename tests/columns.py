"""Records as objects and as Arrow columns, turned into each other for comparison."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from octavo.records import Header, Record, from_arrow, to_arrow
from octavo.records.arrow.schema import ALL_COLUMNS, FIELDS
from octavo.records.layout import Codec, TimestampType
from tests.batches import TIMESTAMP_TYPES
from tests.kafka.answers import BatchSpec, ReadBatch, ReadRecord

RECORD_COLUMNS = ("offset", "timestampMs", "key", "value", "headers")


def table_of(records: Iterable[Record]) -> pa.RecordBatch:
    """The columns that a record itself has."""
    rows = [
        {
            "offset": record.offset,
            "timestampMs": record.timestamp_ms,
            "key": record.key,
            "value": record.value,
            "headers": [header._asdict() for header in record.headers],
        }
        for record in records
    ]
    return pa.RecordBatch.from_pylist(rows, schema=pa.schema([FIELDS[name] for name in RECORD_COLUMNS]))


def rows_of(buffer: bytes, **options: Any) -> list[dict[str, Any]]:
    """All columns of all records, row by row."""
    columns = options.pop("columns", [name for name in ALL_COLUMNS if name != "timestamp"])
    rows: list[dict[str, Any]] = []
    for chunk in to_arrow(buffer, columns=columns, **options):
        chunk.validate(full=True)
        rows += chunk.to_pylist()
    return rows


def record_of(row: dict[str, Any]) -> Record:
    """The record that a row of `rows_of` says."""
    headers = tuple(Header(header["key"], header["value"]) for header in row["headers"])
    return Record(row["offset"], row["timestampMs"], row["key"], row["value"], headers, row["sequence"])


def records_of(buffer: bytes, **options: Any) -> list[Record]:
    """All records, through Arrow."""
    return [record_of(row) for row in rows_of(buffer, **options)]


def told_row(batch: ReadBatch, record: ReadRecord, position: int) -> dict[str, Any]:
    """The row that Kafka's own reading makes, of all columns but `timestamp`."""
    types = {name: int(number) for number, name in TIMESTAMP_TYPES.items()}
    return {
        "offset": record.offset,
        "timestampType": types[batch.timestamp_type],
        "key": record.key,
        "value": record.value,
        "headers": [{"key": key, "value": value} for key, value in record.headers],
        "timestampMs": record.timestamp_ms,
        "leaderEpoch": batch.leader_epoch,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "sequence": record.sequence,
        "isTransactional": batch.transactional,
        "isControl": batch.control,
        "compression": batch.codec,
        "magic": batch.magic,
        "position": position,
    }


def told_rows(batches: Iterable[ReadBatch]) -> list[dict[str, Any]]:
    """Those of all records of batches that follow one another from the start of a buffer."""
    rows = []
    position = 0
    for batch in batches:
        rows += [told_row(batch, record, position) for record in batch.records]
        position += batch.size
    return rows


def write_columns(spec: BatchSpec) -> bytes:
    """What `from_arrow` makes of `spec`."""
    records = []
    offset = spec.base_offset
    for record in spec.records:
        offset = offset if record.offset is None else record.offset
        headers = tuple(Header(key, value) for key, value in record.headers)
        records.append(Record(offset, record.timestamp_ms, record.key, record.value, headers))
        offset += 1
    append_time = spec.timestamp_type == "LogAppendTime"
    table = table_of(records)
    if spec.control and spec.transactional:  # else each marker gets a batch of its own, as from Kafka's coordinator
        table = table.append_column(FIELDS["position"], pa.repeat(pa.scalar(0, pa.int64()), len(records)))
    data = from_arrow(
        table,
        magic=spec.magic,
        codec=Codec[spec.codec.upper()],
        level=spec.level,
        timestamp_type=TimestampType.LOG_APPEND_TIME if append_time else TimestampType.CREATE_TIME,
        log_append_time_ms=spec.log_append_time_ms,
        leader_epoch=spec.leader_epoch,
        producer_id=spec.producer_id,
        producer_epoch=spec.producer_epoch,
        base_sequence=spec.base_sequence,
        transactional=spec.transactional,
        control=spec.control,
        delete_horizon_ms=None if spec.delete_horizon_ms == -1 else spec.delete_horizon_ms,
        max_size=2**31 - 1,
    )
    return bytes(data)
