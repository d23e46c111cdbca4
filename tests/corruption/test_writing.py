"""Writing: the kernel that encodes stays inside its arrays, whatever it is asked to write and in whatever pieces."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from octavo.errors import InvalidInput
from octavo.records import from_arrow
from tests.corruption.child import Child
from tests.corruption.outcome import read_both
from tests.corruption.worker import Case


def _rows(count: int, size: int, header_count: int) -> pa.RecordBatch:
    """Records with a value of `size` bytes, or of none where it is negative; without a key."""
    values = [None if size < 0 else bytes(size)] * count
    columns: dict[str, Any] = {"value": pa.array(values, pa.binary())}
    if header_count:
        headers = [[("", None)] * header_count] * count
        kind = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
        columns["headers"] = pa.array(headers, kind)
    return pa.RecordBatch.from_pydict(columns)


def _written(batch: pa.RecordBatch, **arguments: Any) -> None:
    outcome = read_both(from_arrow(batch, **arguments))
    assert outcome.failure is None
    assert [row.value for row in outcome.rows] == batch.column("value").to_pylist()


def pieces(magic: int) -> Iterator[Case]:
    """The most batches that records can make: every size of batch at which one more record does or does not fit."""
    for size in (-1, 0, 1, 5, 60, 200):
        for header_count in (0, 3) if magic == 2 else (0,):
            batch = _rows(300, size, header_count)
            for max_size in sorted({*range(1, 160, 3), *range(60, 90), 160, 200, 300, 1000}):
                name = f"values of {size}, {header_count} headers, batches of at most {max_size}"
                yield name, partial(from_arrow, batch, magic=magic, max_size=max_size)
            for given in ({"max_size": 80}, {"max_count": 1}, {"max_count": 7, "max_size": 100}):
                yield (
                    f"values of {size}, {header_count} headers, {given}",
                    partial(_written, batch, magic=magic, **given),
                )


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("child", ["checked"], indirect=True)
def test_any_size_of_batches_is_written_inside_the_arrays_for_them(child: Child, magic: int) -> None:
    child.run(pieces, magic)


def offsets() -> Iterator[Case]:
    """Offsets in any order, as far apart as can be: refused or written, never outside."""
    far = [at << 32 for at in range(500)]
    given: dict[str, tuple[list[int], bool]] = {
        "far apart": (far, True),
        "far apart, then back": ([*far, 5], False),
        "falling": (far[::-1], False),
        "from the last to the first": ([2**63 - 1, 0], False),
        "to the last": ([0, 1, 2**31, 2**32, 2**62, 2**63 - 2, 2**63 - 1], True),
        "equal": ([7, 7], False),
        "negative": ([-(2**63), 2**63 - 1], False),
    }
    for name, (numbers, sound) in given.items():
        for magic in (0, 1, 2):
            batch = pa.RecordBatch.from_pydict({"offset": pa.array(numbers, pa.int64())})
            yield f"{name}, magic {magic}", partial(_offsets_written, batch, sound, magic)

    # Groups, each of which goes from the first offset to the last.
    positions = pa.array([group for group in range(10) for _ in far], pa.int64())
    batch = pa.RecordBatch.from_pydict({"offset": pa.array(far * 10, pa.int64()), "position": positions})
    yield "ten groups far apart", partial(_offsets_written, batch, True, 2)


def _offsets_written(batch: pa.RecordBatch, sound: bool, magic: int) -> None:
    if not sound:
        with pytest.raises(InvalidInput):
            from_arrow(batch, magic=magic)
        return
    outcome = read_both(from_arrow(batch, magic=magic))
    assert [row.offset for row in outcome.rows] == batch.column("offset").to_pylist()


@pytest.mark.parametrize("child", ["interpreted", "checked"], indirect=True)
def test_offsets_that_do_not_grow_are_refused_however_far_they_are_apart(child: Child) -> None:
    child.run(offsets)


def mixed_fields() -> Iterator[Case]:
    """Columns that say something else in every row: each change begins a batch, and all of it reads the same."""
    rows = 6
    columns: dict[str, list[Any]] = {
        "timestampType": [0, 1, 1, 0, 0, 1],
        "isTransactional": [False, True, True, False, True, True],
        "isControl": [False, False, False, False, False, False],
        "leaderEpoch": [1, 1, 2, 2, 3, 3],
        "producerId": [5] * rows,
        "producerEpoch": [0] * rows,
        "sequence": list(range(rows)),
        "compression": ["none", "zstd", "zstd", "lz4", "none", "gzip"],
        "value": [b"v"] * rows,
        "timestampMs": [10, 20, 20, 30, 40, 50],
    }
    for missing in (None, "timestampType", "isTransactional", "compression"):
        some = {name: values for name, values in columns.items() if name != missing}
        yield f"without {missing}", partial(_fields_written, some)


def _fields_written(columns: dict[str, list[Any]]) -> None:
    outcome = read_both(from_arrow(pa.RecordBatch.from_pydict(columns)))
    assert outcome.failure is None
    names = {"timestampType": "timestamp_type", "isTransactional": "is_transactional", "timestampMs": "timestamp_ms"}
    for name in ("timestampType", "isTransactional", "compression", "value", "timestampMs", "sequence"):
        if name in columns:
            assert [getattr(row, names.get(name, name)) for row in outcome.rows] == columns[name], name


@pytest.mark.parametrize("child", ["interpreted"], indirect=True)
def test_fields_that_change_from_row_to_row_are_written(child: Child) -> None:
    child.run(mixed_fields)
