"""The walk over headers: which batches a range leaves out."""

from __future__ import annotations

import numpy as np
import pytest

from octavo.errors import BadLength
from octavo.records import BatchBuilder, Codec
from octavo.records.kernels import kernels, scan
from octavo.records.layout import LOG_OVERHEAD, MAX_INT64, MESSAGE_V1, MIN_INT64, MIN_LENGTH, MessageV1
from tests.columns import rows_of

pytestmark = pytest.mark.usefixtures("each_kind_of_kernel")

TIME_MS = 1_700_000_000_000


def wrapper(magic: int, *, offset: int | None = None, count: int = 10) -> bytes:
    """Messages 0 to 9 in one that is compressed; its own offset is that of the last, or the one given."""
    builder = BatchBuilder(magic, codec=Codec.GZIP)
    for number in range(count):
        builder.append(None, b"%d" % number, timestamp_ms=TIME_MS)
    data = builder.build()
    return data if offset is None else offset.to_bytes(8, "big") + data[8:]  # which no checksum covers


@pytest.mark.parametrize("magic", [0, 1])
def test_a_wrapper_that_its_producer_left_at_offset_0_is_looked_into(magic: int) -> None:
    data = wrapper(magic, offset=0)
    assert [row["offset"] for row in rows_of(data)] == list(range(10))
    assert [row["offset"] for row in rows_of(data, offsets=(4, 6))] == [4, 5]
    assert [row["offset"] for row in rows_of(data, offsets=(9, None))] == [9]
    assert rows_of(data, offsets=(10, None)) == []


@pytest.mark.parametrize("magic", [0, 1])
def test_any_other_wrapper_is_left_out_by_its_last_offset(magic: int) -> None:
    data = wrapper(magic)[:-1] + b"?"  # damaged: whoever looks into it sees that
    assert rows_of(data, offsets=(10, None), verify=False) == []


@pytest.mark.parametrize("magic", [0, 1])
def test_a_single_message_at_offset_0_is_left_out(magic: int) -> None:
    builder = BatchBuilder(magic)
    builder.append(None, b"value", timestamp_ms=TIME_MS)
    data = builder.build()[:-1] + b"?"
    assert rows_of(data, offsets=(1, None), verify=False) == []


def test_the_shortest_entry_has_room_for_the_timestamp_of_magic_1() -> None:
    data = MESSAGE_V1.write(MessageV1(5, MIN_LENGTH, 0, 1, 0, TIME_MS))
    assert len(data) == LOG_OVERHEAD + MIN_LENGTH
    table = np.zeros((2, scan.COLUMNS), np.int64)
    ranges = (MIN_INT64, MAX_INT64) * 2
    walked = kernels(0).scan(np.frombuffer(data, np.uint8), 0, len(data), table, 1 << 20, *ranges)
    assert tuple(walked[:3]) == (len(data), 1, scan.DONE)
    assert table[0, [scan.LAST_OFFSET, scan.MAX_TIMESTAMP]].tolist() == [5, TIME_MS]
    with pytest.raises(BadLength):  # there is none for key and value
        rows_of(data, verify=False)
