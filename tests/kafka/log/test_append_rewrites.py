"""What the leader changes in the batches that it takes: offsets, epochs, timestamps, magic and codec."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any, Final

import pytest

from octavo.records import read_batches
from octavo.records.layout import Attributes
from tests.batches import TIME_MS, build, generate
from tests.corruption import forge
from tests.kafka.answers import BatchSpec, Codec, RecordSpec
from tests.kafka.judge import Judge
from tests.kafka.log.conftest import OpenBoth
from tests.kafka.log.samples import batch, changed, forged, stamped
from tests.kafka.log.side_by_side import Refusal, SideBySide
from tests.kafka.unified_log import Appended

CODECS: Final[tuple[Codec, ...]] = ("none", "gzip", "snappy", "lz4", "zstd")
TYPES: Final = ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd")
KINDS: Final = ("CreateTime", "LogAppendTime")
ANY_TIME: Final[dict[str, Any]] = {
    "message_timestamp_after_max_ms": 2**63 - 1,
    "message_timestamp_before_max_ms": 2**63 - 1,
}


def _stored(both: SideBySide) -> bytes:
    """What both wrote, which is the same."""
    return b"".join(data for name, data in sorted(both.check_files().items()) if name.endswith(".log"))


def test_offset_and_epoch_are_put_in_and_nothing_else(open_both: OpenBoth) -> None:
    data = changed(batch(3), leader_epoch=77)
    both = open_both()
    both.become_leader(5)
    both.append(data)
    assert both.append(data) == Appended(3, 5, -1, 0)
    first, second = read_batches(_stored(both))
    assert (first.base_offset, second.base_offset, second.leader_epoch) == (0, 3, 5)
    assert _stored(both)[len(data) + 16 :] == data[16:]
    both.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", TYPES)
@pytest.mark.parametrize("source", CODECS)
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_every_codec_to_every_other(magic: int, source: Codec, target: str, kind: str, open_both: OpenBoth) -> None:
    if source == "zstd" and magic < 2:
        return
    wanted = source if target == "producer" else "none" if target == "uncompressed" else target
    rebuilt = wanted != "none" and (wanted != source or magic < 2)
    both = open_both(
        compression_type=target,
        message_timestamp_type=kind,
        exact=not rebuilt and target in ("producer", "uncompressed"),
    )
    headers = [("h", b"1"), ("h", None), ("", b"")] if magic == 2 else []
    records = [
        RecordSpec(timestamp_ms=TIME_MS + step, key=None if step == 2 else b"k", value=b"value" * 9, headers=headers)
        for step in (5, -3, 9, 2)
    ]
    producer: dict[str, Any] = {}
    if magic == 2:
        producer = {"producer_id": 9, "producer_epoch": 1, "base_sequence": 0, "transactional": True}
    both.append(build(BatchSpec(magic=magic, codec=source, records=records, **producer)))
    both.append(batch(2))
    first, second = read_batches(_stored(both))
    assert (first.codec.name.lower(), first.magic, first.count) == (wanted, 2, 4)
    assert (first.producer_id, first.producer_epoch, first.is_transactional) == (
        (9, 1, True) if magic == 2 else (-1, -1, False)
    )
    assert second.base_offset == 4
    both.close()


@pytest.mark.parametrize("level", [1, 9])
@pytest.mark.parametrize("target", ["gzip", "lz4", "zstd"])
def test_the_level_does_not_matter_where_the_codec_is_right(target: Codec, level: int, open_both: OpenBoth) -> None:
    both = open_both(compression_type=target, **{f"compression_{target}_level": level})
    data = batch(30, size=100, codec=target)
    both.append(data)
    assert _stored(both)[61:] == data[61:]
    both.close()


@pytest.mark.parametrize("kind", KINDS)
def test_the_largest_timestamp_is_found_out_and_not_believed(kind: str, open_both: OpenBoth) -> None:
    for codec in CODECS:
        both = open_both(message_timestamp_type=kind)
        data = stamped(TIME_MS, TIME_MS + 7, TIME_MS + 3, codec=codec)
        for lie in (0, TIME_MS + 6, TIME_MS + 7, TIME_MS + 8, 2**62, -1):
            both.append(changed(data, max_timestamp_ms=lie))
        both.append(changed(data, attributes=CODECS.index(codec) | 0x7F00))  # Java forgets the high byte
        expected = TIME_MS + 7 if kind == "CreateTime" else TIME_MS
        assert {found.max_timestamp_ms for found in read_batches(_stored(both))} == {expected}
        both.close()


def test_no_timestamps_at_all(open_both: OpenBoth) -> None:
    both = open_both(internal_segment_bytes=1000, index_interval_bytes=0)
    for data in (stamped(-1, -1), stamped(-1, codec="gzip"), batch(3, magic=0), stamped(5, 0, -1), stamped(-1)):
        for _ in range(5):
            both.append(data)
    both.close()


RIGHT: Final = (0, 1, 2)
WRONG: Final = ((0, 0, 0), (0, 2, 1), (5, 6, 7), (-1, 0, 1))


def test_offsets_inside_a_batch_do_not_matter_where_it_is_not_compressed(open_both: OpenBoth) -> None:
    both = open_both()
    for deltas in (RIGHT, *WRONG):
        records = [forge.record(offset_delta=delta) for delta in deltas]
        assert isinstance(both.append(forged(records)), Appended)
    assert both.state.end_offset == 15
    both.close()


@pytest.mark.parametrize("codec", CODECS[1:])
def test_wrong_offsets_inside_a_compressed_batch(codec: Codec, kafka_broker: Judge, open_both: OpenBoth) -> None:
    """Kafka wants to build such a batch anew; where the codec is to stay it has not kept what that takes, and fails."""
    same, other = open_both(), open_both(compression_type="gzip" if codec != "gzip" else "zstd", exact=False)
    for deltas in (RIGHT, *WRONG):
        records = b"".join(forge.record(offset_delta=delta) for delta in deltas)
        data = forged(kafka_broker.compress([records], codec), count=3, attributes=CODECS.index(codec))
        outcome = same.append(data)
        assert isinstance(outcome, Appended) if deltas == RIGHT else outcome == Refusal(-1)
        assert isinstance(other.append(data), Appended)
    for record in (record for found in read_batches(_stored(other)) for record in found):
        assert record.offset < 15
    same.close()
    other.close()


@pytest.mark.parametrize("offsets", [(0, 1, 2), (5, 6, 7), (0, 0, 0), (3, 2, 1)])
@pytest.mark.parametrize("magic", [0, 1])
def test_wrong_offsets_inside_a_wrapper(
    magic: int, offsets: tuple[int, ...], kafka_broker: Judge, open_both: OpenBoth
) -> None:
    both = open_both(exact=False)
    (inner,) = kafka_broker.compress([b"".join(forge.message(magic, offset=n) for n in offsets)], "gzip", magic=magic)
    for offset in (0, 2, 9):
        both.append(forge.message(magic, None, inner, attributes=1, offset=offset))
    both.close()


@pytest.mark.parametrize("codec", ["none", "gzip", "lz4"])
@pytest.mark.parametrize("magic", [0, 1])
def test_old_messages_are_converted_as_one_batch(magic: int, codec: Codec, open_both: OpenBoth) -> None:
    both = open_both(exact=codec == "none")
    messages = batch(5, magic=magic, codec=codec, step_ms=3)
    assert both.append(messages) == Appended(0, 4, -1, 0)
    assert both.append(batch(magic=magic)) == Appended(5, 5, -1, 0)
    first, second = read_batches(_stored(both))
    assert (first.magic, first.count, first.codec.name.lower()) == (2, 5, codec)
    assert second.max_timestamp_ms == (TIME_MS if magic else -1)
    both.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", ["producer", "zstd"])
def test_control_batches_stay_as_they_are(target: str, kind: str, open_both: OpenBoth) -> None:
    both = open_both(compression_type=target, message_timestamp_type=kind, **ANY_TIME)
    specs = [spec for spec, _ in generate(seed=50, count=600) if spec.control and spec.codec == "none"]
    for spec in specs:
        data = build(replace(spec, base_offset=0, transactional=False, producer_id=-1, producer_epoch=-1))
        assert isinstance(both.append(data, origin="COORDINATOR"), Appended)
    stored = list(read_batches(_stored(both)))
    assert len(stored) == len(specs) > 5
    assert all(found.is_control for found in stored)
    both.close()


def test_the_delete_horizon_of_a_client_is_forgotten_or_kept_as_in_kafka(open_both: OpenBoth) -> None:
    for codec in ("none", "gzip"):
        both = open_both(**ANY_TIME)
        data = stamped(TIME_MS, TIME_MS + 1, codec=codec, delete_horizon_ms=TIME_MS + 50)
        both.append(data)
        both.append(changed(data, max_timestamp_ms=0))
        for found in read_batches(_stored(both)):
            assert bool(found.attributes & Attributes.DELETE_HORIZON) == (found.delete_horizon_ms is not None)
        both.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", TYPES)
def test_batches_of_all_kinds_are_stored_alike(target: str, kind: str, open_both: OpenBoth) -> None:
    both = open_both(compression_type=target, message_timestamp_type=kind, exact=False, **ANY_TIME)
    for identity, (spec, _) in enumerate(generate(seed=51, count=100)):
        gaps = any(record.offset is not None for record in spec.records)
        if spec.control or spec.timestamp_type == "LogAppendTime" or gaps:
            continue
        spec = replace(spec, base_offset=0)
        if spec.producer_id >= 0:
            spec = replace(spec, producer_id=identity, producer_epoch=0)
        assert isinstance(both.append(build(spec)), Appended), spec
    both.close()


@pytest.mark.parametrize("kind", KINDS)
def test_several_batches_at_once_are_as_one_after_the_other(kind: str, open_both: OpenBoth) -> None:
    """Kafka takes one batch at a time from a client; several are ours alone, each judged as if it came by itself.

    They stay together in a segment, as what a follower gets does in Kafka, so there are no rolls here.
    """
    both = open_both(index_interval_bytes=200, message_timestamp_type=kind)
    random = Random(52)
    for _ in range(20):
        batches = [
            batch(random.choice((1, 3)), timestamp_ms=TIME_MS + random.randrange(100), codec=random.choice(CODECS))
            for _ in range(random.choice((1, 2, 5)))
        ]
        told = [both.kafka.append(data) for data in batches]
        appended = both.octavo.append(b"".join(batches))
        assert (appended.base_offset, appended.last_offset) == (told[0].base_offset, told[-1].last_offset)
        both.check()
        both.now_ms += 10
    both.close()
