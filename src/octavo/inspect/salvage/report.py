"""What a salvage reports: what is kept, what is lost, and what became of the rest.

`as_json` makes an object for JSON of each: the fields, named as in Kafka's own JSON (`firstOffset`).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class LostOffsets:
    """A range of offsets that no source has, ends included."""

    first_offset: int
    last_offset: int | None  # None: nobody knows how far the log went


@dataclass(frozen=True, slots=True)
class DamagedBytes:
    """Bytes of a source that are not a sound batch."""

    file: Path
    position: int
    size: int
    rule: str
    offset_before: int | None  # last offset before them; None if there is none
    offset_behind: int | None  # first offset after them; None if there is none
    is_lost: bool  # offsets are lost with them: no other source has them


@dataclass(frozen=True, slots=True)
class BatchesLeftOut:
    """Sound batches of a source that are not in the result."""

    file: Path
    position: int
    size: int
    first_offset: int
    last_offset: int
    batches: int
    reason: str
    is_lost: bool  # the result has nothing in their place, or something else


@dataclass(frozen=True, slots=True)
class Restored:
    """A field of a batch that no checksum covers, corrected because the batches around it leave no doubt."""

    file: Path
    position: int
    offset: int
    field: str
    was: int
    now: int


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction without a marker. Readers of committed data stop before it."""

    producer_id: int
    producer_epoch: int
    first_offset: int
    last_offset: int
    is_aborted: bool  # an abort marker was written


@dataclass(frozen=True, slots=True)
class DoubtfulTransaction:
    """A transaction with lost offsets in it. If its marker was lost there, the marker that ends it now is another's."""

    producer_id: int
    producer_epoch: int
    first_offset: int
    marker_offset: int
    is_committed: bool
    lost: LostOffsets


@dataclass(frozen=True, slots=True)
class SourceReport:
    """One source of a partition."""

    path: Path
    leads: bool
    last_epoch: int
    end_offset: int
    last_common_offset: int | None  # that it has in common with the source that leads
    ignored_files: list[str]  # that hold batches, but are not part of the log


@dataclass(slots=True)
class PartitionReport:
    """What became of one partition."""

    partition: str
    target: Path
    sources: list[SourceReport] = field(default_factory=list)
    batches: int = 0  # that are kept, without the markers of `abort_open`
    bytes: int = 0
    segments: int = 0
    start_offset: int = 0
    end_offset: int = 0
    log_start_offset: int | None = None  # by the source's checkpoint, if it is after the first batch
    lost: list[LostOffsets] = field(default_factory=list)
    gaps: list[LostOffsets] = field(default_factory=list)  # missing in a compacted log, at the ends of segments
    damage: list[DamagedBytes] = field(default_factory=list)
    left_out: list[BatchesLeftOut] = field(default_factory=list)
    restored: list[Restored] = field(default_factory=list)
    open_transactions: list[OpenTransaction] = field(default_factory=list)
    doubtful_transactions: list[DoubtfulTransaction] = field(default_factory=list)
    read_committed_stops_at: int | None = None  # offset where readers of committed data stop for ever

    @property
    def has_lost(self) -> bool:
        """Whether anything that was in the sources is not in the result."""
        is_lost = [each.is_lost for each in self.damage] + [each.is_lost for each in self.left_out]
        return bool(self.lost) or any(is_lost)


@dataclass(slots=True)
class SalvageReport:
    """What became of all partitions."""

    partitions: list[PartitionReport] = field(default_factory=list)

    @property
    def has_lost(self) -> bool:
        """Whether anything was lost."""
        return any(each.has_lost for each in self.partitions)

    def to_json(self) -> dict[str, object]:
        """Return the report as an object for JSON."""
        partitions = [{**_fields(each), "hasLost": each.has_lost} for each in self.partitions]
        return {"hasLost": self.has_lost, "partitions": partitions}


def as_json(value: object) -> object:
    """Return a part of a report as a value for JSON."""
    if dataclasses.is_dataclass(value):
        return _fields(value)
    if isinstance(value, list):
        return [as_json(each) for each in value]
    return str(value) if isinstance(value, Path) else value


def _fields(value: object) -> dict[str, object]:
    names = [each.name for each in dataclasses.fields(value)]  # type: ignore[arg-type]  # the callers have checked it
    return {_camel(name): as_json(getattr(value, name)) for name in names}


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
