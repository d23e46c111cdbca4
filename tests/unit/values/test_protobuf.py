"""Protobuf values become columns."""

from __future__ import annotations

import base64
import json
import pickle
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory, timestamp_pb2

from octavo.errors import InvalidInput
from octavo.values import value_decoder

TYPES = descriptor_pb2.FieldDescriptorProto
FIELDS = [
    ("a", TYPES.TYPE_INT64, ""),
    ("b", TYPES.TYPE_INT32, ""),
    ("c", TYPES.TYPE_UINT32, ""),
    ("d", TYPES.TYPE_FIXED64, ""),
    ("e", TYPES.TYPE_DOUBLE, ""),
    ("f", TYPES.TYPE_FLOAT, ""),
    ("g", TYPES.TYPE_STRING, ""),
    ("h", TYPES.TYPE_BYTES, ""),
    ("i", TYPES.TYPE_BOOL, ""),
    ("j", TYPES.TYPE_ENUM, ".shop.Color"),
    ("k", TYPES.TYPE_MESSAGE, ".shop.Line"),
    ("l", TYPES.TYPE_MESSAGE, ".google.protobuf.Timestamp"),
    ("*m", TYPES.TYPE_MESSAGE, ".shop.Line"),
    ("*n", TYPES.TYPE_SINT32, ""),
    ("*o", TYPES.TYPE_MESSAGE, ".shop.Order.OEntry"),
]


def described(fields: list[tuple[str, Any, str]] = FIELDS) -> descriptor_pb2.FileDescriptorSet:
    """A descriptor set as protoc writes it."""
    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    color = file.enum_type.add(name="Color")
    for number, name in enumerate(["RED", "GREEN"]):
        color.value.add(name=name, number=number)
    line = file.message_type.add(name="Line")
    line.field.add(name="x", number=1, type=TYPES.TYPE_INT32, label=TYPES.LABEL_OPTIONAL)
    line.field.add(name="y", number=2, type=TYPES.TYPE_STRING, label=TYPES.LABEL_REPEATED)
    order = file.message_type.add(name="Order")
    for number, (name, kind, message) in enumerate(fields, 1):
        label = TYPES.LABEL_REPEATED if name.startswith("*") else TYPES.LABEL_OPTIONAL
        order.field.add(name=name.lstrip("*"), number=number, type=kind, label=label, type_name=message or None)
    entry = order.nested_type.add(name="OEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=TYPES.TYPE_STRING, label=TYPES.LABEL_OPTIONAL)
    entry.field.add(name="value", number=2, type=TYPES.TYPE_INT64, label=TYPES.LABEL_OPTIONAL)
    timestamps = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(timestamps)
    return descriptor_pb2.FileDescriptorSet(file=[timestamps, file])


def text_of(files: descriptor_pb2.FileDescriptorSet) -> str:
    return base64.b64encode(files.SerializeToString()).decode()


def encoded(value: dict[str, Any]) -> bytes:
    pool = descriptor_pool.DescriptorPool()
    for file in described().file:
        pool.Add(file)
    kind = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))
    written: bytes = json_format.Parse(json.dumps(value), kind(), descriptor_pool=pool).SerializeToString()
    return written


def test_values_become_columns() -> None:
    full = {
        "a": -(2**40),
        "b": -5,
        "c": 2**32 - 1,
        "d": 2**64 - 1,
        "e": 0.1,
        "f": 0.5,
        "g": "ä",
        "h": "aGVsbG8=",
        "i": True,
        "j": "GREEN",
        "k": {"x": 7, "y": ["p", ""]},
        "l": "2026-11-05T07:30:01.123456789Z",
        "m": [{}, {"x": 1}],
        "n": [1, -1],
        "o": {"u": 5, "v": 0},
    }
    values = [encoded(full), None, b"", b"\xff", encoded({"j": 9, "b": 0})]
    decoder = value_decoder("protobuf", schema=text_of(described()), message="shop.Order")
    decoded = pickle.loads(pickle.dumps(decoder)).decode(pa.array(values, pa.binary()))
    decoded.columns.validate(full=True)
    rows = decoded.columns.to_pylist(maps_as_pydicts="strict")
    assert rows[0] == {
        "a": -(2**40),
        "b": -5,
        "c": 2**32 - 1,
        "d": Decimal(2**64 - 1),
        "e": 0.1,
        "f": 0.5,
        "g": "ä",
        "h": b"hello",
        "i": True,
        "j": "GREEN",
        "k": {"x": 7, "y": ["p", ""]},
        "l": datetime(2026, 11, 5, 7, 30, 1, 123456, tzinfo=UTC),
        "m": [{"x": None, "y": []}, {"x": 1, "y": []}],
        "n": [1, -1],
        "o": {"u": 5, "v": 0},
    }
    nothing = dict.fromkeys("abcdefghijklmno")
    empty = nothing | {"m": [], "n": [], "o": {}}
    assert rows[1:] == [nothing, empty, nothing, empty | {"j": "9"}]
    errors = decoded.errors.to_pylist()
    assert [error is None for error in errors] == [True, True, True, False, True]
    assert str(errors[3]).startswith("the value is no Protobuf message shop.Order: ")


@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
def test_a_string_that_is_not_utf8_is_rejected(syntax: str) -> None:
    file = descriptor_pb2.FileDescriptorProto(name="a.proto", package="shop", syntax=syntax)
    line = file.message_type.add(name="Line")
    line.field.add(name="x", number=1, type=TYPES.TYPE_STRING, label=TYPES.LABEL_OPTIONAL)
    line.field.add(name="y", number=2, type=TYPES.TYPE_STRING, label=TYPES.LABEL_REPEATED)
    schema = text_of(descriptor_pb2.FileDescriptorSet(file=[file]))
    values = [b"\x0a\x02\xff\xfe", b"\x0a\x02\xc3\xa4", b"\x12\x01a\x12\x01\xff", b"\x0a\x00"]
    decoded = value_decoder("protobuf", schema=schema, message="shop.Line").decode(pa.array(values, pa.binary()))
    empty = "" if syntax == "proto2" else None
    assert [list(row.values()) for row in decoded.columns.to_pylist()] == [
        [None, None],
        ["ä", []],
        [None, None],
        [empty, []],
    ]
    told = [error and error[:42] for error in decoded.errors.to_pylist()]
    assert told == ["the value is no Protobuf message shop.Line", None] * 2


def test_what_is_no_descriptor_set_is_refused() -> None:
    sound = text_of(described())
    itself = text_of(described([("a", TYPES.TYPE_MESSAGE, ".shop.Order")]))
    without_imports = descriptor_pb2.FileDescriptorSet(file=described().file[1:])
    for schema, message, told in (
        ("???", "shop.Order", "is no descriptor set"),
        (base64.b64encode(b"\xff\xff").decode(), "shop.Order", "is no descriptor set"),
        (sound, "shop.Missing", "has no message 'shop.Missing': it has google.protobuf.Timestamp, shop.Line"),
        (text_of(without_imports), "shop.Order", "descriptor set"),
        (itself, "shop.Order", "contains itself"),
    ):
        with pytest.raises(InvalidInput, match=told):
            value_decoder("protobuf", schema=schema, message=message)
    with pytest.raises(InvalidInput, match="values of the format protobuf need message"):
        value_decoder("protobuf", schema=sound)
