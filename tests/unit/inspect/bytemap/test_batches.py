"""Maps of batches that Kafka wrote, and of what is left of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from octavo.errors import InvalidInput
from octavo.inspect import Field, Role, explain
from octavo.records import BatchBuilder, Codec, read_batches
from octavo.records.compression import decompress
from octavo.records.layout import BATCH_HEADER, MESSAGE_V0, MESSAGE_V1, Layout
from tests.golden import files

WHOLE = [name for name in files.names() if name != "segment-torn"]


def leaves(fields: Iterable[Field], *, inflated: bool = False) -> list[Field]:
    return [field for field in fields if not field.is_group and field.inflated == inflated]


def named(fields: Iterable[Field], name: str) -> list[Field]:
    return [field for field in fields if field.name == name]


def problems(fields: Iterable[Field]) -> list[tuple[str, str]]:
    return [(field.name, field.problem) for field in fields if field.problem]


def assert_tiles(fields: list[Field], data: bytes, start: int = 0) -> None:
    """Every byte of `data` is in exactly one of the fields, in order, and each has its bytes."""
    at = start
    for field in fields:
        assert field.position == at, field
        assert field.size == len(field.data)
        at += field.size
    assert at == start + len(data)
    assert b"".join(field.data for field in fields) == data


@pytest.mark.parametrize("name", WHOLE)
def test_the_fields_tile_every_batch_and_what_it_decompresses_to(name: str) -> None:
    golden = files.load(name)
    for batch in read_batches(golden.data):
        fields = explain(golden.data, batch.position)
        assert_tiles(leaves(fields), bytes(batch.data), batch.position)
        assert problems(fields) == []
        if batch.is_compressed:
            stream = bytes(next(f.data for f in fields if f.value.startswith("compressed: ")))
            assert_tiles(leaves(fields, inflated=True), bytes(decompress(batch.codec, stream, magic=batch.magic)))


@pytest.mark.parametrize("name", WHOLE)
def test_groups_hold_the_fields_that_follow_them_at_a_greater_depth(name: str) -> None:
    golden = files.load(name)
    fields = explain(golden.data)
    for index, group in enumerate(fields):
        if not group.is_group:
            continue
        held = []
        for field in fields[index + 1 :]:
            if field.depth <= group.depth:
                break
            held.append(field)
        assert_tiles(leaves(held, inflated=group.inflated), bytes(group.data), group.position)


@pytest.mark.parametrize("name", WHOLE)
def test_offsets_keys_and_values_are_those_that_kafka_reads(name: str) -> None:
    golden = files.load(name)
    found = [field for batch in read_batches(golden.data) for field in explain(golden.data, batch.position)]
    said = [field.value.rpartition("offset ")[2] for field in found if field.name.startswith(("record ", "message"))]
    assert said == [str(record.offset) for record in golden.records]
    if not any(batch.control for batch in golden.batches):
        keys = [bytes(field.data) for field in found if field.name == "key" and not _is_in_header(field, found)]
        assert keys == [record.key for record in golden.records if record.key]
        header_keys = [field.value for field in found if field.name == "key" and _is_in_header(field, found)]
        assert header_keys == [f'"{key}"' for record in golden.records for key, _ in record.headers if key]


def _is_in_header(field: Field, fields: list[Field]) -> bool:
    before = [other for other in fields[: fields.index(field)] if other.depth < field.depth]
    return before[-1].name.startswith("header ")


@pytest.mark.parametrize(
    ("name", "layout"), [("v0-none", MESSAGE_V0), ("v1-gzip", MESSAGE_V1), ("commit", BATCH_HEADER)]
)
def test_headers_are_named_as_their_layout_names_them(name: str, layout: Layout[Any]) -> None:
    places = list(layout.places())
    first = leaves(explain(files.load(name).data))[: len(places)]
    assert [(field.name, field.position, field.size) for field in first] == places


def test_values_are_said_in_words() -> None:
    fields = {field.name: field.value for field in explain(files.load("commit").data)}
    assert fields["attributes"] == "0x00 (unused)"
    header = {field.name: field.value for field in explain(files.load("commit").data)[:14]}
    assert header["attributes"] == "0x0030 (uncompressed, CreateTime, transactional, control)"
    assert header["crc"] == "0xad320ccb (right)"
    assert header["base_timestamp_ms"] == "1700000000000 (2023-11-14 22:13:20)"
    assert header["base_sequence"] == "-1 (none)"
    assert fields["type"] == "1 (COMMIT)"
    assert fields["value"] == "type COMMIT, version 0, coordinatorEpoch 7"


def test_flags_and_times_of_special_batches_are_said() -> None:
    horizon = {field.name: field.value for field in explain(files.load("v2-delete-horizon").data)[:14]}
    assert horizon["base_timestamp_ms"] == "1700086400000 (delete horizon 2023-11-15 22:13:20)"
    append_time = explain(files.load("v2-lz4-append-time").data)
    assert named(append_time, "max_timestamp_ms")[0].value == "1700000005000 (all records: 2023-11-14 22:13:25)"
    assert named(append_time, "timestamp_delta")[1].value == "7 (not used)"
    extremes = explain(files.load("v2-extreme-timestamps").data)
    assert named(extremes, "timestamp_delta")[0].value == "0 (out of the calendar)"


@pytest.mark.parametrize("name", ["v0-none", "v1-gzip-nulls", "v2-none-headers", "v2-zstd", "kraft-voters"])
def test_any_flipped_byte_still_gives_a_map_of_all_bytes_that_says_what_is_wrong(name: str) -> None:
    golden = files.load(name).data
    size = next(iter(read_batches(golden))).size
    unchecked = range(12) if name.startswith(("v0", "v1")) else range(16)  # offset, length and epoch
    for position in range(size):
        for bit in (0x01, 0x80):
            data = bytearray(golden[:size])
            data[position] ^= bit
            fields = explain(data)
            mapped = sum(field.size for field in leaves(fields))
            assert_tiles(leaves(fields), bytes(data[:mapped]))
            assert problems(fields) or position in unchecked


@pytest.mark.parametrize("name", ["v0-none", "v1-gzip", "v2-none-headers", "v2-zstd", "commit"])
def test_any_cut_gives_a_map_of_what_is_left_that_says_so(name: str) -> None:
    golden = files.load(name).data
    batch = next(iter(read_batches(golden)))
    for size in range(1, batch.size):
        fields = explain(golden[:size])
        assert_tiles(leaves(fields), golden[:size])
        assert fields[0].problem == "the bytes end inside it"


def test_nothing_is_mapped_at_the_end_and_nothing_is_there_behind_it() -> None:
    data = files.load("commit").data
    assert explain(data, len(data)) == []
    for position in (-1, len(data) + 1):
        with pytest.raises(InvalidInput):
            explain(data, position)


# Damage that the checksum of the whole does not name. `explain` looks on behind a wrong checksum.


def plain(count: int = 2) -> bytearray:
    builder = BatchBuilder()
    for n in range(count):
        builder.append(b"key", b"value", timestamp_ms=n, headers=[("h", b"1")])
    return bytearray(builder.build())


def without_crc(fields: list[Field]) -> list[tuple[str, str]]:
    return [(name, problem) for name, problem in problems(fields) if name != "crc"]


def test_a_broken_record_is_one_field_and_the_map_goes_on_behind_it() -> None:
    data = plain()
    at = named(explain(data), "key_length")[0].position
    data[at] = 0x7E  # 63 bytes
    fields = explain(data)
    assert without_crc(fields) == [("record 0", "a key's length passes the end of its record")]
    assert [field.value for field in named(fields, "record 1")] == ["offset 1"]


def test_a_record_with_an_impossible_length_is_the_last_that_is_mapped() -> None:
    data = plain()
    data[BATCH_HEADER.size] = 0x7F  # -64
    fields = explain(data)
    assert without_crc(fields)[0] == ("record 0", "a record's length is negative or passes the end of its batch")
    assert named(fields, "record 0")[0].size == len(data) - BATCH_HEADER.size


def test_broken_headers_are_one_field() -> None:
    data = plain()
    at = named(explain(data), "header_count")[0].position
    data[at + 1] = 0x7E
    assert without_crc(explain(data)) == [
        ("header 0", "a header key's length is negative or passes the end of its record")
    ]


@pytest.mark.parametrize(
    ("count", "problem"),
    [
        (1, ("unreadable", "bytes are left after the last record that the batch counts")),
        (3, ("record 2", "the batch counts 3 records and ends here")),
        (-1, ("records", "the count of records is negative or more than the batch has room for")),
        (2**31 - 1, ("records", "the count of records is negative or more than the batch has room for")),
    ],
)
def test_a_wrong_count_is_named(count: int, problem: tuple[str, str]) -> None:
    data = plain()
    data[BATCH_HEADER.at("record_count") : BATCH_HEADER.size] = count.to_bytes(4, "big", signed=True)
    fields = explain(data)
    assert without_crc(fields)[0] == problem
    assert_tiles(leaves(fields), bytes(data))


def test_bytes_behind_an_empty_batch_are_nobodys() -> None:
    data = plain()
    data[BATCH_HEADER.at("record_count") : BATCH_HEADER.size] = bytes(4)
    assert [field.name for field in leaves(explain(data))][-2:] == ["record_count", "unread"]


def test_a_stream_that_does_not_decompress_is_one_field() -> None:
    builder = BatchBuilder(codec=Codec.GZIP)
    builder.append(None, b"v" * 100, timestamp_ms=0)
    data = bytearray(builder.build())
    data[BATCH_HEADER.size] ^= 0xFF
    fields = explain(data)
    assert [name for name, _ in without_crc(fields)] == ["records"]
    assert fields[-1].name == "records"


def test_a_stream_beyond_the_limit_is_refused() -> None:
    fields = explain(files.load("v1-gzip").data, max_decompressed=100)
    assert [name for name, _ in problems(fields)] == ["messages"]
    fields = explain(files.load("v2-zstd").data, max_decompressed=100)
    assert "limit of 100 bytes" in problems(fields)[0][1]


@pytest.mark.parametrize(
    ("position", "byte", "name", "size"),
    [(8, 0xFF, "length", 78 - 12), (16, 9, "magic", 78 - 17), (11, 20, "length", 78 - 12)],
)
def test_without_a_believable_length_or_magic_the_rest_is_one_field(
    position: int, byte: int, name: str, size: int
) -> None:
    data = bytearray(files.load("commit").data)
    data[position] = byte
    fields = explain(data)
    assert [field for field, _ in problems(fields)] == [name]
    assert (fields[-1].name, fields[-1].size) == ("unreadable", size)


def test_a_control_record_with_a_wrong_key_or_value_is_named() -> None:
    data = bytearray(files.load("commit").data)
    key = named(explain(data), "version")[0].position
    data[key] = 0x80
    assert without_crc(explain(data)) == [
        ("key", "a control record's key has version -32768"),
        ("value", "a control record's key has version -32768"),
    ]
    data[key] = 0
    data[key + 3] = 99
    assert named(explain(data), "value")[0].value == "type UNKNOWN, typeId 99"


@pytest.mark.parametrize("name", files.names())
def test_every_field_has_a_meaning_and_a_role(name: str) -> None:
    golden = files.load(name)
    for batch in read_batches(golden.data):
        for field in explain(golden.data, batch.position):
            assert field.meaning.endswith("."), field
            assert (field.role is Role.GROUP) == field.is_group, field


def test_the_end_of_a_transaction_is_mapped_field_by_field() -> None:
    fields = explain(files.load("commit").data)
    assert [(field.name, field.value) for field in leaves(fields)][-3:] == [
        ("version", "0"),
        ("coordinator_epoch", "7"),
        ("header_count", "0"),
    ]


def test_positions_are_those_of_the_file() -> None:
    fields = explain(files.load("v2-gzip").data, origin=1000)
    assert leaves(fields)[1].position == 1008
    assert leaves(fields, inflated=True)[0].position == 0


def test_only_some_records_are_mapped_and_the_others_are_one_field() -> None:
    data = plain(10)
    fields = explain(data, max_records=2, offset=4)
    shown = [field.name for field in fields if field.name.startswith("record ")]
    assert shown == ["record 4", "record 5"]
    assert [field.value for field in named(fields, "more records")] == [
        "4 not shown one by one",
        "4 not shown one by one",
    ]
    assert_tiles(leaves(fields), bytes(data))


def test_a_broken_record_that_is_not_shown_is_still_named() -> None:
    data = plain(3)
    at = named(explain(data), "key_length")[2].position
    data[named(explain(data), "key_length")[4].position] = 0x7E  # of the third record, behind a header's
    assert at > 0
    fields = explain(data, max_records=1)
    assert [name for name, _ in without_crc(fields)] == ["more records"]
    assert "a key's length passes the end of its record" in (fields[-1].problem or "")


def test_the_messages_of_a_wrapper_are_bounded_too() -> None:
    golden = files.load("v1-gzip")
    fields = explain(golden.data, max_records=1)
    assert len(named(fields, "message")) == 1
    (rest,) = named(fields, "more messages")
    assert rest.value == f"{len(golden.records) - 1} not shown one by one"


def test_as_many_headers_of_a_record_are_mapped_as_there_may_be_records() -> None:
    builder = BatchBuilder()
    builder.append(None, None, timestamp_ms=0, headers=[(str(n), b"") for n in range(5)])
    data = builder.build()
    fields = explain(data, max_records=2)
    assert [field.name for field in fields if "header " in field.name] == ["header 0", "header 1"]
    assert named(fields, "more headers")[0].value == "3 not shown one by one"
    assert_tiles(leaves(fields), data)


def test_what_a_terminal_would_obey_is_escaped() -> None:
    builder = BatchBuilder()
    builder.append(b"\x1b[2J", b"\x07", timestamp_ms=0, headers=[("\x1b]0;title\x07", b"\x9b")])
    assert all(field.value.isprintable() for field in explain(builder.build()))
