"""Work out what is lost: offsets that no source has, and the bytes that were there instead.

Offsets that are missing between two batches count as lost, unless the log is compacted, and the batches follow each
other directly in a file. In a compacted log, offsets may also be missing between two segments.

Where the log began and ended is told by names of files and by checkpoints, too, even if nothing is left of a segment.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, takewhile
from operator import attrgetter

from octavo.inspect.salvage.lineage import Replica
from octavo.inspect.salvage.order import DOUBLED, UNCONFIRMED, Chain, LeftOut
from octavo.inspect.salvage.report import BatchesLeftOut, DamagedBytes, LostOffsets, Restored
from octavo.inspect.salvage.run import Identities, Run, SegmentFile
from octavo.inspect.salvage.survey import Damage
from octavo.records.layout import MAX_INT64

_position = attrgetter("position")


class Losses:
    """What is lost of a partition, given its sources and the log that was assembled from them."""

    def __init__(self, chain: Chain, leader: Replica, replicas: Sequence[Replica], others: Sequence[LeftOut]) -> None:
        self.lost: list[LostOffsets] = []
        self.gaps: list[LostOffsets] = []
        self._chain = chain
        self._leader = leader
        self._replicas = {replica.number: replica for replica in replicas}
        self._by_file = {replica.number: _by_file(replica.chain.runs) for replica in replicas}
        self._room: tuple[tuple[int, int], set[tuple[int, int]]] = ((0, -1), set())  # offsets, and what is there
        self._longer = {number for number, replica in self._replicas.items() if chain.runs and self._had_more(replica)}
        self._find_head()
        for before, behind in pairwise(chain.runs):
            self._compare(before, behind)
        self._find_tail()
        self.damage = [self._damaged(damage) for replica in replicas for damage in replica.damage]
        left_out = [each for replica in replicas for each in replica.left_out]
        self.left_out = [self._left_out(each) for each in (*left_out, *others)]
        self.restored = list(_restored(chain.runs))

    def _compare(self, before: Run, behind: Run) -> None:
        """Note the offsets that are missing between two runs."""
        if behind.base <= before.last + 1:
            return
        if before.is_followed_by(behind) and self._replicas[behind.file.replica].is_compacted:
            return
        missing = LostOffsets(before.last + 1, behind.first_offset() - 1)
        if missing.last_offset is not None and missing.last_offset >= missing.first_offset:
            is_gap = self._are_in_order(before, behind) and self._replicas[behind.file.replica].is_compacted
            (self.gaps if is_gap else self.lost).append(missing)

    def _are_in_order(self, before: Run, behind: Run) -> bool:
        """Return whether one run ends a file, and the other begins the next one that is not empty."""
        if before.file.replica != behind.file.replica or before.end != before.file.size or behind.position:
            return False
        if before.base < before.file.named:
            return False  # it was moved there, and what was there before is lost
        replica = self._replicas[before.file.replica]
        files = replica.files
        if any(before.file.named < named < behind.file.named for named in replica.told.segments):
            return False  # there was a segment between them
        return before.file.number < behind.file.number and not any(
            file.size for file in files[before.file.number + 1 : behind.file.number]
        )

    def _find_head(self) -> None:
        """Note the offsets that are missing before the first batch, as far as a file is named after them."""
        runs, own, named = self._chain.runs, self._leader.chain.runs, self._leader.named_start
        if not runs or not own or named >= (first := runs[0].first_offset()):
            return
        places = self._doubtful_places(self._leader)
        is_damaged = bool(places) and places[0][:2] < (own[0].file.number, own[0].position)
        is_gap = self._leader.is_compacted and not is_damaged and named not in self._leader.told.segments
        (self.gaps if is_gap else self.lost).append(LostOffsets(named, first - 1))

    def _find_tail(self) -> None:
        """Note that offsets after the last batch are missing if something was there."""
        runs, leader = self._chain.runs, self._leader
        if not runs:
            start = leader.named_start
            end_offset = leader.named_end(start, MAX_INT64 // 2)
            if leader.damage or start in leader.told.segments:
                self.lost.append(LostOffsets(start, None if leader.damage or start == end_offset else end_offset - 1))
            elif start < end_offset:
                self.lost.append(LostOffsets(start, end_offset - 1))
            return
        first = runs[-1].last + 1
        end_offset = leader.named_end(first)
        if self._longer:
            self.lost.append(LostOffsets(first, None))
        elif end_offset > first:
            is_gap = leader.is_compacted and any(file.named == end_offset and not file.size for file in leader.files)
            (self.gaps if is_gap else self.lost).append(LostOffsets(first, end_offset - 1))
        elif first in leader.told.segments:
            self.lost.append(LostOffsets(first, None))

    def _had_more(self, replica: Replica) -> bool:
        """Return whether a replica of this history has more bytes after its last batch than the result has there."""
        own = replica.chain.runs
        last = max((run.last for run in own), default=-1)
        if replica is not self._leader and (
            replica.last_epoch != self._leader.last_epoch or replica.parts_after != last or not own
        ):
            return False
        end = max(((run.file.number, run.position) for run in own if run.base >= run.file.named), default=(0, 0))
        size = sum(size for number, position, size in self._doubtful_places(replica) if (number, position) >= end)
        parts = [run.cut(last + 1, MAX_INT64) for run in self._chain.runs if run.last > last]
        there = sum(part.size for part in parts if part is not None)
        is_comparable = not (there and (replica.is_compacted or self._leader.is_compacted))
        return is_comparable and size > there

    def _doubtful_places(self, replica: Replica) -> list[tuple[int, int, int]]:
        """Return where batches of a replica may be lost: the numbers of files, positions in them, and sizes."""
        unconfirmed = [each.run for each in replica.left_out if each.reason == UNCONFIRMED]
        places = [(each.file.number, each.position, each.size) for each in unconfirmed]
        return sorted(places + [(each.file.number, each.position, each.size) for each in replica.damage])

    def _damaged(self, damage: Damage) -> DamagedBytes:
        before, behind = self._around(damage.file, damage.position, damage.end)
        is_lost = self._is_lost(before, behind) or (behind is None and damage.file.replica in self._longer)
        return DamagedBytes(damage.file.path, damage.position, damage.size, damage.rule, before, behind, is_lost)

    def _left_out(self, left_out: LeftOut) -> BatchesLeftOut:
        run, count, reason = left_out
        is_lost = reason != DOUBLED
        if reason == UNCONFIRMED:
            is_lost = not self._has_all(run)
        return BatchesLeftOut(
            run.file.path, run.position, run.size, run.base_offset, run.last_offset, count, reason, is_lost
        )

    def _has_all(self, run: Run) -> bool:
        """Return whether the result has all batches of a run, there or where their place in the file says."""
        before, behind = self._around(run.file, run.position, run.end)
        first = 0 if before is None else before + 1
        last = MAX_INT64 if behind is None else behind - 1
        if self._room[0] != (first, last):  # many batches in a row may have the same
            self._room = (first, last), self._contents_between(first, last)
        missing = _contents(run.identities(0, MAX_INT64)) - self._room[1]
        return not missing or not missing - self._contents_between(run.base, run.last)

    def _contents_between(self, first: int, last: int) -> set[tuple[int, int]]:
        """Return the contents of all batches of the result between two offsets."""
        runs = self._chain.runs[bisect_left(self._chain.runs, first, key=attrgetter("last")) :]
        near = takewhile(lambda run: run.base <= last, runs)
        return {content for run in near for content in _contents(run.identities(first, last))}

    def _around(self, file: SegmentFile, position: int, end: int) -> tuple[int | None, int | None]:
        """Return the last offset before a place in a file, and the first offset after it."""
        runs = self._by_file[file.replica]
        own = runs.get(file.number, [])
        before = own[: bisect_left(own, position, key=_position)][-1:]
        behind = own[bisect_left(own, end, key=_position) :][:1]
        if not before:
            before = next((runs[number][-1:] for number in range(file.number - 1, -1, -1) if number in runs), [])
        if not behind:
            files = range(file.number + 1, len(self._replicas[file.replica].files))
            behind = next((runs[number][:1] for number in files if number in runs), [])
        return (before[0].last if before else None), (behind[0].first_offset() if behind else None)

    def _is_lost(self, before: int | None, behind: int | None) -> bool:
        """Return whether offsets between two others are lost; if nothing is behind, the next offset."""
        first = 0 if before is None else before + 1
        last = behind - 1 if behind is not None else MAX_INT64 if before is None else first
        at = bisect_right(self.lost, last, key=attrgetter("first_offset")) - 1
        if at < 0 or first > last:
            return False
        lost = self.lost[at]
        return lost.last_offset is None or lost.last_offset >= first


def _contents(identities: Identities) -> set[tuple[int, int]]:
    """Return what is the same of batches whatever their offsets are: how many offsets they have, and the checksum."""
    widths = identities[:, 1] - identities[:, 0]
    return set(zip(widths.tolist(), identities[:, 2].tolist(), strict=True))


def _by_file(runs: Iterable[Run]) -> dict[int, list[Run]]:
    """Return the runs of each segment file, by position."""
    by_file: dict[int, list[Run]] = {}
    for run in runs:
        by_file.setdefault(run.file.number, []).append(run)
    return {number: sorted(each, key=_position) for number, each in by_file.items()}


def _restored(runs: Iterable[Run]) -> Iterator[Restored]:
    for run in runs:
        if run.written_base is not None:
            yield Restored(run.file.path, run.position, run.base, "base offset", run.base_offset, run.base)
        if run.written_epoch is not None:
            yield Restored(run.file.path, run.position, run.base, "leader epoch", run.epoch, run.written_epoch)
