"""Batches to test with: made up from a seed, built by us, compared with what Kafka reads in them.

    for spec, records in generate(seed, 2000):     # a question to Kafka's builder, and what reading it must give
        data = build(spec)                         # the same by ours

The specs go round through every combination of magic, codec and shape that exists, so that any 200 in a row hold
them all, each with other contents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Any, Final
from uuid import UUID

from octavo.records.batch import Batch
from octavo.records.builder import BatchBuilder
from octavo.records.control import (
    Control,
    ControlType,
    Endpoint,
    EndTransactionMarker,
    KRaftVersion,
    KRaftVoter,
    KRaftVoters,
    LeaderChange,
    QuorumVoter,
    SnapshotFooter,
    SnapshotHeader,
    write_control,
)
from octavo.records.layout import Codec, TimestampType
from octavo.records.record import Header, Record
from octavo.records.sequence import record_sequence
from tests.kafka.answers import BatchSpec, ReadBatch, RecordSpec, TimestampTypeName

TIME_MS: Final = 1_700_000_000_000
MAX_INT32: Final = 2**31 - 1
MAX_INT64: Final = 2**63 - 1

TIMESTAMP_TYPES: Final[dict[TimestampType, TimestampTypeName]] = {
    TimestampType.NONE: "NoTimestampType",
    TimestampType.CREATE_TIME: "CreateTime",
    TimestampType.LOG_APPEND_TIME: "LogAppendTime",
}

_ALPHABET: Final = "abc -_.äß☃🗝\x00"  # one to four bytes in UTF-8


def generate(seed: int, count: int) -> Iterator[tuple[BatchSpec, list[Record]]]:
    """`count` batches: what to ask Kafka's builder for, and the records that reading it gives."""
    random = Random(seed)
    combinations = list(_combinations())
    for number in range(count):
        magic, codec, shape = combinations[number % len(combinations)]
        base_offset = random.choice((0, 0, 1, 12345, 2**40, MAX_INT64 - 2**32))
        spec = BatchSpec(magic=magic, codec=_name(codec), base_offset=base_offset, records=_plain_records(random))
        spec = shape(random, spec)
        yield spec, expected_records(spec)


def generate_kinds() -> list[str]:
    """The names of the combinations that `generate` goes round through."""
    return [f"v{magic}-{codec.name.lower()}-{shape.__name__}" for magic, codec, shape in _combinations()]


def expected_records(spec: BatchSpec) -> list[Record]:
    """The records that reading a batch of `spec` gives, by the rules of the format."""
    records = []
    offset = spec.base_offset
    for record in spec.records:
        offset = offset if record.offset is None else record.offset
        timestamp_ms = record.timestamp_ms
        if spec.timestamp_type == "LogAppendTime":
            timestamp_ms = spec.log_append_time_ms
        records.append(
            Record(
                offset=offset,
                timestamp_ms=timestamp_ms if spec.magic else -1,
                key=record.key,
                value=record.value,
                headers=tuple(Header(key, value) for key, value in record.headers),
                sequence=record_sequence(spec.base_sequence, offset - spec.base_offset),
            )
        )
        offset += 1
    return records


def builder(spec: BatchSpec) -> BatchBuilder:
    """Our builder for `spec`, without records."""
    append_time = spec.timestamp_type == "LogAppendTime"
    return BatchBuilder(
        spec.magic,
        codec=Codec[spec.codec.upper()],
        level=spec.level,
        timestamp_type=TimestampType.LOG_APPEND_TIME if append_time else TimestampType.CREATE_TIME,
        log_append_time_ms=spec.log_append_time_ms,
        base_offset=spec.base_offset,
        leader_epoch=spec.leader_epoch,
        producer_id=spec.producer_id,
        producer_epoch=spec.producer_epoch,
        base_sequence=spec.base_sequence,
        transactional=spec.transactional,
        control=spec.control,
        delete_horizon_ms=None if spec.delete_horizon_ms == -1 else spec.delete_horizon_ms,
    )


def build(spec: BatchSpec) -> bytes:
    """The bytes that our builder makes of `spec`."""
    ours = builder(spec)
    for record in spec.records:
        offset = ours.append(
            record.key, record.value, timestamp_ms=record.timestamp_ms, headers=record.headers, offset=record.offset
        )
        assert offset is not None
    return ours.build(last_offset=spec.last_offset)


def assert_agrees(batch: Batch, told: ReadBatch) -> None:
    """All that we read in a batch is what Kafka read in it."""
    assert told.fault is None
    assert _facts(batch) == {name: getattr(told, name) for name in _facts(batch)}
    if batch.magic == 2:
        assert batch.count == told.count
        assert batch.base_timestamp_ms == told.base_timestamp_ms
    timestamp_type = TIMESTAMP_TYPES[batch.timestamp_type]
    assert list(batch) == [
        Record(
            offset=record.offset,
            timestamp_ms=record.timestamp_ms,
            key=record.key,
            value=record.value,
            headers=tuple(Header(key, value) for key, value in record.headers),
            sequence=record.sequence,
        )
        for record in told.records
    ]
    assert all(record.timestamp_type == timestamp_type for record in told.records)


def _facts(batch: Batch) -> dict[str, Any]:
    """A batch's header in Kafka's words. The count is not among them: Kafka gives none for any old message."""
    return {
        "base_offset": batch.base_offset,
        "last_offset": batch.last_offset,
        "next_offset": batch.next_offset,
        "magic": batch.magic,
        "checksum": batch.crc,
        "valid": batch.is_valid,
        "size": batch.size,
        "codec": batch.codec.name.lower(),
        "timestamp_type": TIMESTAMP_TYPES[batch.timestamp_type],
        "max_timestamp_ms": batch.max_timestamp_ms,
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "base_sequence": batch.base_sequence,
        "last_sequence": batch.last_sequence,
        "transactional": batch.is_transactional,
        "control": batch.is_control,
        "leader_epoch": batch.leader_epoch,
        "delete_horizon_ms": batch.delete_horizon_ms,
    }


# Shapes: each makes a batch of its kind of a plain one.

Shape = Callable[[Random, BatchSpec], BatchSpec]


def _plain(random: Random, spec: BatchSpec) -> BatchSpec:
    return spec


def _headers(random: Random, spec: BatchSpec) -> BatchSpec:
    records = []
    for record in spec.records:
        headers = [(_text(random), _content(random)) for _ in range(random.choice((0, 1, 2, 5, 70)))]
        records.append(replace(record, headers=headers))
    return replace(spec, records=records)


def _nulls_and_empties(random: Random, spec: BatchSpec) -> BatchSpec:
    contents = (None, b"", b"x")
    records = [replace(r, key=random.choice(contents), value=random.choice(contents)) for r in spec.records]
    return replace(spec, records=records)


def _idempotent(random: Random, spec: BatchSpec) -> BatchSpec:
    return replace(
        spec,
        producer_id=random.choice((0, 1000, MAX_INT64)),
        producer_epoch=random.choice((0, 3, 2**15 - 1)),
        base_sequence=random.choice((0, 17, MAX_INT32 - 1, MAX_INT32)),  # the last two wrap around
        leader_epoch=random.choice((-1, 0, MAX_INT32)),
    )


def _transactional(random: Random, spec: BatchSpec) -> BatchSpec:
    return replace(_idempotent(random, spec), transactional=True)


def _control(random: Random, spec: BatchSpec) -> BatchSpec:
    records = []
    for record in spec.records:
        key, value = write_control(control_content(random))
        records.append(replace(record, key=key, value=value))
    spec = _transactional(random, spec) if random.random() < 0.5 else spec
    return replace(spec, control=True, base_sequence=-1, records=records)


def _append_time(random: Random, spec: BatchSpec) -> BatchSpec:
    time_ms = random.choice((-1, 0, TIME_MS + 5000, MAX_INT64))
    return replace(spec, timestamp_type="LogAppendTime", log_append_time_ms=time_ms)


def _delete_horizon(random: Random, spec: BatchSpec) -> BatchSpec:
    return replace(spec, delete_horizon_ms=random.choice((0, TIME_MS - 10_000, TIME_MS + 10_000, MAX_INT64)))


def _negative_deltas(random: Random, spec: BatchSpec) -> BatchSpec:
    times = sorted((random.choice((-1, 0, 1, TIME_MS, MAX_INT64)) for _ in spec.records), reverse=True)
    records = [replace(record, timestamp_ms=time) for record, time in zip(spec.records, times, strict=True)]
    return replace(spec, records=records)


def _gaps(random: Random, spec: BatchSpec) -> BatchSpec:
    """Offsets as compaction leaves them."""
    offset = spec.base_offset + random.choice((0, 3))
    records = []
    for record in spec.records:
        records.append(replace(record, offset=offset))
        offset += random.choice((1, 2, 100, 100_000))
    last_offset = offset + random.choice((0, 10)) if spec.magic == 2 else None
    return replace(spec, records=records, last_offset=last_offset)


_SHAPES: Final[dict[int, tuple[Shape, ...]]] = {
    0: (_plain, _nulls_and_empties, _gaps),
    1: (_plain, _nulls_and_empties, _append_time, _negative_deltas, _gaps),
    2: (
        _plain,
        _headers,
        _nulls_and_empties,
        _idempotent,
        _transactional,
        _control,
        _append_time,
        _delete_horizon,
        _negative_deltas,
        _gaps,
    ),
}


def _combinations() -> Iterator[tuple[int, Codec, Shape]]:
    for magic, shapes in _SHAPES.items():
        for codec in Codec:
            if magic == 2 or codec != Codec.ZSTD:
                for shape in shapes:
                    yield magic, codec, shape


# Contents.


def control_content(random: Random) -> Control:
    """A control record of any type that Kafka 4.4 writes."""
    directory = UUID(int=random.getrandbits(128))
    id_ = random.choice((0, 1, MAX_INT32))
    quorum = tuple(QuorumVoter(id=number) for number in range(random.choice((0, 1, 3))))
    endpoint = Endpoint(name=_text(random), host=_text(random), port=random.choice((0, 9092, 65535)))
    voter = KRaftVoter(id=id_, directory_id=directory, endpoints=(endpoint,), max_supported_version=1)
    return random.choice(
        (
            EndTransactionMarker(type=ControlType.COMMIT, coordinator_epoch=id_),
            EndTransactionMarker(type=ControlType.ABORT, coordinator_epoch=id_),
            LeaderChange(leader_id=id_, voters=quorum, granting_voters=quorum[:1]),
            SnapshotHeader(last_contained_log_timestamp_ms=random.choice((0, TIME_MS, MAX_INT64))),
            SnapshotFooter(),
            KRaftVersion(kraft_version=random.choice((0, 1))),
            KRaftVoters(voters=(voter,) * random.choice((0, 1, 2))),
        )
    )


def _plain_records(random: Random) -> list[RecordSpec]:
    count = random.choice((1, 1, 2, 3, 5, 10, 100))
    return [
        RecordSpec(
            timestamp_ms=TIME_MS + random.choice((0, number, 64 * number, random.randrange(2**33))),
            key=_content(random, largest=40),
            value=_content(random, largest=300 if count > 10 else 3000),
        )
        for number in range(count)
    ]


def _content(random: Random, largest: int = 200) -> bytes | None:
    """Bytes that compress, or do not; sometimes more than a block of any codec."""
    kind = random.random()
    if kind < 0.1:
        return None
    size = random.choice((0, 1, 63, 64, random.randrange(largest)))
    if kind < 0.11 and largest >= 3000:
        size = 70_000
    if kind < 0.5:
        return random.randbytes(size)
    return (b"a value that repeats itself, " * (size // 29 + 1))[:size]


def _text(random: Random) -> str:
    return "".join(random.choices(_ALPHABET, k=random.choice((0, 1, 5, 70))))


def _name(codec: Codec) -> Any:
    return codec.name.lower()
