"""Values of an older schema become columns of a newer one."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from octavo.errors import InvalidInput
from octavo.values import decoder_from_text, value_decoder
from tests.unit.values.avro.test_avro import encoded

MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
LOCAL_MILLIS = {"type": "long", "logicalType": "local-timestamp-millis"}
LOCAL_MICROS = {"type": "long", "logicalType": "local-timestamp-micros"}


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def record(*fields: dict[str, Any], name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def plain(kind: Any) -> Any:
    """A schema without its logical types, so that fastavro writes the number as it is."""
    return kind["type"] if isinstance(kind, dict) else kind


def converted(folder: Path, old: dict[str, Any], new: dict[str, Any], values: list[bytes]) -> list[dict[str, Any]]:
    """What becomes of values of the old schema when the new one is wanted."""
    for number, schema in ((1, old), (2, new)):
        (folder / f"{number}.avsc").write_text(json.dumps(schema))
    decoder = value_decoder("avro", schema_folder=str(folder))
    decoded = decoder.decode(pa.array([b"\0\0\0\0\1" + value for value in values], pa.binary()))
    decoded.columns.validate(full=True)
    assert decoded.errors.null_count == len(values)
    rows: list[dict[str, Any]] = decoded.columns.to_pylist(maps_as_pydicts="strict")
    return rows


@pytest.mark.parametrize(
    ("old", "new", "number", "us"),
    [
        ("long", MILLIS, 2_000, 2_000_000),
        ("int", MILLIS, 2_000, 2_000_000),
        ("long", LOCAL_MILLIS, 2_000, 2_000_000),
        ("long", MICROS, 2_000, 2_000),
        (MILLIS, MICROS, 2_000, 2_000_000),
        (MICROS, MILLIS, 2_000, 2_000),
        (LOCAL_MILLIS, MICROS, 2_000, 2_000_000),
        (LOCAL_MICROS, MILLIS, 2_000, 2_000),
        (MILLIS, LOCAL_MICROS, 2_000, 2_000_000),
    ],
)
def test_a_timestamp_has_the_unit_of_its_writer_or_else_of_its_reader(
    tmp_path: Path, old: Any, new: Any, number: int, us: int
) -> None:
    value = encoded({"t": number}, record(field("t", plain(old))))
    (row,) = converted(tmp_path, record(field("t", old)), record(field("t", new)), [value])
    assert row["t"].replace(tzinfo=UTC) == datetime.fromtimestamp(us / 1e6, UTC)


def test_a_timestamp_that_is_read_as_a_number_stays_as_it_is(tmp_path: Path) -> None:
    value = encoded({"t": 1_000}, record(field("t", "long")))
    for kind in ("long", "double"):
        assert converted(tmp_path, record(field("t", MILLIS)), record(field("t", kind)), [value]) == [{"t": 1_000}]


@pytest.mark.parametrize(
    ("kind", "default", "value"),
    [
        (MILLIS, 2_500, datetime(1970, 1, 1, 0, 0, 2, 500_000, tzinfo=UTC)),
        (MICROS, 2_500, datetime(1970, 1, 1, 0, 0, 0, 2_500, tzinfo=UTC)),
        ([MILLIS, "null"], 2_500, datetime(1970, 1, 1, 0, 0, 2, 500_000, tzinfo=UTC)),
        ({"type": "array", "items": "int"}, [], []),
        ({"type": "array", "items": MILLIS}, [1_000], [datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)]),
        ({"type": "map", "values": "int"}, {}, {}),
        ({"type": "map", "values": ["null", "bytes"]}, {"k": "\u00ff", "n": None}, {"k": b"\xff", "n": None}),
        ({"type": "fixed", "name": "F", "size": 2}, "\u0000\u00ff", b"\0\xff"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}, "\u00ff\u0085", Decimal("-1.23")),
        (record(field("a", "bytes"), field("b", "int", default=7), name="Q"), {"a": "x"}, {"a": b"x", "b": 7}),
        ("string", "text", "text"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "A", "A"),
    ],
)
def test_a_new_field_has_its_default(tmp_path: Path, kind: Any, default: Any, value: Any) -> None:
    old = record(field("id", "long"))
    new = record(field("id", "long"), field("new", kind, default=default))
    rows = converted(tmp_path, old, new, [encoded({"id": number}, old) for number in range(2)])
    assert rows == [{"id": 0, "new": value}, {"id": 1, "new": value}]


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        (MILLIS, "soon"),
        ("int", "x"),
        ("bytes", 5),
        ("bytes", "€"),
        ({"type": "array", "items": "int"}, 5),
        ({"type": "map", "values": "int"}, [1]),
        (record(field("a", "int"), name="Q"), {}),
        (record(field("a", "int"), name="Q"), 5),
    ],
)
def test_a_default_of_another_type_is_refused(tmp_path: Path, kind: Any, default: Any) -> None:
    old = record(field("id", "long"))
    new = record(field("id", "long"), field("new", kind, default=default))
    with pytest.raises(InvalidInput, match="the Avro schema has a default that is no "):
        converted(tmp_path, old, new, [encoded({"id": 1}, old)])


def test_a_field_has_the_value_of_its_name_before_that_of_an_alias(tmp_path: Path) -> None:
    old = record(field("a", "long"), field("b", "long"))
    values = [encoded({"a": 1, "b": 2}, old), encoded({"a": 3, "b": 4}, old)]
    both = record(field("b", "long", aliases=["a"]), field("c", "long", default=7))
    assert converted(tmp_path, old, both, values) == [{"b": 2, "c": 7}, {"b": 4, "c": 7}]
    taken = record(field("c", "long", aliases=["b", "a"]), field("b", "long"))
    assert converted(tmp_path, old, taken, values) == [{"c": 1, "b": 2}, {"c": 3, "b": 4}]
    twice = record(field("c", "long", aliases=["b", "a"]))
    assert converted(tmp_path, old, twice, values) == [{"c": 2}, {"c": 4}]
    shared = record(field("c", "long", aliases=["a"]), field("d", "long", aliases=["a"], default=7))
    assert converted(tmp_path, old, shared, values) == [{"c": 1, "d": 7}, {"c": 3, "d": 7}]


def test_fields_inside_of_others_have_aliases_too(tmp_path: Path) -> None:
    old = record(field("i", record(field("a", "long"), field("b", "long"), name="I")))
    inner = record(field("b", "long", aliases=["a"]), field("x", ["null", "long"], default=None), name="I")
    values = [encoded({"i": {"a": 1, "b": 2}}, old), encoded({"i": {"a": 3, "b": 4}}, old)]
    rows = converted(tmp_path, old, record(field("i", inner)), values)
    assert rows == [{"i": {"b": 2, "x": None}}, {"i": {"b": 4, "x": None}}]


def test_the_folder_of_schemas_is_found_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "1.avsc").write_text(json.dumps(record(field("id", "long"))))
    monkeypatch.chdir(tmp_path)
    decoder = value_decoder("avro", schema_folder="schemas")
    monkeypatch.chdir("/")
    assert decoder_from_text(decoder.to_text()) == decoder
    assert json.loads(decoder.to_text())["schema_folder"] == str(tmp_path / "schemas")
