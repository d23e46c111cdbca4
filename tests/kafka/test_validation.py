"""`Validator` against Kafka's own log: what is refused, with which code and for which records, and what is appended.

The same bytes are appended to a `UnifiedLog` of Kafka's and judged by ours. Where Kafka appends, the bytes in its file
are those that ours would write; what depends on a compressor is compared decompressed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

import pytest

from octavo.errors import AppendRefused
from octavo.log.append.validator import Validator
from octavo.log.config.log_config import LogConfig
from octavo.log.origin import Origin
from octavo.records import Codec, read_batches
from octavo.records.compression import compress
from octavo.records.layout import BATCH_HEADER, MAGIC_AT
from tests.batches import TIME_MS, build, generate
from tests.corruption import forge
from tests.kafka.judge import Judge
from tests.kafka.unified_log import Origin as OriginName
from tests.kafka.unified_log import Refused, UnifiedLog

EPOCH: Final = 3
DAY_MS: Final = 86_400_000
STATE_CODES: Final = {45, 47, 48, 51}  # what the state of producers is refused with, behind all that is compared here
_CODEC_AT: Final = BATCH_HEADER.at("attributes") + 1
LAX: Final = {"message.timestamp.after.max.ms": str(2**63 - 1)}

CONFIGS: Final[dict[str, dict[str, str]]] = {
    "as it comes": LAX,
    "append time": {"message.timestamp.type": "LogAppendTime"},
    "compacted": {"cleanup.policy": "compact", **LAX},
    "limited times": {"message.timestamp.before.max.ms": "20000", "message.timestamp.after.max.ms": "100"},
    "limited times, compacted": {"message.timestamp.before.max.ms": "0", "cleanup.policy": "compact,delete"},
    "small batches": {"max.message.bytes": "400", **LAX},
    "uncompressed": {"compression.type": "uncompressed", **LAX},
    "gzip, append time": {"compression.type": "gzip", "message.timestamp.type": "LogAppendTime"},
    "snappy": {"compression.type": "snappy", **LAX},
    "lz4": {"compression.type": "lz4", "compression.lz4.level": "3", **LAX},
    "zstd, small batches": {"compression.type": "zstd", "max.message.bytes": "400", **LAX},
}


class Case(NamedTuple):
    """What to append."""

    name: str
    data: bytes
    origin: OriginName = "CLIENT"


class Outcome(NamedTuple):
    """What became of it."""

    code: int  # 0: appended
    records: tuple[int, ...]  # the indexes of those at fault
    written: object  # what is in the log


def sizes(folder: Path) -> dict[Path, int]:
    """Of the segments of a log."""
    return {path: path.stat().st_size for path in sorted(folder.glob("*.log"))}


def written_since(folder: Path, before: dict[Path, int]) -> bytes:
    """What has been appended, perhaps to a new segment."""
    return b"".join(
        path.read_bytes()[before.get(path, 0) :] for path, size in sizes(folder).items() if size != before.get(path)
    )


class Pair:
    """A log of Kafka's, and our validator for one like it."""

    def __init__(self, judge: Judge, folder: Path, properties: dict[str, str]) -> None:
        self._theirs = UnifiedLog.open(judge, folder / "topic-0", properties, clock=lambda: TIME_MS)
        self._theirs.become_leader(EPOCH)
        self._folder = folder / "topic-0"
        self._ours = Validator(LogConfig.from_properties(properties))
        self._end_offset = 0

    def close(self) -> None:
        self._theirs.abandon()

    def compare(self, case: Case) -> int:
        """Both do the same; says with which code."""
        end_offset = self._end_offset
        theirs = self._ask_kafka(case)
        if theirs.code in STATE_CODES:
            return theirs.code
        ours = self._ask_ours(case, end_offset)
        assert ours == theirs, f"{case.name}, from a {case.origin.lower()}: {ours} where Kafka has {theirs}"
        return ours.code

    def _ask_kafka(self, case: Case) -> Outcome:
        before = sizes(self._folder)
        try:
            appended = self._theirs.append(case.data, origin=case.origin)
        except Refused as refusal:
            return Outcome(refusal.code, tuple(index for index, _ in refusal.records), None)
        written = written_since(self._folder, before)
        if written:
            self._end_offset = appended.last_offset + 1
        return Outcome(0, (), self._compared(case, written))

    def _ask_ours(self, case: Case, end_offset: int) -> Outcome:
        sent = bytes(case.data)
        try:
            validated = self._ours.assign(
                case.data, offset=end_offset, leader_epoch=EPOCH, now_ms=TIME_MS, origin=Origin[case.origin]
            )
        except AppendRefused as refusal:
            return Outcome(refusal.code, tuple(error.record_index for error in refusal.record_errors), None)
        finally:
            assert case.data == sent
        written = b"".join(validated.parts)
        assert validated.size == len(written)
        batches = list(read_batches(written))
        assert [
            (batch.size, batch.base_offset, batch.last_offset, batch.max_timestamp_ms, batch.leader_epoch, batch.magic)
            for batch in batches
        ] == validated.spans
        return Outcome(0, (), self._compared(case, written))

    @staticmethod
    def _compared(case: Case, written: bytes) -> object:
        """What must be the same in both: the bytes where records stayed as they were, else what they say."""
        if not written or (case.data[MAGIC_AT] == 2 and case.data[_CODEC_AT] & 7 == written[_CODEC_AT] & 7):
            return written
        (batch,) = read_batches(written)
        return BATCH_HEADER.read(written)._replace(length=0, crc=0), list(batch)


@pytest.fixture(params=CONFIGS)
def pair(kafka_broker: Judge, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Pair]:
    pair = Pair(kafka_broker, tmp_path, CONFIGS[request.param])
    yield pair
    pair.close()


def produced(seed: int, count: int) -> Iterator[Case]:
    """Sound batches of every magic, codec and shape."""
    for number, (spec, _) in enumerate(generate(seed, count)):
        if spec.producer_id >= 0:
            spec = replace(spec, producer_id=10_000 + number)  # of whom Kafka knows nothing yet
        if spec.magic == 2 and number % 7:
            moved = [replace(record, offset=None) for record in spec.records]
            spec = replace(spec, base_offset=0, last_offset=None, records=moved)
        yield Case(f"batch {number}, {replace(spec, records=())}", build(spec))


MAX: Final = 2**31 - 1
MAX_LONG: Final = 2**63 - 1

HEADER_LIES: Final[dict[str, tuple[int, ...]]] = {
    "base_offset": (1, -1, MAX_LONG),
    "length": (-1, 0, 13, 14, 15, 48, 49, MAX),
    "leader_epoch": (-1, 0, EPOCH, EPOCH + 1),
    "magic": (0, 1, 3, -1),
    "crc": (0,),
    "attributes": (1, 4, 5, 6, 7, 8, 0x10, 0x20, 0x30, 0x40, 0x48, 0x80, 0x88, 0x100, 0x7F00, -(2**15)),
    "last_offset_delta": (-1, 0, 1, 3, MAX, -(2**31)),
    "base_timestamp_ms": (-1, -2, 0, -(2**63), MAX_LONG, TIME_MS - DAY_MS, TIME_MS + DAY_MS),
    "max_timestamp_ms": (-1, -2, 0, -(2**63), MAX_LONG, TIME_MS + 1),
    "producer_id": (0, 77, -2, -(2**63), MAX_LONG),
    "producer_epoch": (0, -2),
    "base_sequence": (0, 5, -2, MAX),
    "record_count": (-1, 0, 1, 2, 4, MAX, -(2**31)),
}

RECORD_LIES: Final[dict[str, dict[str, Any]]] = {
    "sound": {},
    "length too small": {"length": 3},
    "length negative": {"length": -1},
    "length 0": {"length": 0},
    "length too large": {"length": 2**20},
    "length by one too large": {"length": 10},
    "no key, any negative length": {"key": None, "key_length": -7},
    "no key": {"key": None},
    "empty key": {"key": b""},
    "no value, any negative length": {"value": None, "value_length": -7},
    "key too long": {"key_length": 500},
    "value too long": {"value_length": 2**31 - 1},
    "header count negative": {"header_count": -1},
    "header count too large": {"header_count": 3},
    "header count huge": {"header_count": 2**31 - 1},
    "header": {"headers": [forge.header()]},
    "headers": {"headers": [forge.header(), forge.header(b"", None)]},
    "header key negative": {"headers": [forge.header(b"", key_length=-1)]},
    "header value negative": {"headers": [forge.header(b"h", None, value_length=-9)]},
    "header value too long": {"headers": [forge.header(value_length=99)]},
    "timestamp delta unending": {"timestamp_delta": forge.UNENDING},
    "timestamp delta long": {"timestamp_delta": 2**62},
    "timestamp delta before": {"timestamp_delta": -5000},
    "timestamp delta overflows": {"timestamp_delta": -(2**63)},
    "timestamp of none": {"timestamp_delta": -TIME_MS - 1},
    "timestamp below none": {"timestamp_delta": -TIME_MS - 2},
    "offset delta unending": {"offset_delta": forge.UNENDING},
    "offset delta large": {"offset_delta": MAX},
    "offset delta negative": {"offset_delta": -1},
    "key length unending": {"key_length": forge.UNENDING},
    "value length in three bytes": {"value_length": forge.padded_varint(1, 3)},
    "length in five bytes": {"length": forge.padded_varint(8, 5)},
    "header count unending": {"header_count": forge.UNENDING},
}


def header_lies() -> Iterator[Case]:
    """Batches that say in one field, or in two, what is not so, with the checksum of what they say."""
    sound = b"".join(forge.record(offset_delta=number, timestamp_delta=number) for number in range(3))
    lies = [(name, value) for name, values in HEADER_LIES.items() for value in values]
    random = Random(1)
    chosen = [{name: value} for name, value in lies]
    chosen += [dict(random.sample(lies, 2)) for _ in range(250)]
    for number, fields in enumerate(chosen):
        codec = random.choice((0, 0, 0, 1, 3, 4))
        given = {"base_offset": 0, "attributes": codec, "max_timestamp_ms": TIME_MS + 2, **fields}
        if given.get("producer_id", -1) >= 0:
            given = {"producer_epoch": 0, "base_sequence": 0, **given}
            given["producer_id"] = 20_000 + number
        given = {"last_offset_delta": 2, "record_count": 3, **given}
        data = forge.batch(compress(codec, sound), **{"count": 3, **given})
        counted = (
            given["last_offset_delta"] == 2 and given["record_count"] == 3
        )  # others are asked for that by us alone
        origin: OriginName = "COORDINATOR" if counted and number % 3 == 0 else "CLIENT"
        if "crc" in fields:
            data = data[:17] + bytes(4) + data[21:]
        yield Case(f"{fields}, codec {codec}", data, origin)


def record_lies() -> Iterator[Case]:
    """Records that say what is not so, alone, first and last in a batch, compressed and not."""
    for name, lie in RECORD_LIES.items():
        for before, after in ((0, 0), (0, 2), (2, 0), (1, 70)):
            numbered = {"offset_delta": before, **lie}
            records = [forge.record(offset_delta=number) for number in range(before)]
            records.append(forge.record(**numbered))
            records += [forge.record(offset_delta=before + 1 + number) for number in range(after)]
            for codec in Codec:
                data = compress(codec, b"".join(records))
                batch = forge.batch(data, count=len(records), base_offset=0, attributes=int(codec))
                yield Case(f"{name}, behind {before} and before {after}, {codec.name}", batch)


def sets() -> Iterator[Case]:
    """Several messages, tails, and bytes that are no batch."""
    v0, v1 = (b"".join(forge.message(magic, offset=number) for number in range(3)) for magic in (0, 1))
    v2 = forge.batch(forge.record(), count=1, base_offset=0)
    wrapper = forge.message(1, None, compress(Codec.GZIP, v1), attributes=1, offset=2)
    yield Case("nothing", b"")
    for name, data in {"v0": v0, "v1": v1, "v2": v2, "wrapper": wrapper}.items():
        yield Case(name, data)
        for size in (1, 11, 12, 16, 17, 18, len(data) - 1):
            yield Case(f"{name}, cut to {size}", data[:size])
            yield Case(f"{name}, and a tail of {size}", data + v2[:size])
        yield Case(f"{name}, and zeros", data + bytes(20))
    for name, data in {
        "v0 and v1": v0 + v1,
        "v1 and v0": v1 + v0,
        "v1 and v2": v1 + v2,
        "v1 and a wrapper": v1 + wrapper,
        "two wrappers": wrapper + wrapper,
        "a wrapper of v0 in v1": forge.message(1, None, compress(Codec.GZIP, v0), attributes=1),
        "a wrapper of v1 in v0": forge.message(0, None, compress(Codec.LZ4, v1, magic=0), attributes=3),
        "a wrapper in a wrapper": forge.message(1, None, compress(Codec.GZIP, wrapper), attributes=1),
        "a wrapper of nothing": forge.message(1, None, compress(Codec.GZIP, b""), attributes=1),
        "a wrapper without a value": forge.message(1, None, None, attributes=1),
        "a wrapper of zstd": forge.message(1, None, compress(Codec.ZSTD, v1), attributes=4),
        "a wrapper of no codec": forge.message(1, None, v1, attributes=5),
        "a wrapper whose offset is too small": forge.message(1, None, compress(Codec.GZIP, v1), attributes=1, offset=1),
        "a wrapper of a wrong checksum": forge.message(
            1, None, compress(Codec.GZIP, v1[:-1] + b"w"), attributes=1, offset=2
        ),
        "a wrapper with append time": forge.message(1, None, compress(Codec.GZIP, v1), attributes=9, offset=2),
        "a message with append time": forge.message(1, attributes=8),
        "a message of a negative time": forge.message(1, timestamp_ms=-2),
        "a message without a time": forge.message(1, timestamp_ms=-1),
        "a message without a key": forge.message(1, None),
        "a message whose checksum is wrong": v1[:-1] + b"w",
        "a stream that is none": forge.batch(b"no stream", count=1, base_offset=0, attributes=3),
        "a stream that is cut": forge.batch(
            compress(Codec.ZSTD, forge.record())[:-2], count=1, base_offset=0, attributes=4
        ),
    }.items():
        yield Case(name, data)


def numbered() -> Iterator[Case]:
    """Batches with offsets and epochs, for a follower or the leader of a quorum whose log is at offset 100."""

    def batch(base_offset: int, count: int = 2, **fields: Any) -> bytes:
        records = b"".join(forge.record(offset_delta=number) for number in range(count))
        return forge.batch(records, **{"count": count, "base_offset": base_offset, "leader_epoch": EPOCH, **fields})

    for name, data in {
        "next": batch(100),
        "behind a gap": batch(150),
        "before the end": batch(99),
        "around the end": batch(98, 10),
        "two": batch(100) + batch(102),
        "two with a gap": batch(100) + batch(200),
        "two over each other": batch(100, 4) + batch(102, 1),
        "an older epoch": batch(100, leader_epoch=EPOCH - 1),
        "a later epoch": batch(100, leader_epoch=EPOCH + 1),
        "a later epoch behind": batch(100) + batch(102, leader_epoch=EPOCH + 1) + batch(104),
        "no epoch": batch(100, leader_epoch=-1),
        "a large batch": batch(100, 200),
        "a hole in the offsets": batch(100, last_offset_delta=9),
        "control": batch(100, attributes=0x20),
        "no such codec": batch(100, attributes=6),
        "damage": batch(100)[:-1] + b"x",
        "damage behind": batch(100) + batch(102)[:-1] + b"x",
        "zeros behind": batch(100) + bytes(40),
        "a torn tail": batch(100) + batch(102)[:-1],
        "old messages": forge.message(0, offset=100) + forge.message(1, offset=105),
        "old messages before": forge.message(1, offset=99),
        "an old wrapper": forge.message(
            1, None, compress(Codec.GZIP, forge.message(1, offset=0)), offset=100, attributes=1
        ),
        "nothing": b"",
    }.items():
        yield Case(name, data, "RAFT_LEADER")


@pytest.mark.parametrize("as_follower", [True, False])
def test_batches_with_offsets_are_kept_or_refused_as_kafka_does(
    kafka_broker: Judge, tmp_path: Path, as_follower: bool
) -> None:
    properties = {"max.message.bytes": "1000"}
    ours = Validator(LogConfig.from_properties(properties))
    codes: Counter[int] = Counter()
    for number, case in enumerate(numbered()):
        folder = tmp_path / f"topic-{number}"
        theirs = UnifiedLog.open(kafka_broker, folder, properties, clock=lambda: TIME_MS)
        theirs.become_leader(EPOCH)
        theirs.append_as_follower(forge.batch(forge.record(), count=1, base_offset=99, leader_epoch=EPOCH))
        before = sizes(folder)
        code, written = 0, b""
        try:
            if as_follower:
                theirs.append_as_follower(case.data)
            else:
                theirs.append(case.data, origin="RAFT_LEADER")
            written = written_since(folder, before)
        except Refused as refusal:
            code = refusal.code
        theirs.abandon()
        try:
            if as_follower:
                validated = ours.check(case.data, end_offset=100)
            else:
                validated = ours.assign(
                    case.data, offset=100, leader_epoch=EPOCH, now_ms=TIME_MS, origin=Origin.RAFT_LEADER
                )
            outcome = (0, b"".join(validated.parts))
        except AppendRefused as refusal:
            outcome = (int(refusal.code), b"")
        assert outcome == (code, written), case.name
        codes[code] += 1
    assert len(codes) >= 3


def test_batches_that_recovery_would_cut_off_are_refused_where_kafka_appends_them(
    kafka_broker: Judge, tmp_path: Path
) -> None:
    def batch(base_offset: int, **fields: Any) -> bytes:
        records = forge.record() + forge.record(offset_delta=1)
        return forge.batch(records, **{"count": 2, "base_offset": base_offset, "leader_epoch": EPOCH, **fields})

    for number, data in enumerate((batch(0) + batch(1), batch(9, last_offset_delta=-1))):
        theirs = UnifiedLog.open(kafka_broker, tmp_path / f"topic-{number}", {}, clock=lambda: TIME_MS)
        theirs.become_leader(EPOCH)
        theirs.append_as_follower(data)
        theirs.abandon()
        with pytest.raises(AppendRefused):
            Validator(LogConfig()).check(data, end_offset=0)


def _compare_all(pair: Pair, cases: Iterator[Case]) -> Counter[int]:
    return Counter(pair.compare(case) for case in cases)


def test_what_producers_send_is_appended_or_refused_as_kafka_does(pair: Pair) -> None:
    codes = _compare_all(pair, produced(seed=40, count=320))
    assert codes[0] > 60
    assert not STATE_CODES & codes.keys()


def test_headers_that_lie_are_refused_or_mended_as_kafka_does(pair: Pair) -> None:
    codes = _compare_all(pair, header_lies())
    assert codes[0] > 20
    assert codes[87] > 50
    assert codes[2] > 5


def test_records_that_lie_are_refused_as_kafka_does(pair: Pair) -> None:
    codes = _compare_all(pair, record_lies())
    assert codes[87] > 50


def test_sets_of_messages_and_torn_tails_are_taken_as_kafka_does(pair: Pair) -> None:
    codes = _compare_all(pair, sets())
    assert codes[0] > 20
