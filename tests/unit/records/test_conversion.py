"""`convert`: what becomes of a mix of batches, what is lost, and what it takes. Kafka judges in tests/kafka."""

from __future__ import annotations

import tracemalloc
from array import array
from typing import Any

import pytest

from octavo.errors import BadLength, BadRecord, ChecksumMismatch, FormatError, InvalidInput, LimitExceeded, Unsupported
from octavo.records import (
    BatchBuilder,
    Codec,
    Header,
    Record,
    TimestampType,
    conversion,
    convert,
    empty_batch,
    end_transaction_marker,
    read_batches,
)
from octavo.records.layout import BATCH_HEADER, LENGTH_AT, Attributes
from octavo.records.legacy import Message, write_message
from octavo.records.v2 import write_batch, write_record
from tests.batches import build, generate

pytestmark = pytest.mark.usefixtures("each_kind_of_kernel")

TIME_MS = 1_700_000_000_000


def batch(first: int, count: int = 3, *, magic: int = 2, codec: Codec = Codec.NONE, **options: Any) -> bytes:
    builder = BatchBuilder(magic, base_offset=first, codec=codec, **options)
    for offset in range(first, first + count):
        builder.append(b"key %d" % offset, b"value" * 5, timestamp_ms=TIME_MS + offset)
    return builder.build()


def records(data: bytes) -> list[Record]:
    return [record for batch in read_batches(data) for record in batch]


def offsets(data: bytes) -> list[int]:
    return [record.offset for record in records(data)]


def every_kind() -> list[bytes]:
    """Batches of all magics and codecs, one after another."""
    kinds = [(magic, codec) for magic in (0, 1, 2) for codec in Codec if magic == 2 or codec != Codec.ZSTD]
    return [batch(3 * number, magic=magic, codec=codec) for number, (magic, codec) in enumerate(kinds)]


@pytest.mark.parametrize("magic", [None, 0, 1, 2])
@pytest.mark.parametrize("codec", [None, Codec.NONE, Codec.GZIP, Codec.LZ4])
def test_a_mix_keeps_its_records_and_their_order(magic: int | None, codec: Codec | None) -> None:
    pieces = every_kind()
    if codec is None and magic is not None and magic < 2:
        pieces.pop()  # zstd, which it cannot have
    data = b"".join(pieces)
    converted, _ = convert(data, magic=magic, codec=codec)
    before, after = records(data), records(converted)
    assert [(r.offset, r.key, r.value) for r in after] == [(r.offset, r.key, r.value) for r in before]
    if magic == 1:
        assert [r.timestamp_ms for r in after] == [r.timestamp_ms for r in before]
    found = list(read_batches(converted))
    assert magic is None or {batch.magic for batch in found} == {magic}
    assert codec is None or {batch.codec for batch in found} == {codec}


def test_what_needs_no_conversion_is_copied() -> None:
    data = b"".join(every_kind())
    assert convert(data) == (data, conversion.Lost())
    two = b"".join(every_kind()[-5:])
    assert convert(two, magic=2).data == two


@pytest.mark.parametrize("magic", [None, 0, 1, 2])
@pytest.mark.parametrize("codec", [None, Codec.GZIP])
def test_windows_make_no_difference(magic: int | None, codec: Codec | None, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = [
        (spec, build(spec))
        for spec, _ in generate(seed=5, count=250)
        if spec.codec != "zstd" and spec.base_offset < 2**40
    ]
    data = b"".join(data for _, data in wanted)
    whole = convert(data, magic=magic, codec=codec)
    for name, size in (("_TABLE_ROWS", 1), ("_TABLE_ROWS", 7), ("_WINDOW", 1), ("_WINDOW", 5000)):
        with monkeypatch.context() as patch:
            patch.setattr(conversion, name, size)
            assert convert(data, magic=magic, codec=codec) == whole


def test_what_is_lost_is_counted() -> None:
    producer: dict[str, Any] = {"producer_id": 5, "producer_epoch": 0}
    with_headers = BatchBuilder(base_offset=20, leader_epoch=3)
    with_headers.append(b"k", b"v", timestamp_ms=TIME_MS, headers=[Header("h", None), Header("h", b"")])
    with_headers.append(b"k", b"v", timestamp_ms=-1)
    data = b"".join(
        (
            batch(0, 2, base_sequence=0, **producer),
            batch(2, 2, delete_horizon_ms=TIME_MS),
            end_transaction_marker(True, offset=4, timestamp_ms=TIME_MS, coordinator_epoch=0, **producer),
            empty_batch(base_offset=5, last_offset=19, **producer, base_sequence=7),
            with_headers.build(),
            batch(30, 2, magic=1),
        )
    )
    down, lost = convert(data, magic=1)
    assert lost == conversion.Lost(
        control_batches=1, empty_batches=1, headers=1, producers=1, leader_epochs=1, delete_horizons=1
    )
    assert offsets(down) == [0, 1, 2, 3, 20, 21, 30, 31]
    assert convert(data, magic=0).lost == conversion.Lost(
        control_batches=1, empty_batches=1, headers=1, timestamps=7, producers=1, leader_epochs=1, delete_horizons=1
    )
    up, lost = convert(data, magic=2, codec=Codec.GZIP)
    assert not lost
    assert offsets(up) == offsets(data)
    assert str(lost) == "nothing"


def test_flags_that_only_magic_2_has_mean_nothing_in_old_messages() -> None:
    flags = Attributes.CONTROL | Attributes.DELETE_HORIZON | Attributes.TRANSACTIONAL
    data = write_message(0, 1, flags, TIME_MS, b"k", b"v")
    down, lost = convert(data, magic=0)
    assert lost == conversion.Lost(timestamps=1)
    assert offsets(down) == [0]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
@pytest.mark.parametrize(("source", "target"), [(2, 1), (2, 0), (1, 0), (1, 2), (0, 2), (0, 1)])
def test_the_same_offsets_twice_stay_the_same_offsets_twice(source: int, target: int, codec: Codec) -> None:
    data = batch(0, magic=source, codec=codec) + batch(0, magic=source, codec=codec)
    converted = convert(data, magic=target).data
    assert offsets(converted) == [0, 1, 2, 0, 1, 2]
    assert {batch.magic for batch in read_batches(converted)} == {target}


def test_old_messages_become_batches_of_a_mebibyte() -> None:
    builder = BatchBuilder(1)
    for _ in range(30):
        builder.append(None, bytes(100_000), timestamp_ms=TIME_MS)
    sizes = [found.size for found in read_batches(convert(builder.build(), magic=2).data)]
    assert len(sizes) == 3
    assert max(sizes) < 1.1 * 2**20


def test_a_torn_tail_is_left_out() -> None:
    whole = batch(0) + batch(3, magic=1)
    for size in (1, 20, 80):
        assert convert(whole + batch(6)[:size], magic=1) == convert(whole, magic=1)
        assert convert(whole + batch(6)[:size]).data == whole


@pytest.mark.parametrize("magic", [None, 1, 2])
@pytest.mark.parametrize("first", [2, 1])
def test_damage_raises_where_it_stands(magic: int | None, first: int) -> None:
    good = batch(0, magic=first)
    for bad in (batch(3), batch(3, magic=1), batch(3, codec=Codec.GZIP)):
        damaged = bytearray(good + bad + good)
        damaged[len(good) + len(bad) - 1] ^= 1
        # Of three messages that stand alone it is the last.
        *_, last = read_batches(bad)
        with pytest.raises(ChecksumMismatch) as caught:
            convert(damaged, magic=magic)
        assert caught.value.position == len(good) + last.position
        damaged = bytearray(good + bad + good)
        damaged[len(good) + LENGTH_AT : len(good) + LENGTH_AT + 4] = bytes(4)
        with pytest.raises(BadLength) as broken:
            convert(damaged, magic=magic)
        assert broken.value.position == len(good)


@pytest.mark.parametrize(("magic", "codec"), [(None, Codec.GZIP), (1, Codec.GZIP), (1, None), (0, None)])
def test_a_codec_that_does_not_exist_is_unsupported(magic: int | None, codec: Codec | None) -> None:
    header = BATCH_HEADER.read(batch(3))
    data = batch(0) + write_batch(header._replace(attributes=7), batch(3)[BATCH_HEADER.size :])
    with pytest.raises(Unsupported, match="there is no codec 7") as caught:
        convert(data, magic=magic, codec=codec)
    assert caught.value.position == len(batch(0))
    assert convert(data).data == data, "what is not converted is not looked at"


@pytest.mark.parametrize("magic", [0, 1])
def test_zstd_is_refused_where_the_target_has_none(magic: int) -> None:
    data = batch(0) + batch(3, codec=Codec.ZSTD)
    with pytest.raises(Unsupported, match=f"magic {magic} has no zstd") as caught:
        convert(data, magic=magic)
    assert caught.value.position == len(batch(0))
    assert offsets(convert(data, magic=magic, codec=Codec.LZ4).data) == list(range(6))


def test_targets_that_do_not_exist_are_refused() -> None:
    targets: tuple[dict[str, Any], ...] = ({"magic": 3}, {"magic": -1}, {"magic": 1, "codec": Codec.ZSTD})
    for options in targets:
        with pytest.raises(InvalidInput):
            convert(b"", **options)


@pytest.mark.parametrize("magic", [None, 1])
def test_the_limit_of_decompression_holds(magic: int | None) -> None:
    data = batch(0, 100, codec=Codec.GZIP)
    with pytest.raises(LimitExceeded):
        convert(data, magic=magic, codec=Codec.LZ4, max_decompressed=1000)


def test_offsets_that_do_not_grow_within_a_batch_are_told_with_the_batch() -> None:
    body = bytearray()
    for _ in range(2):
        write_record(body, 0, 0, b"k", b"v", 0, b"")
    header = BATCH_HEADER.read(batch(3, 2))
    data = batch(0) + write_batch(header._replace(last_offset_delta=0), bytes(body))
    with pytest.raises(BadRecord, match="do not grow") as caught:
        convert(data, magic=1)
    assert caught.value.position == len(batch(0))


def test_a_batch_without_records_is_kept_where_it_can_be() -> None:
    data = batch(0) + empty_batch(base_offset=3, last_offset=9)
    for codec in (None, Codec.GZIP):
        assert convert(data, magic=2, codec=codec).data.endswith(empty_batch(base_offset=3, last_offset=9))


def test_append_times_are_kept() -> None:
    data = batch(0, timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time_ms=5, codec=Codec.GZIP)
    (down,) = read_batches(convert(data, magic=1).data)
    assert (down.timestamp_type, down.max_timestamp_ms) == (TimestampType.LOG_APPEND_TIME, 5)
    (up,) = read_batches(convert(down.data, magic=2).data)
    assert (up.timestamp_type, up.max_timestamp_ms) == (TimestampType.LOG_APPEND_TIME, 5)


def test_any_buffer_whose_bytes_lie_together_will_do() -> None:
    data = batch(0, magic=1) + batch(3, magic=1)
    padded = data + bytes(-len(data) % 8)  # the last bytes are a torn tail
    words = array("q")
    words.frombytes(padded)
    for buffer in (bytearray(data), memoryview(data), memoryview(words)):
        assert convert(buffer, magic=2) == convert(data, magic=2)
    with pytest.raises(InvalidInput, match="do not lie one after another"):
        convert(memoryview(data)[::2])
    assert convert(b"", magic=2).data == b""


@pytest.mark.parametrize(("magic", "codec"), [(None, None), (2, None), (0, None), (None, Codec.GZIP)])
def test_no_object_is_made_for_a_message(
    magic: int | None, codec: Codec | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("an object was made for a message")

    data = batch(0, 100, magic=1) + batch(100, 100, magic=1, codec=Codec.LZ4)
    expected = offsets(data)
    with monkeypatch.context() as patch:
        patch.setattr(Message, "__init__", refuse)
        converted = convert(data, magic=magic, codec=codec).data
    assert offsets(converted) == expected


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_memory_is_for_the_output_and_not_for_each_batch(codec: Codec) -> None:
    data = b"".join(batch(offset, 1, codec=codec) for offset in range(2000)) * 10
    convert(data[:10_000], codec=Codec.NONE)  # what is imported stays
    tracemalloc.start()
    try:
        size = len(convert(data, codec=Codec.NONE).data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2.5 * size + conversion._TABLE_ROWS * 17 * 8 * 2


def test_errors_are_ours_for_any_flip() -> None:
    data = batch(0) + batch(3, magic=1, codec=Codec.GZIP)
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 0x11
        try:
            convert(damaged, magic=0, codec=Codec.LZ4)
        except (FormatError, InvalidInput):
            continue
