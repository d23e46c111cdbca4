"""Whatever can be built can be read again, and whatever is read ends in records or in our own errors."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from octavo.errors import FormatError
from octavo.records.builder import BatchBuilder
from octavo.records.layout import LENGTH_AT, LOG_OVERHEAD, Codec, TimestampType
from octavo.records.reader import read_batches
from octavo.records.record import Header, Record
from octavo.records.sequence import record_sequence

INT16 = 2**15 - 1
INT32 = 2**31 - 1
INT64 = 2**63 - 1

content = st.none() | st.binary(max_size=300)
headers = st.lists(st.builds(Header, st.text("ab-ß☃🗝\0", max_size=20), content), max_size=5)
timestamps = st.just(-1) | st.integers(0, INT64) | st.integers(1_600_000_000_000, 1_800_000_000_000)
kinds = st.sampled_from([(magic, codec) for magic in (0, 1, 2) for codec in Codec if magic == 2 or codec != Codec.ZSTD])


@st.composite
def batches(draw: st.DrawFn, base_offset: int | None = None) -> tuple[BatchBuilder, list[Record], dict[str, Any]]:
    """A builder with records, the records that reading its batch must give, and the builder's options.

    With a `base_offset` there are no gaps, as before compaction.
    """
    magic, codec = draw(kinds)
    options: dict[str, Any] = {"magic": magic, "codec": codec, "base_offset": base_offset}
    gaps = st.just(0)
    if base_offset is None:
        options["base_offset"] = draw(st.integers(0, INT64 - INT32))
        gaps = st.just(0) | st.integers(0, 100_000)
    append_time = magic > 0 and draw(st.booleans())
    if append_time:
        options["timestamp_type"] = TimestampType.LOG_APPEND_TIME
        options["log_append_time_ms"] = draw(timestamps)
    if magic == 2:
        options["leader_epoch"] = draw(st.integers(-1, INT32))
        if draw(st.booleans()):
            options["producer_id"] = draw(st.integers(0, INT64))
            options["producer_epoch"] = draw(st.integers(0, INT16))
            options["base_sequence"] = draw(st.integers(0, INT32))
            options["transactional"] = draw(st.booleans())
        if draw(st.booleans()):
            options["delete_horizon_ms"] = draw(st.integers(0, INT64))
    builder = BatchBuilder(**options)
    records = []
    for gap in draw(st.lists(gaps, min_size=1, max_size=8)):
        offset = builder.next_offset + gap
        time, key, value = draw(timestamps), draw(content), draw(content)
        given_headers = draw(headers) if magic == 2 else []
        assert builder.append(key, value, timestamp_ms=time, headers=given_headers, offset=offset) == offset
        read_time = options["log_append_time_ms"] if append_time else time if magic else -1
        sequence = record_sequence(options.get("base_sequence", -1), offset - options["base_offset"])
        records.append(Record(offset, read_time, key, value, tuple(given_headers), sequence))
    return builder, records, options


@st.composite
def logs(draw: st.DrawFn) -> list[bytes]:
    """Batches whose offsets go on from one to the next."""
    built = []
    offset = draw(st.integers(0, INT64 - INT32))
    for _ in range(draw(st.integers(1, 4))):
        builder, _, _ = draw(batches(offset))
        offset = builder.next_offset
        built.append(builder.build())
    return built


@given(batches())
@settings(deadline=None)  # the first use of a codec imports its library
def test_what_is_built_is_read(made: tuple[BatchBuilder, list[Record], dict[str, Any]]) -> None:
    builder, records, options = made
    data = builder.build()
    reader = read_batches(data)
    found = list(reader)
    assert reader.position == len(data)
    assert [record for batch in found for record in batch] == records
    assert found[-1].last_offset == records[-1].offset
    assert max(batch.max_timestamp_ms for batch in found) == max(record.timestamp_ms for record in records)
    assert all(batch.codec == options["codec"] and batch.magic == options["magic"] for batch in found)
    if options["magic"] == 2:
        (batch,) = found
        assert batch.base_offset == options["base_offset"]
        assert batch.producer_id == options.get("producer_id", -1)
        assert batch.is_transactional == options.get("transactional", False)
        assert batch.delete_horizon_ms == options.get("delete_horizon_ms")


@given(batches())
@settings(deadline=None)  # the first use of a codec imports its library
def test_the_size_is_known_beforehand(made: tuple[BatchBuilder, list[Record], dict[str, Any]]) -> None:
    builder, _, options = made
    size = len(builder.build())
    assert size == builder.size if options["codec"] == Codec.NONE else size <= builder.size


@given(batches(), st.data())
@settings(deadline=None)  # the first use of a codec imports its library
def test_damage_is_told_by_our_own_errors(
    made: tuple[BatchBuilder, list[Record], dict[str, Any]], data: st.DataObject
) -> None:
    builder, _, _ = made
    damaged = bytearray(builder.build())
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    for verify in (True, False):
        told = None
        try:
            for batch in read_batches(damaged, verify=verify, max_decompressed=100_000):
                assert len(list(batch)) <= len(damaged) or batch.is_compressed
        except FormatError as error:
            told = error.position
        assert told is None or 0 <= told <= len(damaged)


@given(logs(), st.binary(min_size=1, max_size=100), st.data())
@settings(deadline=None, max_examples=100)
def test_resync_finds_all_that_is_not_damaged(built: list[bytes], garbage: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(built)))
    if at == 0:
        garbage = b"\xff" + garbage  # else it begins with an offset, and batches are looked for that follow that
    pieces = [*built[:at], garbage, *built[at:]]
    buffer = b"".join(pieces)
    starts = list(accumulate(map(len, pieces), initial=0))
    says_it_ends = starts[at] + LOG_OVERHEAD + int.from_bytes(buffer[starts[at] :][LENGTH_AT:LOG_OVERHEAD], "big")
    assume(says_it_ends not in starts)  # then it is a damaged batch that holds all up to there
    undamaged = [
        (start + batch.position, bytes(batch.data))
        for start, piece in zip(starts, pieces, strict=False)
        if piece is not garbage
        for batch in read_batches(piece)
    ]
    reader = read_batches(buffer, resync=True)
    assert [(batch.position, bytes(batch.data)) for batch in reader] == undamaged
    passed = sum(damage.size for damage in reader.damage)
    left = len(buffer) - reader.position if reader.torn_tail is not None else 0
    assert passed + left == len(garbage)
    assert {damage.position for damage in reader.damage} <= {starts[at]}


@given(st.binary(max_size=400))
@settings(deadline=None)  # the first use of a codec imports its library
def test_any_bytes_are_walked_to_their_end(data: bytes) -> None:
    reader = read_batches(data, resync=True)
    for batch in reader:
        batch.verify()
    assert reader.position <= len(data)
    assert reader.torn_tail is None or reader.torn_tail == reader.position
