"""Values that are text, and what all decoders have in common."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from octavo.errors import InvalidInput
from octavo.values import decoder_from_text, infer_decoder, value_decoder


def test_text_is_one_column() -> None:
    decoded = value_decoder("string").decode(pa.array([b"a", None, b"", "ä€😀".encode()], pa.binary()))
    assert decoded.columns.to_pydict() == {"text": ["a", None, "", "ä€😀"]}
    assert decoded.errors.to_pylist() == [None] * 4


def test_a_value_that_is_not_utf8_has_an_error_and_spoils_no_other() -> None:
    decoded = value_decoder("string").decode(pa.array([b"a", b"ab\xff", None, b"b"], pa.binary()))
    assert decoded.columns.to_pydict() == {"text": ["a", None, None, "b"]}
    assert decoded.errors.to_pylist() == [None, "the value is not UTF-8: invalid start byte at byte 2", None, None]


def test_a_part_of_a_column_is_decoded_like_a_whole_one() -> None:
    values = pa.array([b"a", b"\xff", b"c", b"d"], pa.binary()).slice(2)
    assert value_decoder("string").decode(values).columns.to_pydict() == {"text": ["c", "d"]}


def test_a_decoder_survives_text_and_pickle() -> None:
    decoder = infer_decoder("string", pa.array([b"a"]))
    for copy in (decoder_from_text(decoder.to_text()), pickle.loads(pickle.dumps(decoder))):
        assert copy == decoder
        assert hash(copy) == hash(decoder)
        assert copy.schema == decoder.schema


@pytest.mark.parametrize("text", ["", "1", "[]", '{"format": 1}', '{"format": "xml"}', "{}"])
def test_other_texts_describe_no_decoder(text: str) -> None:
    with pytest.raises(InvalidInput):
        decoder_from_text(text)


def test_what_a_format_does_not_take_is_refused() -> None:
    with pytest.raises(InvalidInput, match="values of the format string take no schema"):
        value_decoder("string", schema="a INT")
    with pytest.raises(InvalidInput, match="there is no format 'xml' of values: there are "):
        value_decoder("xml")
