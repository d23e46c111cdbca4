"""The fast way and the exact way agree wherever the fast one is certain, and it mostly is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from octavo.values import columns, value_decoder
from octavo.values.ddl import read_schema
from octavo.values.json import decoder
from octavo.values.json.columns import Shredder
from octavo.values.json.rows import RowReader
from tests.unit.values.json.documents import SCHEMA, documents, plain_documents


def texts(array: pa.Array) -> list[str]:
    """One text for each value, in which NaN equals NaN, and times are numbers."""
    if pa.types.is_temporal(array.type):
        array = array.cast(pa.int32() if pa.types.is_date(array.type) else pa.int64())
    return list(map(repr, array.to_pylist()))


def disagreements(values: Sequence[bytes | None], schema: pa.Schema) -> tuple[list[object], int]:
    """What the fast way is certain of, but not right; and how many values it is certain of."""
    shredded = Shredder(schema).shred(pa.array(values, pa.binary()))
    reader = RowReader(schema)
    rows = [None if value is None else reader.read(value) for value in values]
    wrong: list[object] = [
        (value, row.error)
        for value, row, certain in zip(values, rows, shredded.certain, strict=True)
        if certain and row is not None and row.error is not None
    ]
    for field, column in zip(schema, shredded.columns, strict=True):
        column.validate(full=True)
        exact = pa.array([None if row is None else row.fields.get(field.name) for row in rows], field.type)
        for value, ours, theirs, certain in zip(values, texts(column), texts(exact), shredded.certain, strict=True):
            if ours != (theirs if certain else "None"):
                wrong.append((field.name, ours, theirs, value))
    return wrong, int(np.count_nonzero(shredded.certain))


def test_odd_and_broken_values_are_left_to_the_exact_way() -> None:
    values = documents(5, 600)
    wrong, certain = disagreements(values, read_schema(SCHEMA))
    assert not wrong
    assert 50 < certain < len(values)


def test_plain_values_are_not() -> None:
    values = plain_documents(6, 300)
    wrong, certain = disagreements(values, read_schema(SCHEMA))
    assert not wrong
    assert certain == len(values)


@pytest.mark.parametrize("mode", ["compiled", pytest.param("checked", marks=pytest.mark.long)])
def test_compiled_kernels_do_the_same(mode: str) -> None:
    program = (
        "from tests.unit.values.json.test_agreement import *\n"
        "for values in (documents(7, 3000), plain_documents(8, 1000)):\n"
        "    wrong, certain = disagreements(values, read_schema(SCHEMA))\n"
        "    assert not wrong and certain, wrong[:3]\n"
    )
    environment = {**os.environ, "OCTAVO_KERNELS": mode}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)


def test_every_prefix_of_a_value_is_read_alike() -> None:
    value = plain_documents(9, 1)[0] + b" "
    wrong, _ = disagreements([value[:size] for size in range(len(value) + 1)], read_schema(SCHEMA))
    assert not wrong


def test_names_that_json_has_to_escape_are_found() -> None:
    schema = pa.schema([('a":1,"b', pa.int64()), ("c\\", pa.int64()), ("\n", pa.int64()), ("ä", pa.int64())])
    values = [
        b'{"a":1,"b":2}',
        json.dumps({'a":1,"b': 1, "c\\": 2, "\n": 3, "ä": 4}).encode(),
        json.dumps({"ä": 4}, ensure_ascii=False).encode(),
    ]
    decoded = decoder.JsonDecoder(schema).decode(pa.array(values, pa.binary()))
    assert [list(row.values()) for row in decoded.columns.to_pylist()] == [[None] * 4, [1, 2, 3, 4], [None] * 3 + [4]]
    assert decoded.errors.null_count == 3


def test_a_column_is_decoded_in_parts_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    values = pa.array([*documents(10, 100), *plain_documents(11, 100)], pa.binary())
    whole = value_decoder("json", schema=SCHEMA).decode(values)
    monkeypatch.setattr(columns, "CHUNK", 1000)
    monkeypatch.setattr(columns, "TOO_LARGE", 500)
    for start, size in ((0, len(values)), (3, 50), (len(values) - 1, 1), (7, 0)):
        part = value_decoder("json", schema=SCHEMA).decode(values.slice(start, size))
        assert part.columns.num_rows == size
        for field, column in zip(part.columns.schema, part.columns.columns, strict=True):
            assert texts(column) == texts(whole.columns.column(field.name).slice(start, size))
        assert part.errors.equals(whole.errors.slice(start, size))


def test_values_at_the_end_of_a_buffer_and_among_nulls() -> None:
    values = [None, b'{"a":1}', None, None, b'{"a":', b'{"a":2}', None]
    decoded = value_decoder("json", schema="a BIGINT, b STRING, c ARRAY<STRUCT<x: INT>>").decode(
        pa.array(values, pa.binary())
    )
    assert decoded.columns.column("a").to_pylist() == [None, 1, None, None, None, 2, None]
    assert decoded.errors.is_valid().to_pylist() == [False, False, False, False, True, False, False]


def test_what_does_not_fit_is_told() -> None:
    values = [b'{"a":[1,"x"]}', b'{"a":[[]]}', b'{"b":{"c":"x"}}', b'{"b":[]}', b'{"d":[1],"e":[[true]]}']
    schema = "a ARRAY<INT>, b STRUCT<c: INT>, d ARRAY<STRUCT<x: INT>>, e ARRAY<ARRAY<INT>>"
    decoded = value_decoder("json", schema=schema).decode(pa.array(values, pa.binary()))
    assert [str(error).partition(": its type is")[0] for error in decoded.errors.to_pylist()] == [
        "an element cannot be 'x'",
        "an element cannot be [",
        "the field c cannot be 'x'",
        "the field b cannot be [",
        "an element cannot be 1",
    ]


def test_no_values_and_nothing_but_nulls() -> None:
    json_decoder = value_decoder("json", schema=SCHEMA)
    assert json_decoder.decode(pa.array([], pa.binary())).columns.num_rows == 0
    assert (
        json_decoder.decode(pa.nulls(3, pa.binary())).columns.to_pylist()
        == [dict.fromkeys(json_decoder.schema.names)] * 3
    )


def test_a_huge_list_does_not_need_huge_memory() -> None:
    value = b'{"a":[' + b"1," * 300_000 + b'1],"b":"' + b"x" * 300_000 + b'"}'
    decoded = value_decoder("json", schema="a ARRAY<INT>, b STRING").decode(pa.array([value], pa.binary()))
    assert len(decoded.columns.column("a")[0]) == 300_001
    assert len(decoded.columns.column("b")[0].as_py()) == 300_000
