"""Define the Arrow columns of records, with the names and types of Spark's Kafka connector.

    offset, timestamp, timestampType, key, value, headers             by default
    timestampMs                                                      the timestamp as stored
    leaderEpoch, producerId, producerEpoch, sequence, isTransactional,
    isControl, compression, magic, position                          fields of the record's batch, on request

`timestamp` holds microseconds in UTC, as Spark expects. Kafka's milliseconds have a larger range: a timestamp that does
not fit, more than about 292,000 years from 1970, is null in `timestamp` and complete in `timestampMs`. Kafka's -1 for
"none" is one millisecond before 1970, as in Spark's connector. `position` is the batch's position in the buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from octavo.errors import InvalidInput

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
HEADER: Final = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())])

FIELDS: Final[dict[str, pa.Field]] = {
    field.name: field
    for field in (
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", TIMESTAMP),
        pa.field("timestampType", pa.int32(), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", pa.list_(pa.field("element", HEADER, nullable=False)), nullable=False),
        pa.field("timestampMs", pa.int64(), nullable=False),
        pa.field("leaderEpoch", pa.int32(), nullable=False),
        pa.field("producerId", pa.int64(), nullable=False),
        pa.field("producerEpoch", pa.int16(), nullable=False),
        pa.field("sequence", pa.int32(), nullable=False),
        pa.field("isTransactional", pa.bool_(), nullable=False),
        pa.field("isControl", pa.bool_(), nullable=False),
        pa.field("compression", pa.string(), nullable=False),
        pa.field("magic", pa.int8(), nullable=False),
        pa.field("position", pa.int64(), nullable=False),
    )
}

COLUMNS: Final = ("offset", "timestamp", "timestampType", "key", "value", "headers")
ALL_COLUMNS: Final = tuple(FIELDS)


def schema_for(columns: Sequence[str]) -> pa.Schema:
    """Return the schema of `columns`, in their order; raises `InvalidInput` for an unknown name."""
    for name in columns:
        if name not in FIELDS:
            raise InvalidInput(f"there is no column {name!r}; there are {', '.join(FIELDS)}")
    return pa.schema([FIELDS[name] for name in columns])
