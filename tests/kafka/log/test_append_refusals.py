"""What the leader refuses, with which error code, and because of which records."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any, Final

import pytest

from octavo.records.control import end_transaction_marker
from octavo.records.layout import BATCH_HEADER
from tests.batches import TIME_MS, build, generate
from tests.corruption import forge
from tests.kafka.answers import BatchSpec, Codec, RecordSpec
from tests.kafka.log.conftest import OpenBoth
from tests.kafka.log.samples import batch, changed, forged, keyed, stamped
from tests.kafka.log.side_by_side import Refusal, outcome_of
from tests.kafka.unified_log import Appended, Origin

UNKNOWN: Final = -1
CORRUPT: Final = 2
TOO_LARGE: Final = 10
LIST_TOO_LARGE: Final = 18
TIMESTAMP: Final = 32
INVALID: Final = 87

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS

ONE: Final = batch()
MARKER: Final = end_transaction_marker(True, timestamp_ms=TIME_MS, producer_id=7, producer_epoch=0, coordinator_epoch=0)
RECORD: Final = forge.record()


def _flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes((data[at] ^ 1,)) + data[at + 1 :]


HEADERS: Final[dict[str, tuple[bytes, int]]] = {
    "base offset 1": (changed(ONE, base_offset=1), INVALID),
    "negative base offset": (changed(ONE, base_offset=-1), INVALID),
    "checksum": (_flipped(ONE, 70), CORRUPT),
    "checksum field": (_flipped(ONE, BATCH_HEADER.at("crc")), CORRUPT),
    "length below the least": (changed(ONE, length=13), CORRUPT),
    "length of zero": (changed(ONE, length=0), CORRUPT),
    "negative length": (changed(ONE, length=-1), CORRUPT),
    "length shorter than a header": (forge.sealed(changed(ONE, length=40)[:52]), CORRUPT),
    "magic 3": (changed(ONE, magic=2)[:16] + b"\3" + ONE[17:], CORRUPT),
    "negative magic": (ONE[:16] + b"\xff" + ONE[17:], CORRUPT),
    "negative last offset": (changed(ONE, last_offset_delta=-1), INVALID),
    "no records": (forged([]), INVALID),
    "negative count": (changed(ONE, record_count=-1), INVALID),
    "count above the last offset": (changed(batch(3), last_offset_delta=1), INVALID),
    "count below the last offset": (changed(batch(3), last_offset_delta=3), INVALID),
    "control": (MARKER, INVALID),
    "producer without a sequence": (changed(ONE, producer_id=1, producer_epoch=0), INVALID),
    "codec 5": (changed(ONE, attributes=5), UNKNOWN),
    "codec 7": (changed(ONE, attributes=7), UNKNOWN),
    "old magic behind new": (ONE + batch(magic=1), INVALID),
    "new magic behind old": (batch(magic=1) + changed(ONE, base_offset=0), INVALID),
    "magic 1 behind 0": (batch(magic=0) + batch(magic=1), INVALID),
    "two wrapped sets": (batch(3, magic=1, codec="gzip") * 2, INVALID),
    "a wrapped set and a message": (batch(3, magic=1, codec="gzip") + batch(magic=1), INVALID),
    "a message and a wrapped set": (batch(magic=1) + batch(3, magic=1, codec="gzip"), INVALID),
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_that_no_client_may_send(name: str, open_both: OpenBoth) -> None:
    data, code = HEADERS[name]
    both = open_both()
    assert both.append(ONE) == Appended(0, 0, -1, 0)
    assert both.append(data) == Refusal(code)
    assert both.append(ONE) == Appended(1, 1, -1, 0)
    both.close()


RECORDS: Final[dict[str, tuple[list[bytes], dict[str, Any], int]]] = {
    "bytes behind the last": ([RECORD, b"\0"], {"count": 1}, INVALID),
    "one too few": ([RECORD], {"count": 2}, INVALID),
    "none": ([], {"count": 1}, INVALID),
    "length too long": ([forge.record(length=200)], {}, INVALID),
    "length too short": ([forge.record(length=3)], {}, INVALID),
    "length one too long": ([forge.record(length=9), b"\0"], {"count": 1}, INVALID),
    "negative length": ([forge.record(length=-1)], {}, INVALID),
    "unending offset": ([forge.record(offset_delta=forge.UNENDING)], {}, INVALID),
    "unending key length": ([forge.record(key_length=forge.UNENDING)], {}, INVALID),
    "key too long": ([forge.record(key_length=100)], {}, INVALID),
    "value too long": ([forge.record(value_length=100)], {}, INVALID),
    "negative header count": ([forge.record(header_count=-1)], {}, INVALID),
    "header count too large": ([forge.record(header_count=1000)], {}, INVALID),
    "header without a key": ([forge.record(headers=[forge.header(b"", key_length=-1)])], {}, INVALID),
    "header key too long": ([forge.record(headers=[forge.header(key_length=99)])], {}, INVALID),
    "header value too long": ([forge.record(headers=[forge.header(value_length=99)])], {}, INVALID),
}


@pytest.mark.parametrize("name", RECORDS)
def test_records_that_cannot_be_read(name: str, open_both: OpenBoth) -> None:
    records, fields, code = RECORDS[name]
    both = open_both()
    assert both.append(forged(records, **fields)) == Refusal(code)
    assert both.append(ONE) == Appended(0, 0, -1, 0)


def test_a_record_whose_length_never_ends_is_refused_by_its_name(open_both: OpenBoth) -> None:
    """Here we differ: Kafka stumbles over it, and says that it does not know what happened."""
    both = open_both()
    batch = forged([forge.UNENDING])
    assert outcome_of(lambda: both.kafka.append(batch))[0] == Refusal(UNKNOWN)
    assert outcome_of(lambda: both.octavo.append(batch))[0] == Refusal(INVALID)


@pytest.mark.parametrize("attributes", [1, 2, 3, 4])
@pytest.mark.parametrize("records", [b"", b"\0", b"nonsense", RECORD])
def test_a_compressed_batch_that_does_not_decompress(attributes: int, records: bytes, open_both: OpenBoth) -> None:
    both = open_both()
    outcome = both.append(forged([records], attributes=attributes))
    assert isinstance(outcome, Refusal)
    assert outcome.code in (UNKNOWN, INVALID)


# Kafka believes others than clients what they say of counts, and stores what nobody can read; we do not.
COUNTS: Final = {
    "negative last offset",
    "no records",
    "count above the last offset",
    "count below the last offset",
    "length shorter than a header",
}


@pytest.mark.parametrize("origin", ["COORDINATOR", "RAFT_LEADER"])
@pytest.mark.parametrize("name", sorted(HEADERS.keys() - COUNTS))
def test_others_than_clients_may_send_more(name: str, origin: Origin, open_both: OpenBoth) -> None:
    both = open_both()
    data = HEADERS[name][0]
    if len(data) > BATCH_HEADER.size and data[16] == 2:
        data = data[:12] + bytes(4) + data[16:]  # the raft leader's own epoch, which no checksum covers
    both.append(data, origin=origin)
    both.close()


def test_the_coordinator_ends_transactions(open_both: OpenBoth) -> None:
    both = open_both()
    assert both.append(MARKER, origin="COORDINATOR") == Appended(0, 0, -1, 0)
    assert both.append(MARKER, origin="CLIENT") == Refusal(INVALID)
    both.close()


def test_the_raft_leader_appends_in_its_own_epoch(open_both: OpenBoth) -> None:
    both = open_both()
    both.become_leader(3)
    assert both.append(changed(ONE, leader_epoch=2), origin="RAFT_LEADER") == Refusal(INVALID)
    assert both.append(changed(ONE, leader_epoch=3), origin="RAFT_LEADER") == Appended(0, 0, -1, 0)


def test_too_large_for_a_message_or_a_segment(open_both: OpenBoth) -> None:
    data = batch(5)
    both = open_both(max_message_bytes=len(data))
    assert both.append(data) == Appended(0, 4, -1, 0)
    assert both.append(batch(5, size=11)) == Refusal(TOO_LARGE)
    both = open_both(max_message_bytes=len(data), internal_segment_bytes=len(data) - 1)
    assert both.append(data) == Refusal(LIST_TOO_LARGE)
    assert both.append(batch(4)) == Appended(0, 3, -1, 0)
    both = open_both(max_message_bytes=len(data) - 1, internal_segment_bytes=len(data) - 1)
    assert both.append(data) == Refusal(TOO_LARGE)


def test_too_large_only_once_it_is_decompressed(open_both: OpenBoth) -> None:
    data = batch(50, size=1000, codec="gzip")
    both = open_both(max_message_bytes=len(data), compression_type="uncompressed")
    assert both.append(data) == Refusal(TOO_LARGE)
    both = open_both(max_message_bytes=len(data), compression_type="producer")
    assert both.append(data) == Appended(0, 49, -1, 0)


def test_nothing_to_append(open_both: OpenBoth) -> None:
    both = open_both()
    assert both.append(b"") == Appended(-1, -1, -1, 0)
    for size in (1, 11, 12, 16, 17, 60, len(ONE) - 1):
        assert both.append(ONE[:size]) == Appended(-1, -1, -1, 0)
    assert both.state.segments[0].size == 0
    assert both.append(ONE + ONE[:-1]) == Appended(0, 0, -1, 0)  # the torn one is left out
    assert both.append(ONE + ONE[:12]) == Appended(1, 1, -1, 0)
    assert both.state.segments[0].size == 2 * len(ONE)
    both.close()


@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("before_ms", [0, 10, DAY_MS])
@pytest.mark.parametrize("after_ms", [0, 10, DAY_MS])
def test_timestamps_up_to_the_limits(before_ms: int, after_ms: int, codec: str, open_both: OpenBoth) -> None:
    both = open_both(
        message_timestamp_before_max_ms=before_ms,
        message_timestamp_after_max_ms=after_ms,
    )
    good = (-1, TIME_MS - before_ms, TIME_MS, TIME_MS + after_ms)
    assert both.append(stamped(*good, codec=codec)) == Appended(0, 3, -1, 0)
    bad = (TIME_MS - before_ms - 1, TIME_MS, 0, TIME_MS + after_ms + 1, -1, 2**62)
    assert both.append(stamped(*bad, codec=codec)) == Refusal(TIMESTAMP, (0, 2, 3, 5))


def test_the_limits_of_old_are_one_hour_ahead(open_both: OpenBoth) -> None:
    both = open_both()
    assert both.append(stamped(0, TIME_MS + HOUR_MS)) == Appended(0, 1, -1, 0)
    assert both.append(stamped(0, TIME_MS + HOUR_MS + 1)) == Refusal(TIMESTAMP, (1,))
    both.now_ms += 1
    assert both.append(stamped(0, TIME_MS + HOUR_MS + 1)) == Appended(2, 3, -1, 0)


def test_timestamps_do_not_matter_where_the_log_gives_its_own(open_both: OpenBoth) -> None:
    both = open_both(message_timestamp_type="LogAppendTime", message_timestamp_before_max_ms=0)
    assert both.append(stamped(0, 2**62)) == Appended(0, 1, TIME_MS, 0)


@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("kind", ["CreateTime", "LogAppendTime"])
def test_a_batch_that_claims_append_time(kind: str, codec: str, open_both: OpenBoth) -> None:
    claims: dict[str, Any] = {"timestamp_type": "LogAppendTime", "log_append_time_ms": TIME_MS + 1, "codec": codec}
    both = open_both(message_timestamp_type=kind)
    if kind == "LogAppendTime":
        assert both.append(stamped(TIME_MS, -1, **claims)) == Refusal(TIMESTAMP, (0, 1))
    else:
        assert both.append(stamped(TIME_MS, -1, **claims)) == Appended(0, 1, -1, 0)
        none = {**claims, "log_append_time_ms": -1}
        assert both.append(stamped(TIME_MS, TIME_MS, **none)) == Refusal(TIMESTAMP, (0, 1))
    both.close()


@pytest.mark.parametrize("codec", ["none", "lz4"])
@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_compacted_topics_want_keys(policy: str, codec: Codec, open_both: OpenBoth) -> None:
    both = open_both(cleanup_policy=policy)
    assert both.append(keyed(b"", b"k", codec=codec)) == Appended(0, 1, -1, 0)
    assert both.append(keyed(b"", None, b"k", None, codec=codec)) == Refusal(INVALID, (1, 3))
    records = [RecordSpec(timestamp_ms=t, key=key) for key, t in ((None, TIME_MS), (b"k", 2**60), (None, 2**60))]
    assert both.append(build(BatchSpec(records=records, codec=codec))) == Refusal(TIMESTAMP, (0, 1, 2))
    both = open_both(cleanup_policy="delete")
    assert both.append(keyed(None, codec=codec)) == Appended(0, 0, -1, 0)


@pytest.mark.parametrize("magic", [0, 1])
def test_old_messages_are_judged_too(magic: int, open_both: OpenBoth) -> None:
    both = open_both(cleanup_policy="compact")
    assert both.append(keyed(b"a", magic=magic) + keyed(None, magic=magic)) == Refusal(INVALID, (0,))
    wrapped = keyed(b"a", None, b"b", None, magic=magic, codec="gzip")
    assert both.append(wrapped) == Refusal(INVALID, (1, 3))
    if magic == 1:
        assert both.append(stamped(TIME_MS, 2**60, magic=1, codec="gzip")) == Refusal(TIMESTAMP, (1,))
    damaged = forge.message(magic, offset=0)
    assert both.append(damaged[:-1] + b"w") == Refusal(CORRUPT)


def test_whatever_clients_send_is_judged_alike(open_both: OpenBoth) -> None:
    """Batches of all kinds, as clients should and should not send them, to topics of several kinds."""
    configs: list[dict[str, object]] = [
        {},
        {"message_timestamp_after_max_ms": 2**62, "cleanup_policy": "compact"},
        {"message_timestamp_type": "LogAppendTime", "max_message_bytes": 3000},
        {"message_timestamp_after_max_ms": 2**62, "message_timestamp_before_max_ms": 2**62},
    ]
    refused = appended = 0
    for number, config in enumerate(configs):
        both = open_both(exact=False, **config)
        for identity, (spec, _) in enumerate(generate(seed=40 + number, count=180)):
            outcome = both.append(build(_sendable(spec, identity)))
            refused += isinstance(outcome, Refusal)
            appended += isinstance(outcome, Appended)
        both.close()
    assert refused > 100
    assert appended > 100


def test_whatever_is_damaged_is_judged_alike(open_both: OpenBoth) -> None:
    """Batches with bytes changed and the checksum put right.

    Which of several faults in a compressed stream is found first depends on how much of it a reader takes at a time.
    """
    random = Random(41)
    both = open_both(message_timestamp_after_max_ms=2**62, exact=False)
    outcomes = set()
    for identity, (spec, _) in enumerate(generate(seed=42, count=700)):
        data = bytearray(build(_sendable(spec, identity)))
        if spec.magic < 2 or spec.producer_id >= 0 or len(data) > 4000:
            continue
        for _ in range(random.choice((1, 1, 2))):
            at = min(random.choice((57, BATCH_HEADER.size)) + random.randrange(30), len(data) - 1)
            data[at] = random.choice((0, 1, 2, 0x7F, 0x80, 0xFF, data[at] ^ 1, random.randrange(256)))
        outcome = both.append(forge.sealed(bytes(data)), code=None if spec.codec == "none" else UNKNOWN)
        outcomes.add(outcome.code if isinstance(outcome, Refusal) else 0)
    assert outcomes >= {0, UNKNOWN, INVALID}
    both.close()


def _sendable(spec: BatchSpec, identity: int) -> BatchSpec:
    """The batch at offset 0, from a producer that nobody has seen before."""
    shift = spec.base_offset
    records = [replace(r, offset=None if r.offset is None else r.offset - shift) for r in spec.records]
    spec = replace(spec, base_offset=0, records=records, last_offset=None)
    return spec if spec.producer_id < 0 else replace(spec, producer_id=identity, producer_epoch=0)
