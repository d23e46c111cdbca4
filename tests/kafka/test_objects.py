"""What our objects write Kafka reads, and what Kafka writes our objects read, field by field."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from random import Random
from typing import Any, Final

import pytest

from octavo.errors import FormatError, InvalidInput
from octavo.records.builder import empty_batch
from octavo.records.checksum import crc_of
from octavo.records.control import control_batch, end_transaction_marker, read_control, write_control
from octavo.records.kernels.varint import read_varint, read_varlong, write_varint
from octavo.records.layout import BATCH_HEADER, TimestampType
from octavo.records.partition import murmur2, partition_for_key
from octavo.records.reader import read_batches
from octavo.records.record import Record
from octavo.records.sequence import decrement_sequence, increment_sequence
from octavo.records.text import read_text
from tests.batches import TIME_MS, assert_agrees, build, control_content, generate, generate_kinds
from tests.kafka.answers import BatchSpec, RecordSpec
from tests.kafka.judge import Fault, Judge, KafkaError

SEED: Final = 20_241_025
COUNT: Final = 2200


@pytest.fixture(scope="module")
def specs() -> list[tuple[BatchSpec, list[Record]]]:
    return list(generate(SEED, COUNT))


def test_the_generated_batches_hold_every_combination_many_times() -> None:
    assert 20 * len(generate_kinds()) <= COUNT


def test_kafka_reads_what_we_write(specs: list[tuple[BatchSpec, list[Record]]], kafka: Judge) -> None:
    built = [build(spec) for spec, _ in specs]
    for (_, records), data, reading in zip(specs, built, kafka.read_many(built), strict=True):
        assert reading.fault is None
        assert reading.size == len(data)
        batches = list(read_batches(data))
        assert len(batches) == len(reading.batches)
        for batch, told in zip(batches, reading.batches, strict=True):
            assert_agrees(batch, told)
        assert [record for batch in batches for record in batch] == records


def test_we_read_what_kafka_writes(specs: list[tuple[BatchSpec, list[Record]]], kafka: Judge, kafka39: Judge) -> None:
    for judge, magics in ((kafka, {2}), (kafka39, {0, 1})):
        asked = [(spec, records) for spec, records in specs if spec.magic in magics]
        built = judge.build_many([spec for spec, _ in asked])
        for (spec, records), data, reading in zip(asked, built, judge.read_many(built), strict=True):
            batches = list(read_batches(data))
            for batch, told in zip(batches, reading.batches, strict=True):
                assert_agrees(batch, told)
            assert [record for batch in batches for record in batch] == records
            if spec.codec == "none":
                assert build(spec) == data


@pytest.mark.parametrize("timestamp_type", [TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME])
@pytest.mark.parametrize(
    ("transactional", "control", "producer"),
    [
        (False, False, (-1, -1, -1)),
        (False, False, (1000, 3, 20)),
        (True, False, (2**63 - 1, 2**15 - 1, 2**31 - 1)),
        (True, True, (1000, 3, -1)),
    ],
)
def test_an_empty_batch_is_the_same_as_kafkas(
    transactional: bool, control: bool, producer: tuple[int, int, int], timestamp_type: TimestampType, kafka: Judge
) -> None:
    producer_id, producer_epoch, base_sequence = producer
    fields: dict[str, Any] = {
        "base_offset": 10,
        "last_offset": 14,
        "producer_id": producer_id,
        "producer_epoch": producer_epoch,
        "base_sequence": base_sequence,
        "leader_epoch": 2,
        "transactional": transactional,
        "control": control,
    }
    ours = empty_batch(timestamp_type=timestamp_type, max_timestamp_ms=TIME_MS, **fields)
    append_time = timestamp_type == TimestampType.LOG_APPEND_TIME
    name: Any = "LogAppendTime" if append_time else "CreateTime"
    assert ours == kafka.empty(timestamp_ms=TIME_MS, timestamp_type=name, **fields)
    (batch,) = read_batches(ours)
    assert_agrees(batch, kafka.read(ours).batches[0])
    assert list(batch) == []


@pytest.mark.parametrize("commit", [True, False])
def test_the_end_of_a_transaction_is_the_same_as_kafkas(commit: bool, kafka: Judge) -> None:
    fields: dict[str, Any] = {
        "offset": 5,
        "timestamp_ms": TIME_MS,
        "leader_epoch": 2,
        "producer_id": 1000,
        "producer_epoch": 3,
        "coordinator_epoch": 7,
    }
    ours = end_transaction_marker(commit, **fields)
    assert ours == kafka.end_transaction("COMMIT" if commit else "ABORT", **fields)
    assert len(ours) == 78


def test_control_records_say_the_same_to_kafka(kafka: Judge) -> None:
    random = Random(SEED)
    contents = [control_content(random) for _ in range(200)]
    built = [
        end_transaction_marker(
            content.type.name == "COMMIT",
            timestamp_ms=TIME_MS,
            producer_id=1,
            producer_epoch=0,
            coordinator_epoch=content.coordinator_epoch,
        )
        if hasattr(content, "coordinator_epoch")
        else control_batch([content], timestamp_ms=TIME_MS, leader_epoch=1)
        for content in contents
    ]
    for content, data, reading in zip(contents, built, kafka.read_many(built), strict=True):
        assert reading.fault is None
        (told,) = reading.records
        assert told.control_type == content.type.name
        assert told.control is not None
        key, value = write_control(content)
        assert (told.key, told.value) == (key, value)
        (record,) = next(read_batches(data))
        assert read_control(record) == content
        if told.control_type not in ("COMMIT", "ABORT"):
            kind: Any = told.control_type
            assert kafka.control(kind, told.control, timestamp_ms=TIME_MS, leader_epoch=1) == data


def test_kafka_and_we_judge_the_same_damage_alike(kafka: Judge) -> None:
    """Batches of magic 2 with bytes changed and the checksum put right: read alike, or refused by both."""
    random = Random(SEED)
    damaged = []
    for spec, _ in generate(SEED + 1, 900):
        changed = bytearray(build(spec))
        if spec.magic < 2 or len(changed) > 4000:
            continue
        for _ in range(random.choice((1, 1, 2, 3))):
            at = random.choice((BATCH_HEADER.at("attributes"), BATCH_HEADER.size)) + random.randrange(40)
            at = min(at, len(changed) - 1)
            changed[at] = random.choice((0, 1, 2, 0x7F, 0x80, 0xFF, changed[at] ^ 1, random.randrange(256)))
        crc_at = BATCH_HEADER.at("crc")
        changed[crc_at : crc_at + 4] = crc_of(memoryview(changed), 2).to_bytes(4, "big")
        damaged.append(bytes(changed))
    refused = 0
    for data, reading in zip(damaged, kafka.read_many(damaged), strict=True):
        (batch,) = read_batches(data)
        try:
            records = list(batch)
            if batch.is_control:
                for record in records:
                    read_control(record)
        except FormatError:
            assert reading.fault is not None, data.hex()
            refused += 1
        else:
            assert reading.fault is None or batch.count == 0, data.hex()
            assert reading.fault or [record.value for record in reading.records] == [r.value for r in records]
            assert reading.fault or [record.offset for record in reading.records] == [r.offset for r in records]
    assert len(damaged) / 4 < refused < len(damaged)


def _records(**fields: Any) -> list[RecordSpec]:
    return [RecordSpec(key=b"k", value=b"v"), RecordSpec(key=b"k", value=b"v", **fields)]


@pytest.mark.parametrize(
    "spec",
    [
        BatchSpec(magic=1, codec="zstd"),
        BatchSpec(magic=1, transactional=True, producer_id=1, producer_epoch=0, base_sequence=0),
        BatchSpec(magic=1, producer_id=1, producer_epoch=0, base_sequence=0),
        BatchSpec(magic=1, control=True),
        BatchSpec(magic=1, delete_horizon_ms=5),
        BatchSpec(magic=0, records=_records(headers=[("h", None)])),
        BatchSpec(magic=1, records=_records(offset=2**31)),
        BatchSpec(transactional=True),
        BatchSpec(producer_id=1, base_sequence=0),
        BatchSpec(producer_id=1, producer_epoch=0),
        BatchSpec(records=_records(timestamp_ms=-2)),
        BatchSpec(records=_records(offset=0)),
        BatchSpec(records=_records(offset=2**31)),
        BatchSpec(control=True, records=[RecordSpec(key=b"\0\0\0\7", value=b"")]),
        BatchSpec(control=True, records=[RecordSpec(key=b"\0\0\0", value=b"")]),
        BatchSpec(control=True, records=[RecordSpec(key=b"\xff\0\0\0", value=b"")]),
    ],
)
def test_we_refuse_what_kafkas_builder_refuses(spec: BatchSpec, kafka39: Judge) -> None:
    with pytest.raises(KafkaError, match=r"IllegalArgumentException|InvalidRecordException"):
        kafka39.build(spec)
    with pytest.raises(InvalidInput):
        build(spec)


def test_header_keys_read_as_in_java(kafka: Judge) -> None:
    classes = bytes.fromhex("41 7f 80 8f 90 9f a0 bf c0 c2 df e0 e1 ed ef f0 f1 f4 f5 ff")
    sequences = [bytes(chosen) for length in (1, 2, 3) for chosen in product(classes, repeat=length)]
    surrogates = [bytes((*chosen, *rest)) for chosen in product(b"\xe1\xed\xf0", b"\xa0\xbf") for rest in ((), (0x80,))]
    sequences += [a + b + c for a, b, c in product(surrogates, surrogates, (b"", b"A", b"\x80", b"\xed\xa0"))]
    assert [read_text(sequence) for sequence in sequences] == kafka.utf8(sequences)


def test_keys_hash_as_in_kafka(kafka: Judge) -> None:
    random = Random(SEED)
    keys = [random.randbytes(size) for size in range(70)] + [b"\xff" * size for size in range(9)]
    for partitions in (1, 3, 1000):
        ours = [(murmur2(key), partition_for_key(key, partitions)) for key in keys]
        assert ours == kafka.murmur2(keys, partitions)


def test_sequences_count_as_in_kafka(kafka: Judge) -> None:
    numbers = (0, 1, 2, 5, 1000, 2**30, 2**31 - 2, 2**31 - 1)
    pairs = [*product(numbers, numbers), (5, -1), (0, -(2**31)), (-7, 3), (2**31 - 1, -5)]
    ours = [(increment_sequence(*pair), decrement_sequence(*pair)) for pair in pairs]
    assert ours == kafka.sequence(pairs)


@pytest.mark.parametrize("long", [False, True])
def test_varints_are_kafkas(long: bool, kafka: Judge) -> None:
    width = 63 if long else 31
    numbers = [sign * (2**bit + more) for bit in range(width) for sign in (1, -1) for more in (-1, 0, 1)]
    numbers += [2**width - 1, -(2**width)]
    for number, stored in zip(numbers, kafka.write_varints(numbers, long=long), strict=True):
        out = bytearray(10)
        assert out[: write_varint(out, 0, number)] == stored
    read: Callable[[bytes, int, int], tuple[int, int]] = read_varlong if long else read_varint
    random = Random(SEED)
    odd = [random.randbytes(size) for size in range(12) for _ in range(20)]
    odd += [b"\xff" * size + bytes((last,)) for size in range(11) for last in (0, 1, 0x0F, 0x7F, 0x80)]
    for data, told in zip(odd, kafka.read_varints(odd, long=long), strict=True):
        number, end = read(data, 0, len(data))
        assert (end < 0) == isinstance(told, Fault), data.hex()
        if not isinstance(told, Fault):
            assert (number, end) == told, data.hex()
