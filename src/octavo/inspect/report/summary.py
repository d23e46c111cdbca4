"""The numbers of a partition and of a directory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from octavo.log.names import TopicPartition
from octavo.log.tiers import RemotePart
from octavo.records.layout import NO_TIMESTAMP

SIZES: Final = 32  # the number of classes of sizes; class n has sizes from 2^n to 2^(n+1) - 1
_MOST_SEGMENTS: Final = 256  # that are kept for each partition; neighbours are put together beyond that


class SegmentSummary(NamedTuple):
    """One segment, or several that follow one another."""

    base_offset: int
    size: int  # bytes of its .log file
    first_ms: int  # timestamps; NO_TIMESTAMP if the records have none
    last_ms: int
    segments: int = 1  # how many they are

    def joined(self, other: SegmentSummary) -> SegmentSummary:
        """Return one summary of this segment and a later one."""
        first_ms = min((ms for ms in (self.first_ms, other.first_ms) if ms >= 0), default=NO_TIMESTAMP)
        last_ms = max(self.last_ms, other.last_ms)
        return SegmentSummary(
            self.base_offset, self.size + other.size, first_ms, last_ms, self.segments + other.segments
        )


class FoundProblem(NamedTuple):
    """A problem that `octavo verify` would print."""

    file: str  # below the data directory
    position: int | None
    offset: int | None
    rule: str
    found: str
    means: str
    repair: str


@dataclass(slots=True)
class PartitionSummary:
    """What the headers of a partition's batches tell."""

    folder: str  # the name of its folder
    partition: TopicPartition | None  # None for a folder that was set aside
    disk_size: int = 0  # bytes of all files, without holes
    batch_bytes: int = 0  # bytes of whole batches
    outside_batches: int = 0  # bytes of .log files that are not in a whole batch
    batches: int = 0
    records: int = 0
    start_offset: int | None = None
    end_offset: int | None = None
    first_ms: int = NO_TIMESTAMP
    last_ms: int = NO_TIMESTAMP
    codec_bytes: Counter[str] = field(default_factory=Counter)  # bytes of batches by codec
    batch_sizes: list[int] = field(default_factory=lambda: [0] * SIZES)  # batches by the class of their size
    batch_records: list[int] = field(default_factory=lambda: [0] * SIZES)  # batches by the class of their count
    sampled_in: int = 0  # compressed bytes of the batches that were decompressed
    sampled_out: int = 0  # what they were decompressed to
    segments: list[SegmentSummary] = field(default_factory=list)
    segment_count: int = 0
    problems: list[FoundProblem] = field(default_factory=list)
    problem_count: int = 0
    failure: str | None = None  # why it, or a file of it, could not be read
    notes: list[str] = field(default_factory=list)  # what keeps readers from records
    is_gone: bool = False  # its folder was deleted meanwhile

    @property
    def ratio(self) -> float | None:
        """How many times larger the compressed batches are when they are decompressed; None if none was sampled."""
        return self.sampled_out / self.sampled_in if self.sampled_in else None

    def add_segment(self, segment: SegmentSummary) -> None:
        """Add a segment, which follows the others. If there are many, neighbours are put together."""
        self.segment_count += 1
        self.segments.append(segment)
        if len(self.segments) > _MOST_SEGMENTS:
            pairs = zip(self.segments[::2], self.segments[1::2], strict=False)
            odd = self.segments[-1:] if len(self.segments) % 2 else []
            self.segments = [one.joined(other) for one, other in pairs] + odd


@dataclass(slots=True)
class DirectorySummary:
    """All partitions of a data directory."""

    path: Path
    partitions: list[PartitionSummary]
    is_verified: bool
    other_problems: list[FoundProblem] = field(default_factory=list)  # of the directory's own files
    failure: str | None = None  # why these could not be read
    remote: list[RemotePart] = field(default_factory=list)  # what of tiered partitions is in remote storage only

    @property
    def problems(self) -> list[FoundProblem]:
        """The problems of the directory's own files and of all partitions, as far as they were kept."""
        return [*self.other_problems, *(problem for each in self.partitions for problem in each.problems)]

    @property
    def failures(self) -> list[str]:
        """What could not be read, and why."""
        own = [] if self.failure is None else [self.failure]
        return own + [f"{each.folder}: {each.failure}" for each in self.partitions if each.failure is not None]

    @property
    def problem_count(self) -> int:
        """How many problems were found."""
        return len(self.other_problems) + sum(each.problem_count for each in self.partitions)


@dataclass(slots=True)
class TopicSummary:
    """The partitions of one topic together."""

    name: str
    partitions: list[PartitionSummary]

    def total(self, name: str) -> int:
        """Return the sum of a number over all partitions, by its name in `PartitionSummary`."""
        return sum(getattr(each, name) for each in self.partitions)

    @property
    def codec_bytes(self) -> Counter[str]:
        """Bytes of batches by codec."""
        return sum((each.codec_bytes for each in self.partitions), Counter())

    @property
    def ratio(self) -> float | None:
        """How many times larger the compressed batches are when they are decompressed; None if none was sampled.

        Partitions weigh as much as they have compressed bytes, not as much as was sampled of them.
        """
        weights = [
            (sum(size for codec, size in each.codec_bytes.items() if codec != "none"), each.ratio)
            for each in self.partitions
        ]
        known = [(size, ratio) for size, ratio in weights if ratio]
        packed = sum(size for size, _ in known)
        return sum(size * ratio for size, ratio in known) / packed if packed else None

    @property
    def times(self) -> tuple[int, int]:
        """The first and last timestamp; `NO_TIMESTAMP` for both if there is none."""
        return time_range(self.partitions)


def time_range(partitions: Iterable[PartitionSummary]) -> tuple[int, int]:
    """Return the first and last timestamp of several partitions; `NO_TIMESTAMP` for both if there is none."""
    known = [(each.first_ms, each.last_ms) for each in partitions if each.last_ms >= 0 and each.first_ms >= 0]
    if not known:
        return NO_TIMESTAMP, NO_TIMESTAMP
    return min(first for first, _ in known), max(last for _, last in known)


def topics_of(partitions: Iterable[PartitionSummary]) -> list[TopicSummary]:
    """Return the topics, the largest first. Folders that were set aside have no topic."""
    topics: dict[str, TopicSummary] = {}
    for each in partitions:
        if each.partition is not None:
            topics.setdefault(each.partition.topic, TopicSummary(each.partition.topic, [])).partitions.append(each)
    return sorted(topics.values(), key=lambda topic: (-topic.total("disk_size"), topic.name))
