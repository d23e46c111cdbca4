"""Avro values become what fastavro makes of them."""

from __future__ import annotations

import io
import json
import os
import pickle
import random
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from octavo.errors import InvalidInput
from octavo.values import decoder_from_text, value_decoder

SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "count", "type": "int"},
        {"name": "paid", "type": "boolean"},
        {"name": "price", "type": "double"},
        {"name": "weight", "type": ["float", "null"]},
        {"name": "name", "type": ["null", "string"]},
        {"name": "raw", "type": "bytes"},
        {"name": "color", "type": {"type": "enum", "name": "Color", "symbols": ["RED", "GREEN", "A_LONG_NAME"]}},
        {"name": "again", "type": ["null", "Color"]},
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 4}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "exact", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
        {"name": "sum", "type": {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 2}},
        {
            "name": "net",
            "type": {"type": "fixed", "name": "Net", "size": 9, "logicalType": "decimal", "precision": 18, "scale": 3},
        },
        {"name": "nothing", "type": "null"},
        {"name": "tags", "type": {"type": "array", "items": ["null", "string"]}},
        {
            "name": "lines",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Line",
                    "fields": [
                        {"name": "sku", "type": "string"},
                        {"name": "notes", "type": {"type": "map", "values": {"type": "array", "items": "long"}}},
                        {"name": "color", "type": ["null", "shop.Color"]},
                    ],
                },
            },
        },
        {"name": "extra", "type": ["null", {"type": "map", "values": "Line"}]},
    ],
}


def order(chance: random.Random) -> dict[str, Any]:
    """Something that fits the schema."""

    def text() -> str:
        return "".join(chance.choices("abc ä€😀\n", k=chance.randrange(9)))

    def line() -> dict[str, Any]:
        notes = {text(): [chance.randrange(-(2**63), 2**63) for _ in range(chance.randrange(3))] for _ in range(2)}
        return {"sku": text(), "notes": notes, "color": chance.choice([None, "RED", "A_LONG_NAME"])}

    def maybe(value: Any) -> Any:
        return chance.choice([None, value])

    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=chance.randrange(-(10**12), 10**13))
    return {
        "id": chance.randrange(-(2**63), 2**63),
        "count": chance.randrange(-(2**31), 2**31),
        "paid": chance.random() < 0.5,
        "price": chance.choice([0.1, -0.0, float("inf"), chance.uniform(-1e9, 1e9)]),
        "weight": maybe(chance.choice([1.5, -0.25, 1e10])),
        "name": maybe(text()),
        "raw": bytes(chance.choices(range(256), k=chance.randrange(20))),
        "color": chance.choice(["RED", "GREEN", "A_LONG_NAME"]),
        "again": maybe("GREEN"),
        "hash": bytes(chance.choices(range(256), k=4)),
        "day": date(1970, 1, 1) + timedelta(days=chance.randrange(-10_000, 100_000)),
        "at": moment,
        "exact": maybe(moment + timedelta(microseconds=7)),
        "sum": Decimal(chance.randrange(-(10**29), 10**29)).scaleb(-2),
        "net": Decimal(chance.randrange(-(10**17), 10**17)).scaleb(-3),
        "nothing": None,
        "tags": [maybe(text()) for _ in range(chance.randrange(4))],
        "lines": [line() for _ in range(chance.randrange(3))],
        "extra": maybe({text(): line() for _ in range(2)}),
    }


def encoded(value: Any, schema: Any = SCHEMA, prefix: bytes = b"") -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return prefix + out.getvalue()


def decode(values: Sequence[bytes | None], **options: str) -> tuple[list[dict[str, Any]], list[str | None]]:
    decoded = value_decoder("avro", **options).decode(pa.array(values, pa.binary()))
    decoded.columns.validate(full=True)
    return decoded.columns.to_pylist(maps_as_pydicts="strict"), decoded.errors.to_pylist()


def test_values_become_columns() -> None:
    chance = random.Random(1)
    orders = [order(chance) for _ in range(300)]
    rows, errors = decode([None, *map(encoded, orders)], schema=json.dumps(SCHEMA))
    assert rows == [dict.fromkeys(orders[0]), *orders]
    assert errors == [None] * 301


@pytest.mark.parametrize("mode", ["compiled", pytest.param("checked", marks=pytest.mark.long)])
def test_compiled_kernels_do_the_same(mode: str) -> None:
    program = (
        "from tests.unit.values.avro.test_avro import *\n"
        "test_values_become_columns()\n"
        "test_a_value_that_is_cut_or_changed_spoils_no_other()\n"
    )
    subprocess.run([sys.executable, "-c", program], env={**os.environ, "OCTAVO_KERNELS": mode}, check=True)


def test_a_value_that_is_cut_or_changed_spoils_no_other() -> None:
    chance = random.Random(2)
    sound = order(chance)
    value = encoded(sound)
    broken = [value[:size] for size in range(len(value))] + [value + b"\0"]
    for _ in range(300):
        changed = bytearray(value)
        changed[chance.randrange(len(value))] = chance.randrange(256)
        broken.append(bytes(changed))
    values = [each for pair in zip(broken, [value] * len(broken), strict=True) for each in pair]
    rows, errors = decode(values, schema=json.dumps(SCHEMA))
    assert rows[1::2] == [sound] * len(broken)
    assert errors[1::2] == [None] * len(broken)
    assert all(errors[: len(value) * 2 : 2])
    assert "goes on after" in str(errors[len(value) * 2])
    parsed = fastavro.parse_schema(SCHEMA)
    for each, row, error in zip(broken, rows[::2], errors[::2], strict=True):
        source = io.BytesIO(each)
        try:
            expected: Any = fastavro.schemaless_reader(source, parsed, None)
            whole = source.tell() == len(each)
        except Exception:  # whatever fastavro finds wrong
            continue  # we may be as strict or stricter, never less: see the next assertions
        if error is None:
            price = {"price": 0.0 if row["price"] != row["price"] else row["price"]}  # NaN does not equal itself
            expected["price"] = 0.0 if expected["price"] != expected["price"] else expected["price"]
            assert (row | price, whole) == (expected, True)


def test_lists_in_blocks_with_sizes_are_read() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": {"type": "array", "items": "int"}}]}
    value = bytes([3, 4, 2, 4, 2, 6, 0])  # -2 items, 2 bytes: 1, 2; 1 item: 3
    rows, errors = decode([value, bytes([0xFF] * 9 + [1]), bytes([0x80, 0x80, 4])], schema=json.dumps(schema))
    assert rows[0] == {"a": [1, 2, 3]}
    assert errors[0] is None
    assert all(errors[1:])


def test_a_registrys_wire_format(tmp_path: Path) -> None:
    def record(*fields: tuple[Any, ...]) -> dict[str, Any]:
        return {
            "type": "record",
            "name": "R",
            "fields": [
                {"name": name, "type": kind, **({"default": default[0]} if default else {})}
                for name, kind, *default in fields
            ],
        }

    first = record(("id", "int"), ("old", "string"), ("x", "float"))
    second = record(("id", "long"), ("x", "double"), ("more", ["null", "string"], None), ("level", "int", 5))
    other = record(("id", "string"))
    for number, schema in ((1, first), (2, second), (900, other)):
        (tmp_path / f"{number}.avsc").write_text(json.dumps(schema))
    values = [
        encoded({"id": 1, "old": "o", "x": 0.5}, first, b"\0\0\0\0\1"),
        encoded({"id": 2, "x": 0.1, "more": "m", "level": 7}, second, b"\0\0\0\0\2"),
        None,
        encoded({"id": "3"}, other, b"\0\0\0\3\x84"),
        encoded({"id": 4, "old": "o", "x": 1.5}, first, b"\0\0\0\0\1"),
        b"\0\0\0\0\7x",
        b"\1\0\0\0\1x",
        b"\0\0",
        b"\0\0\0\0\2",
    ]
    decoder = value_decoder("avro", schema=json.dumps(second), schema_folder=str(tmp_path))
    for each in (decoder, pickle.loads(pickle.dumps(decoder)), decoder_from_text(decoder.to_text())):
        decoded = each.decode(pa.array(values, pa.binary()))
        nothing = dict.fromkeys(["id", "x", "more", "level"])
        assert decoded.columns.to_pylist() == [
            {"id": 1, "x": 0.5, "more": None, "level": 5},
            {"id": 2, "x": 0.1, "more": "m", "level": 7},
            nothing,
            nothing,
            {"id": 4, "x": 1.5, "more": None, "level": 5},
            *[nothing] * 4,
        ]
        assert [error and error[:24] for error in decoded.errors.to_pylist()] == [
            *[None] * 3,
            "the schema with the id 900: the Avro field id was written as string"[:24],
            None,
            "there is no schema with the id 7"[:24],
            *["the value does not begin with a zero byte"[:24]] * 2,
            "the value ends too early"[:24],
        ]


@pytest.mark.parametrize(
    "schema",
    [
        "",
        '"string"',
        '{"type": "array", "items": "int"}',
        '{"type": "record", "name": "R", "fields": []}',
        '{"type": "record", "name": "R"}',
        '{"type": "record", "name": 5, "fields": []}',
        '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "unknown"}]}',
        '{"type": "record", "name": "R", "fields": [{"name": "a", "type": ["null", "R"]}]}',
        '{"type": "record", "name": "R", "fields": [{"name": "a", "type": ["int", "string"]}]}',
        '{"type": "record", "name": "R", "fields": [{"name": "a", "type": ["null", "int", "string"]}]}',
        '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}, {"name": "a", "type": "int"}]}',
        '{"type": "record", "name": "R", "fields": [{"name": "a", "type": {"type": "array", "items": "null"}}]}',
        '{"type": "record", "name": "R", "fields": [{"name": "a", "type": {"type": "fixed", "name": "F", "size": 0}}]}',
    ],
)
def test_what_cannot_be_columns_is_refused_in_one_sentence(schema: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        value_decoder("avro", schema=schema)
    assert "\n" not in str(caught.value)


def test_a_folder_without_schemas_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.avsc").write_text("{}")
    with pytest.raises(InvalidInput, match=r"there are no schemas in .*: no file such as 17.avsc"):
        value_decoder("avro", schema_folder=str(tmp_path))
    with pytest.raises(InvalidInput, match="need schema or schema_folder"):
        value_decoder("avro")
