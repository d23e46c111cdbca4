"""Apache Kafka as the judge: ask it to write and to read batches.

    def test_kafka_reads_what_we_write(kafka: Judge) -> None:  # or kafka_broker, kafka39
        reading = kafka.read(our_bytes)                        # read_many([...]) for thousands
        assert reading.fault is None                           # or Fault("...CorruptRecordException", "...")
        assert reading.batches[0].records[0].key == b"k"

    def test_we_read_what_kafka_writes(kafka: Judge) -> None:
        record = RecordSpec(timestamp_ms=1, key=b"k", value=None, headers=[("h", b"")])
        data = kafka.build(BatchSpec(records=[record], codec="zstd"))    # build_many([...]) for thousands

`kafka` is the newest client library, whose builder still writes every magic; `kafka39` the last release line
that converts down to magic 0 and 1; `kafka_broker` the newest release with a broker, for `validate`.

What else can be asked: `control` and `end_transaction` (control batches), `empty` (what compaction leaves),
`compress`, `decompress`, `validate` (LogValidator: up-conversion, change of codec), `down_convert`, `utf8`,
`murmur2`, `sequence`, `read_varints`, `write_varints`. Where Kafka throws, `KafkaError` carries the class and
the message; `read_many`, `decompress` and `read_varints` give a `Fault` in place of the one answer.

One process answers any number of questions; methods that take lists cut them into questions of a few
megabytes. Thousands of batches take seconds (measured: about 2,500 of 15 records a second, each way).
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from tests.kafka import releases
from tests.kafka.answers import (
    BatchSpec,
    Codec,
    ControlType,
    Fault,
    KafkaError,
    ReadBatch,
    Reading,
    ReadRecord,
    RecordSpec,
    TimestampTypeName,
    Validated,
)

__all__ = [
    "BatchSpec",
    "Codec",
    "ControlType",
    "Fault",
    "Judge",
    "KafkaError",
    "ReadBatch",
    "ReadRecord",
    "Reading",
    "RecordSpec",
    "TimestampTypeName",
    "Validated",
]

_QUESTION_ITEMS = 2000
_QUESTION_BYTES = 4 << 20

T = TypeVar("T")

Bytes = bytes | bytearray | memoryview


class Judge:
    """A process of one Kafka release. A context manager; not for use by several threads."""

    def __init__(self, name: releases.Name = "newest", options: Sequence[str] = releases.QUICK) -> None:
        """Starts the process, compiled first if need be; raises `KafkaUnavailable` where it cannot be had."""
        self.release = releases.find(name)
        command = releases.command(self.release, options)
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed by close)
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors)

    @property
    def version(self) -> str:
        """The version as Kafka itself tells it."""
        return str(self.ask("version"))

    def close(self) -> None:
        """Ends the process: it goes when its input ends, and is killed where it hangs."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._errors.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def ask(self, op: str, **question: Any) -> Any:
        """One question in the words of Judge.java; raises `KafkaError` where Kafka throws."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        line = json.dumps({"op": op, **question}, separators=(",", ":"))
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
            answer = json.loads(self._process.stdout.readline())
        except (BrokenPipeError, ValueError) as error:
            self._errors.seek(0)
            raise RuntimeError(f"the judge died: {self._errors.read()[-4000:].decode()}") from error
        if "error" in answer:
            raise KafkaError(Fault.of(answer))
        return answer["result"]

    # Writing

    def build(self, batch: BatchSpec) -> bytes:
        """The batch as Kafka's MemoryRecordsBuilder makes it; no bytes where there are no records."""
        return self.build_many([batch])[0]

    def build_many(self, batches: Iterable[BatchSpec]) -> list[bytes]:
        """The bytes of each batch."""
        built: list[bytes] = []
        for part in _parts(batches, BatchSpec.weight):
            built += map(b64decode, self.ask("build", batches=[batch.question() for batch in part]))
        return built

    def end_transaction(
        self,
        kind: Literal["COMMIT", "ABORT"],
        *,
        offset: int = 0,
        timestamp_ms: int = 0,
        leader_epoch: int = -1,
        producer_id: int = 1,
        producer_epoch: int = 0,
        coordinator_epoch: int = 0,
    ) -> bytes:
        """A transaction's marker."""
        return b64decode(
            self.ask(
                "control",
                type=kind,
                offset=offset,
                timestamp=timestamp_ms,
                leaderEpoch=leader_epoch,
                producerId=producer_id,
                producerEpoch=producer_epoch,
                coordinatorEpoch=coordinator_epoch,
            )
        )

    def control(
        self,
        kind: ControlType,
        value: dict[str, Any],
        *,
        offset: int = 0,
        timestamp_ms: int = 0,
        leader_epoch: int = 0,
    ) -> bytes:
        """A control batch of KRaft; `value` in Kafka's JSON for it, as `ReadRecord.control` has it."""
        question = {"type": kind, "value": value, "offset": offset}
        return b64decode(self.ask("control", **question, timestamp=timestamp_ms, leaderEpoch=leader_epoch))

    def empty(
        self,
        *,
        base_offset: int,
        last_offset: int,
        timestamp_ms: int = -1,
        timestamp_type: TimestampTypeName = "CreateTime",
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        leader_epoch: int = -1,
        transactional: bool = False,
        control: bool = False,
    ) -> bytes:
        """The batch of magic 2 without records that compaction leaves behind."""
        return b64decode(
            self.ask(
                "empty",
                magic=2,
                baseOffset=base_offset,
                lastOffset=last_offset,
                timestamp=timestamp_ms,
                timestampType=timestamp_type,
                producerId=producer_id,
                producerEpoch=producer_epoch,
                baseSequence=base_sequence,
                leaderEpoch=leader_epoch,
                transactional=transactional,
                control=control,
            )
        )

    # Reading

    def read(self, data: Bytes, *, check: bool = True) -> Reading:
        """What Kafka finds in `data`. Without `check` checksums are not looked at."""
        return self.read_many([data], check=check)[0]

    def read_many(self, buffers: Iterable[Bytes], *, check: bool = True) -> list[Reading]:
        """What Kafka finds in each buffer."""
        readings: list[Reading] = []
        for part in _parts(buffers, len):
            readings += map(Reading.of, self.ask("read", buffers=_encoded(part), check=check))
        return readings

    # Converting

    def validate(
        self,
        data: Bytes,
        *,
        codec: Codec = "none",
        level: int | None = None,
        magic: int = 2,
        first_offset: int = 0,
        now_ms: int = 0,
        timestamp_type: TimestampTypeName = "CreateTime",
        leader_epoch: int = 0,
        compacted: bool = False,
        origin: Literal["CLIENT", "COORDINATOR", "REPLICATION", "RAFT_LEADER"] = "CLIENT",
    ) -> Validated:
        """What LogValidator makes of produced records: offsets, magic and codec changed. Not of `newest`."""
        answer = self.ask(
            "validate",
            buffer=_base64(data),
            codec=codec,
            level=level,
            magic=magic,
            firstOffset=first_offset,
            now=now_ms,
            timestampType=timestamp_type,
            leaderEpoch=leader_epoch,
            compacted=compacted,
            origin=origin,
        )
        return Validated(b64decode(answer["bytes"]), answer["maxTimestamp"], answer["sizeMayHaveChanged"])

    def down_convert(self, data: Bytes, magic: int, first_offset: int = 0) -> bytes:
        """What a consumer of `magic` that asks for `first_offset` is sent. Only `legacy`."""
        return b64decode(self.ask("downconvert", buffer=_base64(data), magic=magic, firstOffset=first_offset))

    def compress(
        self, buffers: Iterable[Bytes], codec: Codec, *, magic: int = 2, level: int | None = None
    ) -> list[bytes]:
        """Each buffer as one stream of Kafka's codec."""
        streams: list[bytes] = []
        for part in _parts(buffers, len):
            question = {"buffers": _encoded(part), "codec": codec, "level": level, "magic": magic}
            streams += map(b64decode, self.ask("compress", **question))
        return streams

    def decompress(self, streams: Iterable[Bytes], codec: Codec, *, magic: int = 2) -> list[bytes | Fault]:
        """What each stream holds, or the exception that reading it ends in."""
        return [
            Fault.of(answer) if "error" in answer else b64decode(answer["bytes"])
            for part in _parts(streams, len)
            for answer in self.ask("decompress", buffers=_encoded(part), codec=codec, magic=magic)
        ]

    # Arithmetic

    def utf8(self, buffers: Iterable[Bytes]) -> list[str]:
        """Each buffer as the String that Java makes of it."""
        return [text for part in _parts(buffers, len) for text in self.ask("utf8", buffers=_encoded(part))]

    def murmur2(self, keys: Iterable[Bytes], partitions: int = 1) -> list[tuple[int, int]]:
        """Hash (signed) and partition of each key."""
        return [
            (value, partition)
            for part in _parts(keys, len)
            for value, partition in self.ask("murmur2", buffers=_encoded(part), partitions=partitions)
        ]

    def sequence(self, pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """For each (sequence, step) the sequence that many steps later, and that many steps before."""
        return [(up, down) for up, down in self.ask("sequence", pairs=pairs)]

    def write_varints(self, values: Sequence[int], *, long: bool = False) -> list[bytes]:
        """Each number as a zig-zag varint, or varlong."""
        return [b64decode(answer) for answer in self.ask("varint", write=values, long=long)]

    def read_varints(
        self, buffers: Iterable[Bytes], *, long: bool = False, stream: bool = False
    ) -> list[tuple[int, int] | Fault]:
        """The number at the start of each buffer and its size; by the reader for streams, if `stream`."""
        return [
            Fault.of(answer) if "error" in answer else (answer["value"], answer["size"])
            for part in _parts(buffers, len)
            for answer in self.ask("varint", read=_encoded(part), long=long, stream=stream)
        ]


def _base64(data: Bytes) -> str:
    return b64encode(data).decode("ascii")


def _encoded(buffers: Iterable[Bytes]) -> list[str]:
    return [_base64(buffer) for buffer in buffers]


def _parts(items: Iterable[T], weight: Callable[[T], int]) -> Iterator[list[T]]:
    """Cuts `items` so that no question gets too large."""
    part: list[T] = []
    size = 0
    for item in items:
        part.append(item)
        size += weight(item)
        if len(part) >= _QUESTION_ITEMS or size >= _QUESTION_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part
