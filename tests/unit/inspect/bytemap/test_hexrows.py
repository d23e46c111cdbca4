"""Rows of bytes, cut where fields end."""

from __future__ import annotations

import pytest

from octavo.inspect import Field, explain
from octavo.inspect.bytemap.hexrows import WIDTH, hex_rows
from octavo.records import BatchBuilder
from tests.golden import files


def part(fields: list[Field], *, inflated: bool) -> list[Field]:
    return [field for field in fields if field.inflated == inflated]


@pytest.mark.parametrize("name", ["v0-none", "v1-gzip", "v2-none-headers", "v2-zstd", "commit", "v2-empty"])
@pytest.mark.parametrize("inflated", [False, True])
def test_the_rows_have_every_byte_once_with_its_field(name: str, inflated: bool) -> None:
    fields = part(explain(files.load(name).data), inflated=inflated)
    got: dict[int, bytes] = {}
    for row in hex_rows(fields):
        assert 0 < sum(len(run.data) for run in row.runs) <= WIDTH
        for run in row.runs:
            got[run.field] = got.get(run.field, b"") + bytes(run.data)
    assert got == {
        number: bytes(field.data) for number, field in enumerate(fields) if field.size and not field.is_group
    }


@pytest.mark.parametrize("size", [50, 100, 130, 1000, 100_001])
def test_the_middle_of_a_long_field_is_left_out_and_counted(size: int) -> None:
    builder = BatchBuilder()
    builder.append(b"k", b"v" * size, timestamp_ms=0)
    fields = explain(builder.build())
    rows = list(hex_rows(fields, keep=3))
    shown = sum(len(run.data) for row in rows for run in row.runs)
    assert shown + sum(row.left_out for row in rows) == fields[0].size
    gaps = [row for row in rows if row.left_out]
    assert len(gaps) == (size > 150)
    assert len(rows) < 18
    positions = [row.position for row in rows]
    assert positions == sorted(positions)
    if gaps:
        assert fields[gaps[0].field].name == "value"
        assert rows[rows.index(gaps[0]) + 1].position == gaps[0].position + gaps[0].left_out


def test_nothing_has_no_rows() -> None:
    assert list(hex_rows([])) == []
