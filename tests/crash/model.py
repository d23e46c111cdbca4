"""What a log has to hold, and what it may hold, at every moment of a workload.

A workload says what it is about to do and what has been done; each time the number of operations that the storage had
seen by then is noted. So `History.replay` knows what was promised when the power went at any operation: what
was about to be done may be found in any state, what had been done is done.

Promises: below the recovery point everything survives a power cut; what `append` returned survives the process.
Whatever else is found was written, at that offset, behind the very batch that stands before it now. What was cut off is
gone for good once a flush has returned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from octavo.records.layout import BATCH_HEADER


class Stored(NamedTuple):
    """A batch as it lies in a log."""

    base_offset: int
    next_offset: int
    data: bytes

    @classmethod
    def of(cls, data: bytes) -> Stored:
        """The batch of these bytes."""
        header = BATCH_HEADER.read(data)
        return cls(header.base_offset, header.base_offset + header.last_offset_delta + 1, data)


@dataclass(slots=True)
class Partition:
    """What is known of one partition."""

    batches: list[Stored] = field(default_factory=list)  # what the log holds, when nothing happens to it
    end: int = 0
    synced_to: int = 0  # survives a power cut, below this offset
    written_to: int = 0  # survives a dying process, below this offset
    start_from: int = 0  # where the log may start: not before,
    start_to: int = 0  # nor behind
    largest_end: int = 0
    cleaned_to: int = 0  # compaction may have taken what is before, but for the last value of each key
    follows: set[tuple[bytes | None, bytes]] = field(default_factory=set)  # pairs of neighbours that may be found
    origins: dict[bytes, bytes | None] = field(default_factory=dict)  # behind what each batch was written
    gaps: set[tuple[int, int]] = field(
        default_factory=set
    )  # from, to: a batch that reached over a cut is cut as a whole
    _pending: list[Stored] = field(default_factory=list)

    def will_append(self, batches: Sequence[Stored]) -> None:
        """These are about to be appended."""
        before = self.batches[-1].data if self.batches else None
        for batch in batches:
            self.follows.add((before, batch.data))
            self.origins[batch.data] = before
            before = batch.data
        self._pending = list(batches)
        self.largest_end = max(self.largest_end, batches[-1].next_offset)

    def appended(self) -> None:
        """They were."""
        self.batches += self._pending
        self.end = self.written_to = self._pending[-1].next_offset
        self._pending = []

    def will_truncate(self, offset: int) -> None:
        """What reaches to `offset` or behind is about to be cut off."""
        kept = [batch for batch in self.batches if batch.next_offset <= offset]
        lasting = kept[-1].next_offset if kept else 0
        self.start_from = min(self.start_from, offset)
        self.synced_to = min(self.synced_to, max(offset, lasting))
        self.written_to = min(self.written_to, max(offset, lasting))
        if lasting < offset:
            self.gaps.add((lasting, offset))
        self.batches = kept
        self.end = offset

    def truncated(self) -> None:
        """It was; also where the log started behind."""
        self.start_to = min(self.start_to, self.end)

    def will_restart(self, offset: int) -> None:
        """Everything is about to go, and the log to begin at `offset`."""
        self.start_from = min(self.start_from, offset)
        self.start_to = max(self.start_to, offset)
        self.largest_end = max(self.largest_end, offset)
        self.synced_to = self.written_to = 0
        self.batches = []
        self.end = offset

    def restarted(self) -> None:
        """It did, and no crash brings back what was there."""
        self.start_from = self.start_to = self.synced_to = self.written_to = self.largest_end = self.end
        self.follows = set()

    def will_start_at(self, offset: int) -> None:
        """What is before `offset` may be deleted from now on."""
        self.start_to = max(self.start_to, offset)

    def started_at(self, offset: int) -> None:
        """The log starts there now, and no crash brings back what was before."""
        self.start_from = self.start_to = offset

    def will_clean(self, offset: int) -> None:
        """What is before `offset` may be compacted from now on."""
        self.cleaned_to = max(self.cleaned_to, offset)

    def closed(self) -> None:
        """The log was closed: nothing of it can be lost, or come back."""
        self.synced(self.end)

    def synced(self, offset: int) -> None:
        """All below `offset` is on the disk."""
        self.synced_to = offset
        if offset >= self.end:  # so nothing else can come back
            datas = [batch.data for batch in self.batches]
            self.follows = set(zip([None, *datas], datas, strict=False))
            self.largest_end = self.end

    def reopened(self, end: int) -> None:
        """The log ends there now: as in Kafka, what a cut through a batch left between it and the end is forgotten."""
        last = self.batches[-1].next_offset if self.batches else 0
        assert end in (self.end, max(last, self.start_to)), f"ended at {self.end}, and now at {end}"
        self.end = self.synced_to = end

    def check(self, found: Sequence[Stored], start: int, end: int, *, power_cut: bool) -> None:
        """A log that was opened after a crash holds `found`. Raises `AssertionError`."""
        kept_to = self.synced_to if power_cut else self.written_to
        assert self.start_from <= start <= self.start_to, f"starts at {start}: {self.start_from} to {self.start_to}"
        assert start <= end <= max(self.largest_end, self.end, self.start_to), f"ends at {end}, never was there"
        if self.cleaned_to:
            assert kept_to <= end, f"ends at {end}, and was kept to {kept_to}"
            return  # what has to be left: see `compacted`
        held = set(found)
        found = [batch for batch in found if not self.fills_gap(batch)]
        for batch in self.batches:
            if self.start_to < batch.next_offset <= kept_to:
                assert batch in held, f"lost {batch.base_offset} to {batch.next_offset}, kept to {kept_to}"
        known = {data for _, data in self.follows}
        before = None
        for batch in found:
            assert batch.data in known, f"nobody wrote {batch}"
            if before is not None:
                assert (before.data, batch.data) in self.follows, f"{before} is not what was before {batch}"
            before = batch
        if found:
            assert found[-1].next_offset <= end, f"ends at {end}, but there is {found[-1]}"
            assert self._can_be_first(found[0], start), f"there is nothing from {start} to {found[0]}"

    def fills_gap(self, batch: Stored) -> bool:
        """Whether a batch has no records, and stands for the offsets that a cut through another has left."""
        empty = len(batch.data) == BATCH_HEADER.size
        return empty and any(low <= batch.base_offset and high == batch.next_offset for low, high in self.gaps)

    def _can_be_first(self, batch: Stored, start: int) -> bool:
        gap = any(low <= start and high == batch.base_offset for low, high in self.gaps)
        return batch.base_offset <= start < batch.next_offset or gap

    def recovered(self, found: Sequence[Stored], start: int, end: int) -> None:
        """After its process died, another opened the log and found this. What may be lost, or come back, stays so."""
        self.batches = self.lineages([batch for batch in found if not self.fills_gap(batch)], end)[0]
        self._pending = []
        self.end = self.written_to = end
        self.start_to = start
        self.synced_to = min(self.synced_to, end)

    def lineages(self, found: Sequence[Stored], end: int) -> list[list[Stored]]:
        """All that was ever in the log that holds `found` now, and not cut off again: deleted batches first.

        Where compaction took the last ones, only the end tells which they were; so there may be more than one answer.
        """
        if not self.cleaned_to and found and found[-1].data in self.origins:
            return [self._lineage(found[-1].data)]
        if not self.cleaned_to:
            return [[*found] or [batch for batch in self.batches if batch.next_offset <= end]]
        newest = [batch.data for batch in [*self.batches, *self._pending] if batch.next_offset == end]
        possible = [data for _, data in self.follows if Stored.of(data).next_offset == end and data not in newest]
        return [self._lineage(data) for data in [*newest, *possible]] or [[]]

    def _lineage(self, last: bytes) -> list[Stored]:
        data: bytes | None = last
        line: list[Stored] = []
        while data is not None:
            line.append(Stored.of(data))
            data = self.origins[data]
        return line[::-1]

    def lost(self, lineage: Sequence[Stored]) -> list[Stored]:
        """What clients have sent that is not in a log of this lineage, in order; none where it is another's."""
        sent = [*self.batches, *self._pending]
        return sent[len(lineage) :] if sent[: len(lineage)] == list(lineage) else []


class Topic(NamedTuple):
    """What is known of a topic; None where a crash may leave it or not."""

    partitions: int
    config: Mapping[str, str]
    exists: bool | None
    new_config: Mapping[str, str] | None = None  # that it is about to have


@dataclass(slots=True)
class Transaction:
    """What is known of a transaction over several partitions; None where a crash may leave it committed or not."""

    transactional_id: str
    is_committed: bool | None = False
    sent: list[tuple[Key, bytes]] = field(default_factory=list)  # to which partition, and what
    has_offsets: bool = False


Key = tuple[str, int]
Event = Callable[["Expectations"], object]


@dataclass(slots=True)
class Expectations:
    """What is expected of all partitions of a directory."""

    topics: dict[str, Topic] = field(default_factory=dict)
    partitions: dict[Key, Partition] = field(default_factory=dict)
    transactions: dict[int, Transaction] = field(default_factory=dict)


class History:
    """What happened, each event with the number of storage operations before it."""

    def __init__(self) -> None:
        self._events: list[tuple[int, Event]] = []

    def note(self, number: int, event: Event) -> None:
        """Something is about to happen, or has happened, at this moment."""
        self._events.append((number, event))

    def replay(self) -> Callable[[int], Expectations]:
        """Gives what to expect of a crash at an operation, of which the numbers must rise from call to call."""
        expectations = Expectations()
        events = iter([*self._events, (1 << 62, lambda _: None)])
        number, event = next(events)

        def at(wanted: int) -> Expectations:
            nonlocal number, event
            while number <= wanted:
                event(expectations)
                number, event = next(events)
            return expectations

        return at
