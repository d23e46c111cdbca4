"""Kafka's own log of a partition, with the methods of `octavo.log.Log`.

    log = UnifiedLog.open(judge, folder, {"internal.segment.bytes": "4096"}, clock=lambda: now_ms)
    log.append(batches).base_offset            # raises `Refused`, with Kafka's error code, where Kafka does
    log.close()

Opening and closing do what Kafka's LogManager does for each partition: the checkpoints and the mark of a clean shutdown
in the parent folder are read when the log is opened, and written when it is closed. `abandon` is a crash: files as they
are, nothing written behind. The high watermark goes with the end of the log unless `follows_end` is False.

The leader's epoch is the last one that the log knows, until `become_leader` gives it another; a broker has it from its
controller. The clock is asked before each question, and what Kafka put off (deleting files) is done when it is time.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

from tests.kafka.judge import Bytes, Judge
from tests.kafka.log_answers import (
    AbortedEntry,
    Appended,
    Cleanable,
    Cleaned,
    Isolation,
    Origin,
    Part,
    Producers,
    ProducerState,
    ReadQuestion,
    Refused,
    Segment,
    State,
    TimestampOffset,
)

__all__ = [
    "CLEAN_SHUTDOWN",
    "RECOVERY_POINTS",
    "START_OFFSETS",
    "Appended",
    "Isolation",
    "Origin",
    "ReadQuestion",
    "Refused",
    "Segment",
    "State",
    "TimestampOffset",
    "UnifiedLog",
    "read_snapshot",
]

RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
START_OFFSETS: Final = "log-start-offset-checkpoint"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"

_ANY_EPOCH: Final = 2**31 - 1
_MAX_TIMESTAMP: Final = -3  # what ListOffsets calls it


class UnifiedLog:
    """An open log in the judge's process."""

    def __init__(self, judge: Judge, folder: Path, number: int, clock: Callable[[], int]) -> None:
        self.folder: Final = folder
        self.leader_epoch = 0
        self._judge = judge
        self._number = number
        self._clock = clock

    @classmethod
    def open(
        cls,
        judge: Judge,
        folder: Path,
        config: Mapping[str, str],
        *,
        clock: Callable[[], int],
        follows_end: bool = True,
        expiration_ms: int = 86_400_000,
    ) -> Self:
        """Open a partition's folder as a broker that starts does; made where there is none."""
        clean = folder.parent / CLEAN_SHUTDOWN
        answer = judge.ask(
            "log.open",
            folder=str(folder),
            config=dict(config),
            clean=clean.exists(),
            recoveryPoint=_read_checkpoint(folder.parent / RECOVERY_POINTS).get(folder.name, 0),
            startOffset=_read_checkpoint(folder.parent / START_OFFSETS).get(folder.name, 0),
            follows=follows_end,
            producerExpiration=expiration_ms,
            now=clock(),
        )
        clean.unlink(missing_ok=True)
        if "refused" in answer:
            raise Refused.of(answer["refused"])
        log = cls(judge, folder, answer["log"], clock)
        log.leader_epoch = max((epoch for epoch, _ in log.epochs), default=0)
        return log

    def close(self) -> None:
        """Shut the log down, and leave behind what says so."""
        state = self._ask("close", flush=True)
        _write_checkpoint(self.folder.parent / RECOVERY_POINTS, {self.folder.name: state["recoveryPoint"]})
        late = state["startOffset"] > state["segments"][0][0]
        _write_checkpoint(self.folder.parent / START_OFFSETS, {self.folder.name: state["startOffset"]} if late else {})
        (self.folder.parent / CLEAN_SHUTDOWN).write_text('{"version":0,"brokerEpoch":-1}')

    def abandon(self) -> None:
        """Let go of the files as they are."""
        self._ask("close", flush=False)

    # Writing

    def append(self, batches: Bytes, *, origin: Origin = "CLIENT") -> Appended:
        """Append as the leader of `leader_epoch`. Nobody verifies transactions."""
        return self._append("append", batches, epoch=self.leader_epoch, origin=origin)

    def append_as_follower(self, batches: Bytes) -> Appended:
        """Append what a leader sent, of any epoch; Kafka leaves out batches of epochs that it has not heard of."""
        return self._append("follow", batches, epoch=_ANY_EPOCH)

    def roll(self) -> None:
        self._ask("roll")

    def flush(self) -> None:
        self._ask("flush")

    def truncate_to(self, offset: int) -> None:
        self._ask("truncate", offset=offset)

    def delete_records_before(self, offset: int) -> None:
        self._ask("deleteRecords", offset=offset)

    def apply_retention(self) -> list[int]:
        """Delete what is too old or too much; the base offsets of the segments that went."""
        before = self.segments
        self._ask("retain")
        left = {segment.base_offset for segment in self.segments}
        return [segment.base_offset for segment in before if segment.base_offset not in left]

    def delete_files(self) -> None:
        """Remove the files of deleted segments whose delay is over."""
        self._ask("state")  # any question sets the clock

    def advance_high_watermark(self, offset: int) -> None:
        self._ask("watermark", offset=offset)

    def become_leader(self, epoch: int) -> None:
        """Lead in `epoch`, which begins at the end of the log."""
        self._ask("assignEpoch", epoch=epoch)
        self.leader_epoch = epoch

    def configure(self, config: Mapping[str, str]) -> None:
        """Give the topic another configuration."""
        self._ask("configure", config=dict(config))

    # Reading

    def read(
        self, offset: int, max_bytes: int, *, isolation: Isolation = "HIGH_WATERMARK", at_least_one: bool = True
    ) -> bytes:
        """The bytes that a fetch is answered with."""
        (answer,) = self.read_many([ReadQuestion(offset, max_bytes, isolation, at_least_one)])
        if isinstance(answer, Refused):
            raise answer
        return answer

    def read_many(self, questions: Sequence[ReadQuestion]) -> list[bytes | Refused]:
        """The bytes for each question, or why there are none."""
        return [part.records if isinstance(part, Part) else part for part in self.read_parts(questions)]

    def read_parts(self, questions: Sequence[ReadQuestion]) -> list[Part | Refused]:
        """What each question is answered with, or why it is not."""
        parts: list[Part | Refused] = []
        for answer in self._ask("reads", reads=questions)["reads"]:
            if "refused" in answer:
                parts.append(Refused.of(answer["refused"]))
            else:
                aborted = answer["aborted"]
                told = None if aborted is None else tuple((producer, offset) for producer, offset in aborted)
                parts.append(Part(b64decode(answer["records"]), told))
        return parts

    def offset_for_timestamp(self, timestamp_ms: int) -> TimestampOffset | None:
        """The first record that is not older, or None."""
        return self.offsets_for_timestamps([timestamp_ms])[0]

    def offsets_for_timestamps(self, timestamps_ms: Iterable[int]) -> list[TimestampOffset | None]:
        """`offset_for_timestamp` for each."""
        found: list[TimestampOffset | None] = []
        for answer in self._ask("times", times=list(timestamps_ms))["times"]:
            if "refused" in answer:
                raise Refused.of(answer["refused"])
            found.append(TimestampOffset(answer["offset"], answer["timestamp"], answer["epoch"]) if answer else None)
        return found

    def max_timestamp_offset(self) -> TimestampOffset | None:
        """The first record with the latest timestamp; None where there are no records."""
        return self.offset_for_timestamp(_MAX_TIMESTAMP)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int] | None:
        """The largest known epoch that is not above `epoch`, and where it ends; None where there is none."""
        (end,) = self._ask("epochEnds", epochs=[epoch])["ends"]
        return None if end is None else (end[0], end[1])

    # State

    @property
    def state(self) -> State:
        """All that the log says of itself, in one question."""
        told = self._ask("state")
        segments = tuple(Segment(base, size) for base, size in told["segments"])
        return State(told["startOffset"], told["endOffset"], told["highWatermark"], segments)

    @property
    def start_offset(self) -> int:
        return int(self._ask("state")["startOffset"])

    @property
    def end_offset(self) -> int:
        return int(self._ask("state")["endOffset"])

    @property
    def high_watermark(self) -> int:
        return int(self._ask("state")["highWatermark"])

    @property
    def recovery_point(self) -> int:
        return int(self._ask("state")["recoveryPoint"])

    @property
    def segments(self) -> tuple[Segment, ...]:
        return tuple(Segment(base, size) for base, size in self._ask("state")["segments"])

    @property
    def epochs(self) -> list[tuple[int, int]]:
        """Each leader epoch and where it starts."""
        return [(epoch, start) for epoch, start in self._ask("state")["epochs"]]

    @property
    def producers(self) -> Producers:
        """All that the log knows of its producers."""
        told = self._ask("producers")
        states = tuple(map(ProducerState.of, told["producers"]))
        aborted = tuple(AbortedEntry(*entry) for entry in told["aborted"])
        return Producers(states, told["lastStableOffset"], told["firstUnstableOffset"], aborted)

    def expire_producers(self) -> None:
        """Forget those that have been silent too long."""
        self._ask("expire")

    # Compacting

    def compact(self, map_memory: int) -> Cleaned | None:
        """Have Kafka's cleaner clean the log, if it is due by its configuration and cleaner-offset-checkpoint."""
        answer = self._ask("clean", memory=map_memory)
        return Cleaned.of(answer) if answer else None

    def cleanable(self, checkpoint: int | None) -> Cleanable:
        """What the cleaner would find to do, had it cleaned up to `checkpoint`; None if it never did."""
        return Cleanable.of(self._ask("cleanable", checkpoint=checkpoint))

    def _append(self, name: str, batches: Bytes, **more: Any) -> Appended:
        records = b64encode(batches).decode("ascii")
        answer = self._ask(name, records=records, **more)
        return Appended(answer["firstOffset"], answer["lastOffset"], answer["appendTime"], answer["startOffset"])

    def _ask(self, name: str, **question: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self._judge.ask(f"log.{name}", log=self._number, now=self._clock(), **question)
        if "refused" in answer:
            raise Refused.of(answer["refused"])
        return answer


def read_snapshot(judge: Judge, path: Path) -> tuple[ProducerState, ...]:
    """What Kafka reads in a file of producer state; raises `Refused` where it cannot."""
    answer: dict[str, Any] = judge.ask("log.snapshot", path=str(path))
    if "refused" in answer:
        raise Refused.of(answer["refused"])
    return tuple(map(ProducerState.of, answer["producers"]))


def _read_checkpoint(path: Path) -> dict[str, int]:
    """Folder of each partition to its offset."""
    if not path.exists():
        return {}
    lines = [line.split() for line in path.read_text().splitlines()[2:]]
    return {f"{topic}-{partition}": int(offset) for topic, partition, offset in lines}


def _write_checkpoint(path: Path, offsets: Mapping[str, int]) -> None:
    lines = ["0", str(len(offsets))]
    lines += [f"{' '.join(folder.rsplit('-', 1))} {offset}" for folder, offset in offsets.items()]
    path.write_text("".join(f"{line}\n" for line in lines))
