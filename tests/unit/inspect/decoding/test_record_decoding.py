"""Keys and values that are decoded for a dump."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from octavo.errors import InvalidInput
from octavo.inspect.decoding.record_decoding import INTERNAL_TOPICS, DecodedRecord, RecordDecoding, decoding_of
from octavo.inspect.decoding.value_formats import format_decoder
from octavo.schemas.consumer_offsets.offsets import OffsetCommitKey, OffsetCommitValue
from octavo.schemas.metadata.progress import NoOpRecord
from octavo.schemas.metadata.serde import write_metadata
from octavo.schemas.versioned import write_key, write_value
from tests.plugin import install

KEY = write_key(OffsetCommitKey(group="g", topic="t", partition=3))
VALUE = write_value(OffsetCommitValue(offset=7, metadata="m", commit_timestamp=9), 4)


def decoded(decoding: RecordDecoding | None, key: bytes | None, value: bytes | None) -> tuple[Any, Any, str | None]:
    assert decoding is not None
    [record] = decoding.decode([key], [value])
    members = json.loads("{" + record.members[1:] + "}")
    return members["decodedKey"], members["decodedValue"], members.get("decodeError")


def test_internal_topics_are_known_by_their_folders(tmp_path: Path) -> None:
    for topic in INTERNAL_TOPICS:
        assert decoding_of(tmp_path / f"{topic}-3" / "00000000000000000000.log") is not None
        assert decoding_of(tmp_path / f"{topic}-3" / "00000000000000000000.log.deleted") is not None
        assert decoding_of(tmp_path / f"{topic}-3.{'0' * 32}-delete" / "00000000000000000000.log") is not None
        assert decoding_of(tmp_path / f"{topic}-3" / "00000000000000000000.index") is None
    assert decoding_of(tmp_path / "orders-0" / "00000000000000000000.log") is None
    assert decoding_of(tmp_path / "__consumer_offsets" / "00000000000000000000.log") is None
    assert decoding_of(tmp_path / "bootstrap.checkpoint") is not None


def test_a_committed_offset_has_both_parts(tmp_path: Path) -> None:
    offsets = decoding_of(tmp_path / "__consumer_offsets-3" / "00000000000000000000.log")
    key, value, error = decoded(offsets, KEY, VALUE)
    assert key == {"type": "1", "data": {"group": "g", "topic": "t", "partition": 3}}
    assert value["data"]["offset"] == 7
    assert error is None
    assert decoded(offsets, KEY, None) == (key, None, None)


def test_what_cannot_be_decoded_has_a_reason(tmp_path: Path) -> None:
    offsets = decoding_of(tmp_path / "__consumer_offsets-3" / "00000000000000000000.log")
    key, value, error = decoded(offsets, KEY, VALUE[:9])
    assert key["type"] == "1"
    assert (value, error) == (None, "Could not read record with version 4 from value's buffer due to: null.")
    assert decoded(offsets, b"\x00\x63", VALUE)[2] == "Kafka 4.3 knows no record type 99 in this topic"
    assert decoded(offsets, None, VALUE)[2] == "the record has no key, which would say what it is"


def test_metadata_has_only_a_value(tmp_path: Path) -> None:
    metadata = decoding_of(tmp_path / "__cluster_metadata-0" / "00000000000000000000.log")
    node = {"type": "NO_OP_RECORD", "version": 0, "data": {}}
    assert decoded(metadata, None, write_metadata(NoOpRecord())) == (None, node, None)
    assert decoded(metadata, None, b"") == (None, None, "Error while reading frame version")


def test_json_without_a_schema_is_taken_as_it_is() -> None:
    texts, errors = format_decoder("json")(
        [b' {"a":1.10,\r\n"b":"\\u00e4\\n"}\n', None, b"{", b"\xff", b"NaN", b"[" * 10**6]
    )
    assert texts == ['{"a":1.10, "b":"\\u00e4\\n"}', *[None] * 5]
    assert [error is None for error in errors] == [True, True, False, False, False, False]
    assert errors[4] == "no JSON: NaN is no number in JSON"


def test_formats_have_the_columns_of_exports() -> None:
    texts, errors = format_decoder("json", schema="n BIGINT, at TIMESTAMP, d DECIMAL(4,2), f DOUBLE")(
        [b'{"n":1,"at":"2026-11-16T03:00:00Z","d":1.5,"f":"NaN"}', None, b"{"]
    )
    first = json.loads(str(texts[0]))
    assert first == {"n": 1, "at": "2026-11-16T03:00:00+00:00", "d": "1.50", "f": "nan"}
    assert texts[1:] == [None, None]
    assert errors[2] is not None
    assert format_decoder("string")(["ä☃".encode(), b"\xff", None]).texts == ['"ä☃"', None, None]


def test_key_and_value_have_formats_of_their_own() -> None:
    both = RecordDecoding(format_decoder("string"), format_decoder("json"))
    assert both.decode([b"k", b"\xff"], [b"[]", b"]"]) == [
        DecodedRecord('"k"', "[]", None),
        DecodedRecord(None, None, both.decode([b"\xff"], [b"]"])[0].error),
    ]
    error = both.decode([b"\xff"], [b"]"])[0].error
    assert error is not None
    assert error.startswith("key: the value is not UTF-8")
    assert "; value: no JSON" in error


def test_a_format_of_another_package_works_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput, match="no format 'length'"):
        format_decoder("length", message="size")
    install(tmp_path, "octavo_test_length")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "octavo_test_length", raising=False)
    assert format_decoder("length", message="size")([b"abc", b"!"]) == (
        ['{"size":3}', None],
        [None, "the value is loud"],
    )


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("def decode(self, values):", "def decode(self, values):\n        1 / 0", "fails: ZeroDivisionError"),
        ("raw = values.to_pylist()", "raw = values.to_pylist()[1:]", "loses values, or adds some"),
        ("return LengthDecoder(message)", "return message", "is no octavo.values.ValueDecoder"),
        ("return LengthDecoder(message)", "return 1 / 0", "makes no decoder: ZeroDivisionError"),
    ],
)
def test_a_plugin_that_fails_gets_one_sentence(
    before: str, after: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "octavo_test_length")
    module = tmp_path / "octavo_test_length.py"
    module.write_text(module.read_text().replace(before, after))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "octavo_test_length", raising=False)
    with pytest.raises(InvalidInput, match=problem):
        format_decoder("length", message="size")([b"a", b"b"])


def test_tables_have_names_and_fields(tmp_path: Path) -> None:
    offsets = decoding_of(tmp_path / "__consumer_offsets-3" / "00000000000000000000.log")
    metadata = decoding_of(tmp_path / "bootstrap.checkpoint")
    assert offsets is not None
    assert metadata is not None
    whole, deleted, broken, unknown = offsets.decode([KEY, KEY, KEY, b"\x00\x63"], [VALUE, None, VALUE[:9], VALUE])
    name = "OffsetCommit group=g topic=t partition=3"
    assert whole.for_people() == (name, "offset=7 leaderEpoch=-1 metadata=m commitTimestamp=9")
    assert deleted.for_people() == broken.for_people() == (name, None)
    assert unknown.for_people() == (None, None)
    assert metadata.decode([None], [write_metadata(NoOpRecord())])[0].for_people() == ("NO_OP_RECORD", "")
    assert DecodedRecord('"k"', "[1]", None).for_people() == ('"k"', "[1]")
