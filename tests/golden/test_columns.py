"""Golden files read through Arrow, column by column, to what Kafka says is in them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from octavo.records import to_arrow
from octavo.records.arrow.schema import ALL_COLUMNS
from tests.columns import rows_of, told_rows
from tests.golden import files

pytestmark = pytest.mark.usefixtures("each_kind_of_kernel")

MAX_MS = (2**63 - 1) // 1000  # what fits into microseconds


@pytest.mark.parametrize("name", files.names())
def test_a_golden_file_reads_to_the_columns_that_kafka_says(name: str) -> None:
    golden = files.load(name)
    rows = rows_of(golden.data)
    assert rows == told_rows(golden.batches)
    assert [set(row) for row in rows] == [set(ALL_COLUMNS) - {"timestamp"}] * len(rows)


@pytest.mark.parametrize("name", files.names())
def test_a_golden_file_is_read_to_its_end(name: str) -> None:
    golden = files.load(name)
    reader = to_arrow(golden.data, columns=("timestamp", "timestampMs"))
    told = [record.timestamp_ms for record in golden.records]
    micros, millis = [], []
    for chunk in reader:
        micros += chunk["timestamp"].cast(pa.int64()).to_pylist()
        millis += chunk["timestampMs"].to_pylist()
    assert millis == told
    assert micros == [1000 * ms if abs(ms) <= MAX_MS else None for ms in told]
    assert reader.position == sum(batch.size for batch in golden.batches)
    assert reader.torn_tail == (None if reader.position == len(golden.data) else reader.position)
