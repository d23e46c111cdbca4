"""A schema that fits some values."""

from __future__ import annotations

import pyarrow as pa
import pytest

from octavo.errors import InvalidInput
from octavo.values import decoder_from_text, infer_decoder


def test_a_schema_is_inferred_once_and_kept_as_text() -> None:
    values = pa.array([b'{"b":1,"a":{"y":[1,null]}}', None, b"x", b'{"b":2.5,"c":"t","a":{"x":""}}'], pa.binary())
    decoder = infer_decoder("json", values)
    inner = pa.struct([("x", pa.string()), ("y", pa.list_(pa.field("element", pa.int64())))])
    assert decoder.schema.equals(pa.schema([("a", inner), ("b", pa.float64()), ("c", pa.string())]))
    kept = decoder_from_text(decoder.to_text())
    assert kept == decoder
    assert kept.decode(values).columns.column("b").to_pylist() == [1.0, None, None, 2.5]


def test_deep_values_end_as_text() -> None:
    deep = b'{"a":' * 100 + b"1" + b"}" * 100
    decoder = infer_decoder("json", pa.array([deep], pa.binary()))
    assert decoder_from_text(decoder.to_text()).schema == decoder.schema


def test_names_that_no_column_can_have_are_left_out() -> None:
    values = pa.array([rb'{"\ud800":1,"":2,"a":{"x\udfff":3},"\ud83d\ude00":{"\udc00\ud800":4,"b":5}}'], pa.binary())
    decoder = infer_decoder("json", values)
    assert decoder.schema == pa.schema([("\U0001f600", pa.struct([("b", pa.int64())]))])
    assert decoder_from_text(decoder.to_text()) == decoder
    assert decoder.decode(values).columns.to_pylist() == [{"\U0001f600": {"b": 5}}]


@pytest.mark.parametrize("values", [[], [None], [b"", b"[]", b"{}", b"1", b'{"a":']])
def test_nothing_can_be_inferred_from_nothing(values: list[bytes | None]) -> None:
    with pytest.raises(InvalidInput, match="no schema can be inferred"):
        infer_decoder("json", pa.array(values, pa.binary()))


def test_other_formats_do_not_say_what_they_are() -> None:
    with pytest.raises(InvalidInput, match="a schema cannot be inferred from avro values"):
        infer_decoder("avro", pa.array([b"x"]))
