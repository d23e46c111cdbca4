"""`from_arrow_divided` writes for each log what `from_arrow` writes of its rows, without offsets."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from octavo.errors import InvalidInput
from octavo.records import Codec, from_arrow, read_batches
from octavo.records.arrow.divided import from_arrow_divided

_TIMES = pa.timestamp("ms", "UTC")
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def _rows(count: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "key": pa.array([None if row % 5 == 0 else b"key-%d" % row for row in range(count)], pa.binary()),
            "value": pa.array([None if row % 7 == 0 else b"value " * (row % 9) for row in range(count)], pa.binary()),
            "headers": pa.array(
                [[{"key": "h", "value": b"%d" % row}] if row % 3 == 0 else None for row in range(count)], _HEADERS
            ),
            "timestamp": pa.array([1_700_000_000_000 + row * 3 for row in range(count)], _TIMES),
        }
    )


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4, Codec.GZIP])
@pytest.mark.parametrize("ends", [[100], [1, 100], [30, 31, 60, 99, 100], list(range(1, 101))])
@pytest.mark.parametrize("max_size", [1, 300, 1 << 20])
def test_each_log_gets_the_batches_of_its_rows(codec: Codec, ends: list[int], max_size: int) -> None:
    rows = _rows(100)
    divided = from_arrow_divided(rows, np.array(ends), codec=codec, max_size=max_size)
    assert len(divided) == len(ends)
    for first, end, buffers in zip([0, *ends], ends, divided, strict=False):
        alone = bytes(from_arrow(rows.slice(first, end - first), codec=codec, max_size=max_size))
        expected = b"".join(bytes(8) + bytes(batch.data[8:]) for batch in read_batches(alone))
        assert b"".join(buffers) == expected


def test_what_the_format_cannot_express_is_refused() -> None:
    rows = _rows(10)
    early = pa.array([1] * 9 + [-5], _TIMES)
    with pytest.raises(InvalidInput, match="-5 ms is negative"):
        from_arrow_divided(rows.set_column(3, "timestamp", early), np.array([5, 10]), max_size=1000)
    with pytest.raises(InvalidInput, match="max_size"):
        from_arrow_divided(rows, np.array([10]), max_size=0)
    with pytest.raises(InvalidInput, match="level"):
        from_arrow_divided(rows, np.array([10]), codec=Codec.LZ4, level=99, max_size=1000)
