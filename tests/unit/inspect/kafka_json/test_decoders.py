"""The texts of the record decoders, where no Kafka is needed to know them; `tests/kafka` compares all with Kafka."""

from __future__ import annotations

import math

import pytest

from octavo.errors import BadRecord
from octavo.inspect.kafka_json import RECORD_DECODERS
from octavo.inspect.kafka_json.jackson import java_double, to_text
from octavo.schemas.consumer_offsets.offsets import OffsetCommitKey, OffsetCommitValue
from octavo.schemas.metadata.progress import NoOpRecord
from octavo.schemas.metadata.serde import write_metadata
from octavo.schemas.versioned import write_key, write_value

KEY = write_key(OffsetCommitKey(group="g", topic="t", partition=3))
VALUE = write_value(OffsetCommitValue(offset=7, metadata="m", commit_timestamp=9), 4)


def test_a_committed_offset_is_printed_as_json() -> None:
    key, payload = RECORD_DECODERS["offsets-decoder"](5, KEY, VALUE)
    assert key == '{"type":"1","data":{"group":"g","topic":"t","partition":3}}'
    assert payload == '{"version":"4","data":{"offset":7,"leaderEpoch":-1,"metadata":"m","commitTimestamp":9}}'
    assert RECORD_DECODERS["offsets-decoder"](5, KEY, None).payload == "<DELETE>"


def test_what_cannot_be_decoded_is_said_in_place_of_the_key() -> None:
    decode = RECORD_DECODERS["offsets-decoder"]
    assert decode(5, b"\x00\x63", VALUE) == ("Unknown record type 99 at offset 5, skipping.", None)
    reason = "Could not read record with version 4 from value's buffer due to: null."
    assert decode(5, KEY, VALUE[:7]) == (f"Error at offset 5, skipping. {reason}", None)


def test_a_record_without_a_key_ends_the_tool() -> None:
    with pytest.raises(BadRecord, match="at offset 5 using the specified decoder"):
        RECORD_DECODERS["share-group-state-decoder"](5, None, VALUE)


def test_a_record_of_metadata_has_no_key() -> None:
    decode = RECORD_DECODERS["cluster-metadata-decoder"]
    assert decode(5, b"key", write_metadata(NoOpRecord())) == (None, '{"type":"NO_OP_RECORD","version":0,"data":{}}')
    assert decode(5, None, None) == (None, "Error at 5, skipping. Error while reading frame version")


def test_json_has_the_characters_of_jackson() -> None:
    assert to_text({"ä": ['\x1f\n"\\/', True, None, 1]}) == r'{"ä":["\u001F\n\"\\/",true,null,1]}'
    numbers = [0.0, -0.0, -1.5, 1e300, 0.1, 123.0, 1e7, 9999999.0, 0.001, 9.9e-4, 12345678.9]
    texts = ["0.0", "-0.0", "-1.5", "1.0E300", "0.1", "123.0", "1.0E7", "9999999.0", "0.001", "9.9E-4", "1.23456789E7"]
    assert list(map(java_double, numbers)) == texts
    assert list(map(java_double, [math.inf, -math.inf, math.nan])) == ['"Infinity"', '"-Infinity"', '"NaN"']
