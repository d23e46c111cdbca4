"""What the golden files hold, as questions to Kafka. Nothing here depends on the clock or on chance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from tests.kafka.judge import BatchSpec, Codec, ControlType, Judge, RecordSpec

TIME_MS: Final = 1_700_000_000_000
PRODUCER_ID: Final = 1000
PRODUCER_EPOCH: Final = 3
CODECS: Final[dict[int, tuple[Codec, ...]]] = {
    0: ("none", "gzip", "snappy", "lz4"),
    1: ("none", "gzip", "snappy", "lz4"),
    2: ("none", "gzip", "snappy", "lz4", "zstd"),
}

DIRECTORY_ID: Final = "dGhlLWZpcnN0LXZvdGVyLg"  # Kafka's text form of a UUID


@dataclass(frozen=True, slots=True)
class Case:
    """One golden file and how it is made. Magic 0 and 1 are left to Kafka 3.9, whose broker stored them."""

    name: str
    about: str
    write: Callable[[Judge], bytes]
    legacy: bool = False


def cases() -> list[Case]:
    """All golden files."""
    return [*_plain(), *_shapes(), *_producers(), *_control(), *_segments()]


def _batch(name: str, about: str, spec: BatchSpec) -> Case:
    return Case(name, about, lambda kafka: kafka.build(spec), legacy=spec.magic < 2)


def _records(count: int = 6) -> list[RecordSpec]:
    return [
        RecordSpec(
            timestamp_ms=TIME_MS + 7 * i,
            key=f"key-{i % 5}".encode(),
            value=f"value {i} that repeats, repeats and repeats".encode(),
        )
        for i in range(count)
    ]


def _nulls_and_empties() -> list[RecordSpec]:
    contents = (None, b"", b"x")
    return [RecordSpec(timestamp_ms=TIME_MS, key=key, value=value) for key in contents for value in contents]


def _headers() -> list[RecordSpec]:
    headers: list[tuple[str, bytes | None]] = [
        ("h", None),
        ("h", b""),
        ("h", b"again"),
        ("", b"empty key"),
        ("ключ-キー-🗝", b"\x00\xff"),
        ("long", b"." * 70),
    ]
    return [
        RecordSpec(timestamp_ms=TIME_MS, key=b"k", value=b"v", headers=headers),
        RecordSpec(timestamp_ms=TIME_MS, value=b"none"),
        RecordSpec(timestamp_ms=TIME_MS, headers=headers[:1]),
    ]


def _plain() -> Iterator[Case]:
    for magic, codecs in CODECS.items():
        for codec in codecs:
            spec = BatchSpec(magic=magic, codec=codec, base_offset=100, records=_records())
            yield _batch(f"v{magic}-{codec}", f"six records of magic {magic}, codec {codec}", spec)
            spec = replace(spec, records=_nulls_and_empties())
            yield _batch(f"v{magic}-{codec}-nulls", "null, empty and one byte, as key and as value", spec)
    for codec in CODECS[2]:
        spec = BatchSpec(codec=codec, records=_headers())
        yield _batch(f"v2-{codec}-headers", "headers: null, empty, repeated, not ASCII", spec)
    levels: dict[Codec, int] = {"gzip": 9, "lz4": 17, "zstd": 19}
    for codec, level in levels.items():
        spec = BatchSpec(codec=codec, level=level, records=_records())
        yield _batch(f"v2-{codec}-level-{level}", f"{codec} at its highest usual level", spec)


def _shapes() -> Iterator[Case]:
    append_time = BatchSpec(records=_records(3), timestamp_type="LogAppendTime", log_append_time_ms=TIME_MS + 5000)
    stored: list[tuple[int, Codec]] = [(1, "none"), (1, "gzip"), (2, "none"), (2, "lz4")]
    for magic, codec in stored:
        spec = replace(append_time, magic=magic, codec=codec)
        yield _batch(f"v{magic}-{codec}-append-time", "all records have the batch's LogAppendTime", spec)
    backwards = [replace(record, timestamp_ms=TIME_MS - 1000 * i) for i, record in enumerate(_records(4))]
    yield _batch("v2-negative-deltas", "each record is older than the one before", BatchSpec(records=backwards))
    extremes = [RecordSpec(timestamp_ms=t, value=b"v") for t in (2**63 - 1, 0, -1, 2**62, 1)]
    yield _batch("v2-extreme-timestamps", "deltas that need all ten bytes of a varlong", BatchSpec(records=extremes))
    sizes = [RecordSpec(timestamp_ms=TIME_MS, key=b"k" * (n % 99), value=b"v" * n) for n in (63, 64, 8192)]
    spec = BatchSpec(codec="zstd", records=sizes)
    yield _batch("v2-zstd-lengths", "lengths as varints of one, two and three bytes", spec)
    horizon = BatchSpec(records=[*_records(2), RecordSpec(timestamp_ms=TIME_MS, key=b"gone")])
    horizon = replace(horizon, delete_horizon_ms=TIME_MS + 86_400_000)
    yield _batch("v2-delete-horizon", "a tombstone with the time from which it may go", horizon)
    gaps = [replace(record, offset=2**40 + 10 * i) for i, record in enumerate(_records(3))]
    for magic in (0, 1, 2):
        spec = BatchSpec(magic=magic, codec="gzip", base_offset=2**40, records=gaps)
        yield _batch(f"v{magic}-gzip-gaps", "offsets with gaps, as after compaction", spec)
    spec = BatchSpec(base_offset=2**40 - 5, last_offset=2**40 + 99, records=gaps)
    yield _batch("v2-gaps", "first and last offset belong to no record, as after compaction", spec)


def _producers() -> Iterator[Case]:
    wrapping = BatchSpec(
        records=_records(4),
        base_offset=7,
        base_sequence=2**31 - 2,
        leader_epoch=5,
        producer_id=PRODUCER_ID,
        producer_epoch=PRODUCER_EPOCH,
    )
    yield _batch("v2-idempotent", "sequence numbers that wrap around", wrapping)
    spec = BatchSpec(
        records=_records(2),
        transactional=True,
        base_sequence=0,
        codec="snappy",
        producer_id=PRODUCER_ID,
        producer_epoch=PRODUCER_EPOCH,
    )
    yield _batch("v2-snappy-transactional", "two records of a transaction", spec)
    spec = replace(spec, codec="none")
    yield _batch("v2-transactional", "two records of a transaction", spec)
    about = "what compaction leaves of a batch: a header for offsets and sequence numbers"
    yield Case("v2-empty", about, lambda kafka: _empty(kafka, control=False))
    yield Case("v2-empty-control", about, lambda kafka: _empty(kafka, control=True))


def _empty(kafka: Judge, control: bool) -> bytes:
    return kafka.empty(
        base_offset=10,
        last_offset=14,
        timestamp_ms=TIME_MS,
        producer_id=PRODUCER_ID,
        producer_epoch=PRODUCER_EPOCH,
        base_sequence=-1 if control else 20,
        leader_epoch=2,
        transactional=control,
        control=control,
    )


def _control() -> Iterator[Case]:
    yield Case("commit", "a transaction's commit marker", _commit)
    yield Case("abort", "a transaction's abort marker", _abort)
    voters = [{"voterId": voter} for voter in (1, 2, 3)]
    change = {"version": 0, "leaderId": 2, "voters": voters, "grantingVoters": voters[1:]}
    yield _kraft("leader-change", "LEADER_CHANGE", change)
    yield _kraft("snapshot-header", "SNAPSHOT_HEADER", {"version": 0, "lastContainedLogTimestamp": TIME_MS - 1})
    yield _kraft("snapshot-footer", "SNAPSHOT_FOOTER", {"version": 0})
    yield _kraft("kraft-version", "KRAFT_VERSION", {"version": 0, "kRaftVersion": 1})
    voter = {
        "voterId": 1,
        "voterDirectoryId": DIRECTORY_ID,
        "endpoints": [{"name": "CONTROLLER", "host": "localhost", "port": 65535}],
        "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": 1},
    }
    yield _kraft("kraft-voters", "KRAFT_VOTERS", {"version": 0, "voters": [voter]})


def _kraft(name: str, kind: ControlType, value: dict[str, Any]) -> Case:
    def write(kafka: Judge) -> bytes:
        return kafka.control(kind, value, offset=42, timestamp_ms=TIME_MS, leader_epoch=9)

    return Case(name, f"KRaft's control record {kind}", write)


def _commit(kafka: Judge) -> bytes:
    return kafka.end_transaction(
        "COMMIT",
        offset=5,
        timestamp_ms=TIME_MS,
        leader_epoch=2,
        coordinator_epoch=7,
        producer_id=PRODUCER_ID,
        producer_epoch=PRODUCER_EPOCH,
    )


def _abort(kafka: Judge) -> bytes:
    return kafka.end_transaction(
        "ABORT",
        offset=6,
        timestamp_ms=TIME_MS,
        coordinator_epoch=8,
        producer_id=PRODUCER_ID,
        producer_epoch=PRODUCER_EPOCH,
    )


def _segments() -> Iterator[Case]:
    yield Case("segment", "a log that has seen every magic and codec", _segment, legacy=True)
    yield Case(
        "segment-torn",
        "the same, whose last batch is not all there",
        lambda kafka: _segment(kafka)[:-9],
        legacy=True,
    )


def _segment(kafka: Judge) -> bytes:
    specs: list[BatchSpec] = []
    offset = 1000
    for magic, codecs in CODECS.items():
        for codec in codecs:
            specs.append(BatchSpec(magic=magic, codec=codec, base_offset=offset, records=_records(3)))
            offset += 3
    transaction = BatchSpec(
        records=_records(2),
        transactional=True,
        base_sequence=0,
        base_offset=offset,
        producer_id=PRODUCER_ID,
        producer_epoch=PRODUCER_EPOCH,
    )
    marker = kafka.end_transaction(
        "ABORT",
        offset=offset + 2,
        timestamp_ms=TIME_MS,
        producer_id=PRODUCER_ID,
        producer_epoch=PRODUCER_EPOCH,
    )
    empty = kafka.empty(
        base_offset=offset + 3,
        last_offset=offset + 9,
        timestamp_ms=TIME_MS,
        producer_id=PRODUCER_ID,
        producer_epoch=PRODUCER_EPOCH,
    )
    last = BatchSpec(records=_headers(), codec="zstd", base_offset=offset + 10, leader_epoch=4)
    return b"".join([*kafka.build_many([*specs, transaction]), marker, empty, kafka.build(last)])
