"""What is asked of the judge and what it answers, typed. Names and units are Octavo's, values are Kafka's."""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

Codec = Literal["none", "gzip", "snappy", "lz4", "zstd"]
TimestampTypeName = Literal["NoTimestampType", "CreateTime", "LogAppendTime"]
ControlType = Literal["LEADER_CHANGE", "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER", "KRAFT_VERSION", "KRAFT_VOTERS"]


@dataclass(frozen=True, slots=True)
class Fault:
    """An exception that Kafka threw."""

    kind: str  # the Java class, with its package
    message: str

    @classmethod
    def of(cls, answer: dict[str, Any]) -> Self:
        return cls(answer["error"]["class"], answer["error"]["message"])

    @property
    def name(self) -> str:
        """The Java class without its package, which differs between releases."""
        return self.kind.rpartition(".")[2]


class KafkaError(Exception):
    """Kafka refused to answer a question."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.fault = fault

    def __str__(self) -> str:
        return f"{self.fault.name}: {self.fault.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSpec:
    """One record to write. `offset` follows the record before it unless given."""

    timestamp_ms: int = 0
    key: bytes | None = None
    value: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    offset: int | None = None

    def question(self) -> dict[str, Any]:
        return {
            "offset": self.offset,
            "timestamp": self.timestamp_ms,
            "key": _encode(self.key),
            "value": _encode(self.value),
            "headers": [[key, _encode(value)] for key, value in self.headers],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSpec:
    """One batch to write. Of magic 0 and 1 without a codec that is one message a record."""

    records: Sequence[RecordSpec] = ()
    magic: int = 2
    codec: Codec = "none"
    level: int | None = None
    timestamp_type: TimestampTypeName | None = None  # CreateTime, or in magic 0 NoTimestampType
    log_append_time_ms: int = -1
    base_offset: int = 0
    last_offset: int | None = None  # beyond the last record's, as after compaction
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    transactional: bool = False
    control: bool = False
    leader_epoch: int = -1
    delete_horizon_ms: int = -1

    def weight(self) -> int:
        """About how many bytes it takes to ask for this."""
        return sum(100 + len(record.key or b"") + len(record.value or b"") for record in self.records)

    def question(self) -> dict[str, Any]:
        return {
            "records": [record.question() for record in self.records],
            "magic": self.magic,
            "codec": self.codec,
            "level": self.level,
            "timestampType": self.timestamp_type or ("CreateTime" if self.magic else "NoTimestampType"),
            "logAppendTime": self.log_append_time_ms,
            "baseOffset": self.base_offset,
            "lastOffset": self.last_offset,
            "producerId": self.producer_id,
            "producerEpoch": self.producer_epoch,
            "baseSequence": self.base_sequence,
            "transactional": self.transactional,
            "control": self.control,
            "leaderEpoch": self.leader_epoch,
            "deleteHorizon": self.delete_horizon_ms,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRecord:
    """One record as Kafka read it."""

    offset: int
    timestamp_ms: int
    timestamp_type: TimestampTypeName
    sequence: int
    size: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    control_type: str | None  # name of a ControlRecordType
    control: dict[str, Any] | None  # its content, in Kafka's JSON for it

    @classmethod
    def of(cls, answer: dict[str, Any]) -> Self:
        return cls(
            offset=answer["offset"],
            timestamp_ms=answer["timestamp"],
            timestamp_type=answer["timestampType"],
            sequence=answer["sequence"],
            size=answer["sizeInBytes"],
            key=_decode(answer.get("key")),
            value=_decode(answer.get("value")),
            headers=[(key, _decode(value)) for key, value in answer["headers"]],
            control_type=answer.get("controlType"),
            control=answer.get("control"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadBatch:
    """One batch as Kafka read it, and its records; up to where Kafka stopped, if there is a `fault`."""

    base_offset: int
    last_offset: int
    next_offset: int
    magic: int
    checksum: int
    valid: bool
    size: int
    count: int | None  # magic 0 and 1 do not tell
    codec: Codec
    timestamp_type: TimestampTypeName
    base_timestamp_ms: int | None  # magic 2 only
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    last_sequence: int
    transactional: bool
    control: bool
    leader_epoch: int
    delete_horizon_ms: int | None
    records: list[ReadRecord] = field(repr=False)
    fault: Fault | None

    @classmethod
    def of(cls, answer: dict[str, Any]) -> Self:
        header = answer["header"]
        return cls(
            base_offset=header["baseOffset"],
            last_offset=header["lastOffset"],
            next_offset=header["nextOffset"],
            magic=header["magic"],
            checksum=header["checksum"],
            valid=header["isValid"],
            size=header["sizeInBytes"],
            count=header.get("count"),
            codec=header["compression"],
            timestamp_type=header["timestampType"],
            base_timestamp_ms=header.get("baseTimestamp"),
            max_timestamp_ms=header["maxTimestamp"],
            producer_id=header["producerId"],
            producer_epoch=header["producerEpoch"],
            base_sequence=header["baseSequence"],
            last_sequence=header["lastSequence"],
            transactional=header["isTransactional"],
            control=header["isControl"],
            leader_epoch=header["leaderEpoch"],
            delete_horizon_ms=header.get("deleteHorizon"),
            records=[ReadRecord.of(record) for record in answer["records"]],
            fault=Fault.of(answer) if "error" in answer else None,
        )


@dataclass(frozen=True, slots=True)
class Reading:
    """What Kafka found in a buffer. A partial batch at the end is passed over in silence, as Kafka does."""

    batches: list[ReadBatch]
    size: int  # of all `batches` together
    stopped: Fault | None  # what kept Kafka from going on behind them, if anything did

    @classmethod
    def of(cls, answer: dict[str, Any]) -> Self:
        batches = [ReadBatch.of(batch) for batch in answer["batches"]]
        return cls(batches, answer["size"], Fault.of(answer) if "error" in answer else None)

    @property
    def fault(self) -> Fault | None:
        """The first thing that is wrong, or None where Kafka accepts everything."""
        return next((batch.fault for batch in self.batches if batch.fault), self.stopped)

    @property
    def records(self) -> list[ReadRecord]:
        """The records of all batches."""
        return [record for batch in self.batches for record in batch.records]


@dataclass(frozen=True, slots=True)
class Validated:
    """What LogValidator returned."""

    data: bytes
    max_timestamp_ms: int
    size_may_have_changed: bool


def _encode(data: bytes | None) -> str | None:
    return None if data is None else b2a_base64(data, newline=False).decode("ascii")


def _decode(text: str | None) -> bytes | None:
    return None if text is None else a2b_base64(text)
