"""What Kafka's own log says, in words that `tests.kafka.log.ours` speaks as well."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Self

Isolation = Literal["LOG_END", "HIGH_WATERMARK", "TXN_COMMITTED"]
Origin = Literal["CLIENT", "COORDINATOR", "RAFT_LEADER"]


class Appended(NamedTuple):
    """Where appended batches went."""

    base_offset: int
    last_offset: int
    append_time_ms: int
    log_start_offset: int


class TimestampOffset(NamedTuple):
    """A record found by its timestamp."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


class Segment(NamedTuple):
    """One segment."""

    base_offset: int
    size: int


class State(NamedTuple):
    """What a log says of itself."""

    start_offset: int
    end_offset: int
    high_watermark: int
    segments: tuple[Segment, ...]


class ReadQuestion(NamedTuple):
    """One read to ask for."""

    offset: int
    max_bytes: int
    isolation: Isolation = "LOG_END"
    at_least_one: bool = True


class Part(NamedTuple):
    """What a read is answered with."""

    records: bytes
    aborted: tuple[tuple[int, int], ...] | None  # producer id and first offset of each; None where nobody asks for them


class CachedBatch(NamedTuple):
    """A batch that a log remembers of a producer."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp_ms: int


class ProducerState(NamedTuple):
    """What a log knows of a producer."""

    producer_id: int
    epoch: int
    coordinator_epoch: int
    last_timestamp_ms: int
    first_offset: int  # of its open transaction, or -1
    batches: tuple[CachedBatch, ...]

    @classmethod
    def of(cls, answer: dict[str, Any]) -> Self:
        return cls(
            answer["id"],
            answer["epoch"],
            answer["coordinatorEpoch"],
            answer["lastTimestamp"],
            answer["firstOffset"],
            tuple(CachedBatch(*batch) for batch in answer["batches"]),
        )


class AbortedEntry(NamedTuple):
    """An entry of a transaction index."""

    segment: int  # base offset
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class Producers(NamedTuple):
    """What a log knows of its producers and their transactions."""

    states: tuple[ProducerState, ...]  # by id
    last_stable_offset: int
    first_unstable_offset: int  # -1 where there is none
    aborted: tuple[AbortedEntry, ...]


class Cleaned(NamedTuple):
    """What Kafka's cleaner did."""

    first_dirty_offset: int  # from now on
    bytes_read: int
    bytes_written: int
    messages_read: int
    messages_written: int
    invalid_messages_read: int
    map_messages_read: int
    buffer_utilization: float

    @classmethod
    def of(cls, answer: dict[str, Any]) -> Self:
        return cls(
            answer["firstDirtyOffset"],
            answer["bytesRead"],
            answer["bytesWritten"],
            answer["messagesRead"],
            answer["messagesWritten"],
            answer["invalidMessagesRead"],
            answer["mapMessagesRead"],
            answer["bufferUtilization"],
        )


class Cleanable(NamedTuple):
    """What there is to clean in a log."""

    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    cleanable_ratio: float  # 0 where there is nothing, clean or dirty; Kafka leaves such logs out
    delay_ms: int  # since when it must be cleaned, dirty or not; 0 where it need not
    resets: bool  # the checkpoint was of no use

    @classmethod
    def of(cls, answer: dict[str, Any]) -> Self:
        return cls(
            answer["firstDirtyOffset"],
            answer["firstUncleanableOffset"],
            answer["cleanBytes"],
            answer["cleanableBytes"],
            0.0 if answer["cleanableRatio"] == "NaN" else answer["cleanableRatio"],
            answer["delay"],
            answer["resets"],
        )


class Refused(Exception):
    """Kafka would not do it."""

    def __init__(self, code: int, kind: str, message: str, records: tuple[tuple[int, str], ...]) -> None:
        super().__init__(code, kind, message, records)
        self.code = code  # as a client is told
        self.kind = kind  # the Java class, without its package
        self.message = message
        self.records = records  # index in the batch, and message

    def __str__(self) -> str:
        return f"{self.kind} ({self.code}): {self.message} {self.records or ''}"

    @classmethod
    def of(cls, answer: dict[str, Any]) -> Self:
        records = tuple((index, message) for index, message in answer["records"])
        return cls(answer["code"], answer["class"].rpartition(".")[2], answer["message"], records)
