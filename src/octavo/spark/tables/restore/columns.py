"""The columns of a table that become records again, with the types that the encoder takes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from octavo.errors import InvalidInput
from octavo.records.arrow.schema import TIMESTAMP

_HEADERS: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_RECORD: Final = {
    "offset": pa.int64(),
    "key": pa.binary(),
    "value": pa.binary(),
    "timestamp": TIMESTAMP,
    "timestampType": pa.int32(),
    "headers": _HEADERS,
}
# Together they say how records were batched, and by whom. Leader epochs come from the new log. Whether a batch belonged
# to a transaction is left out: without the marker at its end, readers of committed data would wait for it for ever.
_BATCH: Final = {
    "producerId": pa.int64(),
    "producerEpoch": pa.int16(),
    "sequence": pa.int32(),
    "compression": pa.string(),
    "position": pa.int64(),
}
_OPTIONAL: Final = {"file": pa.string(), "isControl": pa.bool_()}


def has_batch_info(names: Iterable[str]) -> bool:
    """Return whether columns of these names tell how records were batched."""
    return _BATCH.keys() <= set(names)


def record_types(names: Iterable[str], *, batch_info: bool) -> dict[str, pa.DataType]:
    """Return the types of those columns that are needed for records, by their names."""
    types = {**_RECORD, **(_BATCH if batch_info else {}), **_OPTIONAL}
    given = set(names)
    return {name: kind for name, kind in types.items() if name in given}


def with_types(rows: pa.RecordBatch, types: dict[str, pa.DataType], where: str) -> pa.RecordBatch:
    """Return the columns with these types. Raises `InvalidInput` if one cannot have its type."""
    columns = [_cast(rows.column(name), name, kind, where) for name, kind in types.items()]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(types.items()))


def _cast(column: pa.Array, name: str, kind: pa.DataType, where: str) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.type == kind:
        return column
    try:
        if pa.types.is_timestamp(kind):
            if not pa.types.is_timestamp(column.type):
                raise InvalidInput(f"{where}: the column {name} is {column.type}, not a timestamp")
            return column.cast(kind, safe=column.type.unit != "ns")  # Kafka's are milliseconds
        return column.cast(kind)
    except pa.ArrowException as error:
        raise InvalidInput(f"{where}: the column {name} is {column.type}, which cannot be {kind}: {error}") from None
