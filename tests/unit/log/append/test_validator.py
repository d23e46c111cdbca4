"""`Validator`: what a leader and a follower take, what they change, and what they refuse with which code.

The same against Kafka itself is in `tests/kafka/test_validation.py`.
"""

from __future__ import annotations

import tracemalloc
from array import array
from typing import Any, Final

import pytest

from octavo.errors import AppendRefused, ErrorCode
from octavo.log.append.leader import SCRATCH
from octavo.log.append.validated import Validated
from octavo.log.append.validator import Validator
from octavo.log.config.log_config import LogConfig
from octavo.log.origin import Origin
from octavo.log.segment.batch_span import BatchSpan
from octavo.records import BatchBuilder, Codec, Header, read_batches
from octavo.records.compression import Inflater, compress
from octavo.records.kernels import Kernel
from octavo.records.layout import BATCH_HEADER, BatchHeader
from tests.corruption import forge

pytestmark = pytest.mark.usefixtures("each_kind_of_kernel")

NOW: Final = 1_700_000_000_000
EPOCH: Final = 7
OFFSET: Final = 500
MAX_OFFSET: Final = 2**63 - 2


def assign(data: Any, *, origin: Origin = Origin.CLIENT, **properties: str) -> Validated:
    """What the leader of a topic with these properties, their dots written `_`, makes of `data`."""
    config = LogConfig.from_properties({name.replace("_", "."): value for name, value in properties.items()})
    return Validator(config).assign(data, offset=OFFSET, leader_epoch=EPOCH, now_ms=NOW, origin=origin)


def refusal(data: bytes, **arguments: Any) -> AppendRefused:
    with pytest.raises(AppendRefused) as caught:
        assign(data, **arguments)
    return caught.value


def written(validated: Validated) -> bytes:
    data = b"".join(validated.parts)
    assert len(data) == validated.size == sum(span.size for span in validated.spans)
    return data


def header_of(validated: Validated) -> BatchHeader:
    return BATCH_HEADER.read(written(validated))


def batch(count: int = 3, codec: Codec = Codec.NONE, *, record: dict[str, Any] | None = None, **fields: Any) -> bytes:
    """A client's batch; `record` is what its last record says, `fields` what its header says."""
    records: list[dict[str, Any]] = [{"offset_delta": number, "timestamp_delta": number} for number in range(count)]
    records[-1].update(record or {})
    stream = compress(codec, b"".join(forge.record(**each) for each in records))
    sound = {"base_offset": 0, "attributes": int(codec), "max_timestamp_ms": NOW + count - 1}
    return forge.batch(stream, **{"count": count, **sound, **fields})


def test_a_batch_gets_offset_and_epoch_and_nothing_is_copied_but_its_header() -> None:
    data = bytearray(batch())
    before = bytes(data)
    validated = assign(data)
    assert data == before
    assert header_of(validated) == BATCH_HEADER.read(before)._replace(base_offset=OFFSET, leader_epoch=EPOCH)
    assert written(validated)[61:] == before[61:]
    assert isinstance(validated.parts[1], memoryview)
    assert validated.parts[1].obj is data
    assert validated.spans == [BatchSpan(len(data), OFFSET, OFFSET + 2, NOW + 2, EPOCH, 2)]
    assert validated.append_time_ms == -1


@pytest.mark.parametrize("codec", list(Codec))
def test_a_largest_timestamp_that_is_none_is_mended(codec: Codec) -> None:
    validated = assign(batch(codec=codec, max_timestamp_ms=12, attributes=codec | 0x7F80 & ~0x88))
    (found,) = read_batches(written(validated))
    assert found.max_timestamp_ms == validated.spans[0].max_timestamp_ms == NOW + 2
    assert BATCH_HEADER.read(found.data).attributes == codec, "what nobody knows goes when the flags are written"


@pytest.mark.parametrize("codec", list(Codec))
def test_append_time_is_written_and_told(codec: Codec) -> None:
    validated = assign(batch(codec=codec), message_timestamp_type="LogAppendTime")
    (found,) = read_batches(written(validated))
    assert [record.timestamp_ms for record in found] == [NOW] * 3
    assert validated.append_time_ms == validated.spans[0].max_timestamp_ms == NOW
    assert found.base_timestamp_ms == NOW, "as it came"


def test_an_append_time_that_a_producer_claims_is_refused_or_goes() -> None:
    claimed = batch(attributes=8)
    assert refusal(claimed, message_timestamp_type="LogAppendTime").code == ErrorCode.INVALID_TIMESTAMP
    (found,) = read_batches(written(assign(claimed)))
    assert not found.attributes & 8


HEADERS: Final[dict[str, tuple[ErrorCode, dict[str, Any]]]] = {
    "base offset": (ErrorCode.INVALID_RECORD, {"base_offset": 1}),
    "offset range": (ErrorCode.INVALID_RECORD, {"last_offset_delta": -1}),
    "no count": (ErrorCode.INVALID_RECORD, {"record_count": 0}),
    "negative count": (ErrorCode.INVALID_RECORD, {"record_count": -1}),
    "count and offsets": (ErrorCode.INVALID_RECORD, {"record_count": 2}),
    "more records than there are": (ErrorCode.INVALID_RECORD, {"record_count": 4, "last_offset_delta": 3}),
    "fewer records than there are": (ErrorCode.INVALID_RECORD, {"record_count": 2, "last_offset_delta": 1}),
    "control": (ErrorCode.INVALID_RECORD, {"attributes": 0x20}),
    "no sequence": (ErrorCode.INVALID_RECORD, {"producer_id": 5, "producer_epoch": 0}),
    "codec": (ErrorCode.UNKNOWN_SERVER_ERROR, {"attributes": 5}),
    "stream": (ErrorCode.UNKNOWN_SERVER_ERROR, {"attributes": 3}),
    "length": (ErrorCode.CORRUPT_MESSAGE, {"length": 13}),
    "length of a header": (ErrorCode.CORRUPT_MESSAGE, {"length": 40}),
    "length for Java": (ErrorCode.UNKNOWN_SERVER_ERROR, {"length": 2**31 - 1}),
    "magic": (ErrorCode.CORRUPT_MESSAGE, {"magic": 3}),
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_that_breaks_a_rule_is_refused_with_kafkas_code(name: str) -> None:
    code, fields = HEADERS[name]
    assert refusal(batch(**fields)).code == code


def test_a_wrong_checksum_and_a_batch_too_large_are_refused() -> None:
    data = batch()
    assert refusal(data[:-1] + b"x").code == ErrorCode.CORRUPT_MESSAGE
    assert assign(data, max_message_bytes=str(len(data))).spans
    too_large = refusal(data[:-1] + b"x", max_message_bytes=str(len(data) - 1))
    assert too_large.code == ErrorCode.MESSAGE_TOO_LARGE, "which is looked at first"
    assert "at byte 0" in str(too_large)


@pytest.mark.parametrize("codec", list(Codec))
def test_records_are_refused_by_index_and_a_timestamp_decides_the_code(codec: Codec) -> None:
    records = [
        forge.record(offset_delta=0, key=None),
        forge.record(offset_delta=1, timestamp_delta=-11),
        forge.record(offset_delta=2, timestamp_delta=6),
        forge.record(offset_delta=3, timestamp_delta=-10),
        forge.record(offset_delta=4, timestamp_delta=5, key=b""),
        forge.record(offset_delta=5, timestamp_delta=-NOW - 1, headers=[forge.header()]),
    ]
    data = forge.batch(compress(codec, b"".join(records)), count=6, base_offset=0, attributes=int(codec))
    limits = {"message_timestamp_before_max_ms": "10", "message_timestamp_after_max_ms": "5"}
    error = refusal(data, **limits, cleanup_policy="compact")
    assert error.code == ErrorCode.INVALID_TIMESTAMP
    assert [each.record_index for each in error.record_errors] == [0, 1, 2]
    assert f"{NOW - 11} is not between {NOW - 10} and {NOW + 5}" in error.record_errors[1].message
    error = refusal(data, cleanup_policy="compact,delete")
    assert (error.code, [each.record_index for each in error.record_errors]) == (ErrorCode.INVALID_RECORD, [0])


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_a_thousand_refused_records_are_listed_and_all_are_counted(codec: Codec) -> None:
    records = [forge.record(key=None, value=None, offset_delta=number) for number in range(3000)]
    fields = {"count": 3000, "base_offset": 0, "attributes": int(codec)}
    error = refusal(forge.batch(compress(codec, b"".join(records)), **fields), cleanup_policy="compact")
    assert [each.record_index for each in error.record_errors] == list(range(1000))
    assert "is refused for 3000 of its records: record 0: the topic" in str(error)
    assert str(error).endswith("and 2997 more (INVALID_RECORD)")
    records[-1] = forge.record(offset_delta=2999, timestamp_delta=-11)
    data = forge.batch(compress(codec, b"".join(records)), **fields)
    error = refusal(data, cleanup_policy="compact", message_timestamp_before_max_ms="10")
    assert error.code == ErrorCode.INVALID_TIMESTAMP, "though the record is not listed"


def test_a_thousand_refused_old_messages_are_listed_and_all_are_counted() -> None:
    messages = b"".join(forge.message(1, None, b"", offset=number) for number in range(1200))
    wrapper = forge.message(1, None, compress(Codec.GZIP, messages), attributes=1, offset=1199)
    error = refusal(wrapper, cleanup_policy="compact")
    assert [each.record_index for each in error.record_errors] == list(range(1000))
    assert "is refused for 1200 of its records" in str(error)


@pytest.mark.long
def test_refused_records_take_no_memory_beside_their_bytes() -> None:
    count = 100_000
    data = forge.batch(
        compress(Codec.ZSTD, bytes((12, 0, 0, 0, 1, 1, 0)) * count), count=count, base_offset=0, attributes=4
    )
    refusal(data, cleanup_policy="compact")  # codec and kernel are loaded
    tracemalloc.start()
    refusal(data, cleanup_policy="compact")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * 7 * count


def test_decompressed_bytes_count_where_a_kernel_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    class Chosen(Validator):
        def _kernel(self, size: int) -> Kernel:
            sizes.append(size)
            return super()._kernel(size)

    monkeypatch.setenv("OCTAVO_KERNELS", "interpreted")
    records = b"".join(forge.record(value=bytes(1000), offset_delta=number) for number in range(20))
    small = forge.batch(compress(Codec.ZSTD, records), count=20, base_offset=0, attributes=4)
    Chosen(LogConfig()).assign(small + small, offset=0, leader_epoch=0, now_ms=NOW)
    assert sizes == [2 * len(small) + len(records), len(records)]


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize(
    "lie", [{"header_count": -1}, {"value_length": 500}, {"offset_delta": forge.UNENDING}, {"header_count": 2}]
)
def test_a_record_that_breaks_a_rule_of_the_format_is_refused(codec: Codec, lie: dict[str, Any]) -> None:
    assert refusal(batch(codec=codec, record=lie)).code == ErrorCode.INVALID_RECORD


def test_the_length_of_a_record_matters_unless_a_compressed_batch_stays_as_it_is() -> None:
    lie = {"length": 3}
    assert refusal(batch(record=lie)).code == ErrorCode.INVALID_RECORD
    assert assign(batch(codec=Codec.GZIP, record=lie)).spans
    assert refusal(batch(codec=Codec.GZIP, record=lie), compression_type="lz4").code == ErrorCode.INVALID_RECORD


def test_offsets_that_jump_are_kept_written_anew_or_refused() -> None:
    jump = {"offset_delta": 9}
    assert [each.offset for each in next(read_batches(written(assign(batch(record=jump)))))] == [500, 501, 509]
    anew = written(assign(batch(record=jump), compression_type="zstd"))
    assert [each.offset for each in next(read_batches(anew))] == [500, 501, 502]
    assert refusal(batch(codec=Codec.LZ4, record=jump)).code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_batches_of_all_kinds_follow_one_another() -> None:
    kinds = [batch(1 + number % 5, Codec(number % 5 if number % 3 else 0)) for number in range(400)]
    validated = assign(b"".join(kinds) + kinds[0][:-1])
    offset = OFFSET
    for sent, span, found in zip(kinds, validated.spans, read_batches(written(validated)), strict=True):
        assert (span.base_offset, span.size, found.base_offset, found.leader_epoch) == (
            offset,
            len(sent),
            offset,
            EPOCH,
        )
        assert found.data[61:] == sent[61:]
        offset = span.last_offset + 1
    broken = b"".join(kinds[:200]) + batch(base_offset=1)
    assert f"at byte {len(broken) - len(batch())}" in str(refusal(broken))
    assert "is not that of the batch before" in str(refusal(kinds[0] + forge.message(1)))


@pytest.mark.parametrize(
    "data",
    [
        batch(),
        batch(1) + batch(2),
        batch(codec=Codec.ZSTD),
        batch(1, Codec.LZ4) + batch(2, Codec.LZ4),
        forge.message(0) * 3,
        forge.message(
            1,
            None,
            compress(Codec.GZIP, b"".join(forge.message(1, offset=n) for n in range(3))),
            attributes=1,
            offset=2,
        ),
    ],
    ids=["one", "two", "compressed", "two compressed", "messages", "wrapper"],
)
def test_offsets_end_where_the_log_could_not_say_its_end_any_more(data: bytes) -> None:
    for topic in (Validator(LogConfig()), Validator(LogConfig(compression_type="zstd"))):
        validated = topic.assign(data, offset=MAX_OFFSET - 2, leader_epoch=EPOCH, now_ms=NOW)
        assert validated.spans[-1].last_offset == MAX_OFFSET
        for offset in (MAX_OFFSET - 1, MAX_OFFSET, MAX_OFFSET + 1):
            with pytest.raises(AppendRefused, match="there are not enough offsets left") as caught:
                topic.assign(data, offset=offset, leader_epoch=EPOCH, now_ms=NOW)
            assert caught.value.code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("data", [b"", b"\0", batch()[:-1], batch()[:16]])
def test_where_nothing_is_whole_nothing_is_appended(data: bytes) -> None:
    assert assign(data) == Validator(LogConfig()).check(data, end_offset=0) == Validated([], 0, [], -1)


def test_any_buffer_will_do() -> None:
    data = batch()
    data += bytes(len(data) % 2)
    for buffer in (bytearray(data), memoryview(data), memoryview(array("h", data))):
        assert written(assign(buffer))[61:] == batch()[61:]


@pytest.mark.parametrize("moved", [0, 5])
@pytest.mark.parametrize("target", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
@pytest.mark.parametrize("source", list(Codec))
def test_another_codec_loses_nothing(source: Codec, target: str, moved: int) -> None:
    builder = BatchBuilder(
        codec=source,
        producer_id=9,
        producer_epoch=1,
        base_sequence=4,
        transactional=True,
        delete_horizon_ms=NOW - moved,
    )
    for number in range(4):
        builder.append(b"k", None, timestamp_ms=NOW + number, headers=[Header("h", b"v"), Header("h", None)])
    data = builder.build()
    validated = assign(data, compression_type=target)
    (before,), (after,) = read_batches(data), read_batches(written(validated))
    assert after.codec == (Codec.NONE if target == "uncompressed" else Codec[target.upper()])
    assert [each._replace(offset=each.offset - OFFSET) for each in after] == list(before)
    assert (after.producer_id, after.producer_epoch, after.base_sequence, after.is_transactional) == (9, 1, 4, True)
    assert after.delete_horizon_ms == (None if after.codec != source else before.delete_horizon_ms)
    assert validated.spans[0] == (after.size, OFFSET, OFFSET + 3, NOW + 3, EPOCH, 2)


def test_what_is_too_large_in_another_codec_is_refused() -> None:
    data = batch(200, Codec.ZSTD)
    limit = str(len(data) + 10)
    assert assign(data, max_message_bytes=limit).spans
    assert refusal(data, max_message_bytes=limit, compression_type="uncompressed").code == ErrorCode.MESSAGE_TOO_LARGE


def test_control_batches_of_a_coordinator_are_not_compressed() -> None:
    control = batch(1, attributes=0x20)
    validated = assign(control, origin=Origin.COORDINATOR, compression_type="lz4")
    assert header_of(validated).attributes == 0x20


@pytest.mark.parametrize("codec", list(Codec)[1:])
def test_a_compressed_batch_without_a_stream_is_refused(codec: Codec) -> None:
    for others in (b"", batch(), batch(codec=Codec.LZ4)):
        refusal(others + forge.batch(b"", count=1, base_offset=0, attributes=int(codec)))


def test_more_decompressed_than_is_allowed_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SCRATCH, "inflater", Inflater(limit=30))
    assert refusal(batch(9, Codec.LZ4)).code == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("magic", [0, 1])
def test_old_messages_become_one_batch(magic: int) -> None:
    alone = b"".join(forge.message(magic, value=b"%d" % number, offset=number) for number in range(3))
    wrapped = forge.message(magic, None, compress(Codec.GZIP, alone, magic=magic), attributes=1, offset=2)
    for data, codec in ((alone, Codec.NONE), (wrapped, Codec.GZIP)):
        validated = assign(data + data[:5])
        (found,) = read_batches(written(validated))
        assert (found.magic, found.codec) == (2, codec)
        assert [(each.offset, each.value) for each in found] == [(OFFSET, b"0"), (OFFSET + 1, b"1"), (OFFSET + 2, b"2")]
        assert found.max_timestamp_ms == (NOW if magic else -1)
    assert refusal(wrapped + wrapped).code == ErrorCode.INVALID_RECORD
    assert refusal(alone + forge.message(1 - magic)).code == ErrorCode.INVALID_RECORD
    assert refusal(alone + batch()).code == ErrorCode.INVALID_RECORD
    assert refusal(alone[:-1] + b"x").code == ErrorCode.CORRUPT_MESSAGE
    keyless = forge.message(magic, None)
    assert refusal(keyless, cleanup_policy="compact").record_errors[0].record_index == 0


def test_the_leader_of_a_quorum_keeps_the_offsets_it_gave() -> None:
    data = batch(base_offset=OFFSET, leader_epoch=EPOCH) + batch(1, base_offset=OFFSET + 3, leader_epoch=EPOCH)
    validated = assign(data, origin=Origin.RAFT_LEADER)
    assert written(validated) == data
    assert [span.base_offset for span in validated.spans] == [OFFSET, OFFSET + 3]
    other = batch(base_offset=OFFSET, leader_epoch=EPOCH + 1)
    assert refusal(other, origin=Origin.RAFT_LEADER).code == ErrorCode.INVALID_RECORD
    too_large = refusal(data, origin=Origin.RAFT_LEADER, max_message_bytes="70")
    assert too_large.code == ErrorCode.MESSAGE_TOO_LARGE


def led(**fields: Any) -> bytes:
    """A batch as a leader has it."""
    return batch(**{"leader_epoch": EPOCH, **fields})


def follow(data: bytes, end_offset: int = 10, **arguments: Any) -> Validated:
    return Validator(LogConfig(max_message_bytes=1)).check(data, end_offset=end_offset, **arguments)


def test_a_follower_keeps_every_byte_of_whole_batches() -> None:
    many = [batch(2, Codec(number % 5), base_offset=10 + 5 * number, leader_epoch=number) for number in range(300)]
    validated = follow(b"".join(many) + many[0][:-1])
    assert validated.parts == [b"".join(many)]
    assert [span.last_offset for span in validated.spans] == [11 + 5 * number for number in range(300)]
    assert follow(b"".join(many), leader_epoch=100).spans == validated.spans[:101]
    old = forge.message(1, offset=10) + forge.message(0, offset=12)
    assert [(span.base_offset, span.magic, span.leader_epoch) for span in follow(old).spans] == [
        (10, 1, -1),
        (12, 0, -1),
    ]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (led(base_offset=9), ErrorCode.UNKNOWN_SERVER_ERROR),
        (led(base_offset=10) + led(base_offset=10), ErrorCode.UNKNOWN_SERVER_ERROR),
        (led(base_offset=10) + led(base_offset=12), ErrorCode.UNKNOWN_SERVER_ERROR),
        (led(base_offset=10, last_offset_delta=-1), ErrorCode.UNKNOWN_SERVER_ERROR),
        (led(base_offset=10) + led(base_offset=13, last_offset_delta=-1), ErrorCode.UNKNOWN_SERVER_ERROR),
        (forge.message(1, offset=10) + led(base_offset=10), ErrorCode.UNKNOWN_SERVER_ERROR),
        (led(base_offset=10) + forge.message(1, offset=12), ErrorCode.UNKNOWN_SERVER_ERROR),
        (led(base_offset=MAX_OFFSET - 1), ErrorCode.INVALID_RECORD),
        (led(base_offset=MAX_OFFSET), ErrorCode.UNKNOWN_SERVER_ERROR),  # its last offset is negative, as in Kafka
        (led(base_offset=-3), ErrorCode.UNKNOWN_SERVER_ERROR),
        (led(base_offset=-2), ErrorCode.UNKNOWN_SERVER_ERROR),
        (forge.message(0, offset=MAX_OFFSET + 1), ErrorCode.INVALID_RECORD),
        (led(base_offset=10)[:-1] + b"x", ErrorCode.CORRUPT_MESSAGE),
        (led(base_offset=10) + bytes(30), ErrorCode.CORRUPT_MESSAGE),
        (led(base_offset=10, attributes=7), ErrorCode.UNKNOWN_SERVER_ERROR),
        (led(base_offset=10, leader_epoch=-1), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_follower_refuses_damage_and_offsets_that_do_not_go_on(data: bytes, code: ErrorCode) -> None:
    with pytest.raises(AppendRefused) as caught:
        follow(data)
    assert caught.value.code == code


def test_a_follower_takes_the_last_offsets_there_are() -> None:
    validated = follow(led(base_offset=MAX_OFFSET - 2))
    assert validated.spans[0].last_offset == MAX_OFFSET
    with pytest.raises(AppendRefused, match=f"its last offset is above {MAX_OFFSET}, the highest"):
        follow(led(base_offset=MAX_OFFSET - 1))


def test_a_follower_says_which_offsets_are_wrong() -> None:
    with pytest.raises(AppendRefused, match="its offset 12 is below 13, the next one"):
        follow(led(base_offset=10) + led(base_offset=12))
    with pytest.raises(AppendRefused, match="its last offset 9 is below its first, 10"):
        follow(led(base_offset=10, last_offset_delta=-1))
