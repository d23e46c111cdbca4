"""What reading a buffer gave, in a form in which objects and Arrow columns can be compared."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import pyarrow as pa

from octavo.errors import FormatError
from octavo.records import Batch, Codec, Record, read_batches, to_arrow
from octavo.records.arrow.schema import ALL_COLUMNS
from tests.corruption.guard import ARENA

LIMIT: Final = 1 << 20  # of decompression: the samples are far below

_MAX_MS: Final = (2**63 - 1) // 1000


class Row(NamedTuple):
    """One record with all that its batch says of it: Arrow's columns, in the order of the schema."""

    offset: int
    timestamp_us: int | None
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    sequence: int
    is_transactional: bool
    is_control: bool
    compression: str
    magic: int
    position: int


assert len(Row._fields) == len(ALL_COLUMNS)


class Failure(NamedTuple):
    """A typed error: its class and everything it says, the position first."""

    kind: type[FormatError]
    arguments: tuple[Any, ...]

    @property
    def position(self) -> int:
        return int(self.arguments[0])


class Outcome(NamedTuple):
    """The records before the damage, the damage, and where a torn tail begins. Nothing else may come out of reading."""

    rows: list[Row]
    failure: Failure | None = None
    torn_tail: int | None = None


def read_objects(
    buffer: bytes | memoryview, *, start: int = 0, end: int | None = None, verify: bool = True, limit: int = LIMIT
) -> Outcome:
    """Read all records through `Batch` and `Record`. Raises what is no typed error."""
    rows: list[Row] = []
    batches = read_batches(buffer, start=start, end=end, verify=verify, max_decompressed=limit)
    try:
        for batch in batches:
            for record in batch:
                rows.append(_row(batch, record))  # noqa: PERF401  (what came before an error counts)
    except FormatError as error:
        return Outcome(rows, Failure(type(error), error.args))
    return Outcome(rows, None, batches.torn_tail)


def _row(batch: Batch, record: Record) -> Row:
    return Row(
        offset=record.offset,
        timestamp_us=record.timestamp_ms * 1000 if -_MAX_MS <= record.timestamp_ms <= _MAX_MS else None,
        timestamp_type=int(batch.timestamp_type),
        key=record.key,
        value=record.value,
        headers=tuple((header.key, header.value) for header in record.headers),
        timestamp_ms=record.timestamp_ms,
        leader_epoch=batch.leader_epoch,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        sequence=record.sequence,
        is_transactional=batch.is_transactional,
        is_control=batch.is_control,
        compression=Codec(batch.codec).name.lower(),
        magic=batch.magic,
        position=batch.position,
    )


def read_columns(buffer: bytes | memoryview, *, verify: bool = True, limit: int = LIMIT, **arguments: Any) -> Outcome:
    """Read all records through `to_arrow`, with all columns. Raises what is no typed error."""
    rows: list[Row] = []
    chunks = to_arrow(buffer, columns=ALL_COLUMNS, verify=verify, max_decompressed=limit, **arguments)
    try:
        for chunk in chunks:
            chunk.validate(full=True)
            rows.extend(map(Row._make, zip(*map(_plain, chunk.columns), strict=True)))
            ARENA.clear()
    except FormatError as error:
        return Outcome(rows, Failure(type(error), error.args))
    finally:
        ARENA.clear()
    return Outcome(rows, None, chunks.torn_tail)


def _plain(column: pa.Array) -> list[Any]:
    if pa.types.is_timestamp(column.type):  # as datetime, not all of them exist
        column = column.view(pa.int64())
    plain: list[Any] = column.to_pylist()
    if pa.types.is_list(column.type):
        return [tuple((header["key"], header["value"]) for header in headers) for headers in plain]
    return plain


def read_both(
    buffer: bytes | memoryview,
    *,
    start: int = 0,
    end: int | None = None,
    verify: bool = True,
    limit: int = LIMIT,
    **arguments: Any,
) -> Outcome:
    """Read through objects and through Arrow; raises `AssertionError` where they do not agree."""
    objects = read_objects(buffer, start=start, end=end, verify=verify, limit=limit)
    columns = read_columns(buffer, start=start, end=end, verify=verify, limit=limit, **arguments)
    assert objects == columns, f"objects and Arrow do not agree: {difference(objects, columns)}"
    return objects


def difference(one: Outcome, other: Outcome) -> str:
    """The first thing in which they differ."""
    for index, (row, other_row) in enumerate(zip(one.rows, other.rows, strict=False)):
        for field, value, other_value in zip(Row._fields, row, other_row, strict=True):
            if value != other_value:
                return f"{field} of row {index} is {value!r} and {other_value!r}"
    if len(one.rows) != len(other.rows):
        return f"{len(one.rows)} and {len(other.rows)} rows, then {one.failure} and {other.failure}"
    return f"{one[1:]} and {other[1:]}"
