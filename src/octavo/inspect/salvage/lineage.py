"""Assemble the log of one lineage from several replicas.

The replica with the highest last leader epoch leads; among equals, the one with the highest end. An epoch has one
leader, and a follower cuts off what its leader does not have. So if two replicas have batches of the same epoch at the
same offset, everything before them is the same in both. What another replica has up to the last such offset fills what
is damaged in the leading one. What it has after that is another history, and is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final

from octavo.inspect.salvage.order import DOUBLED, Chain, LeftOut, fill
from octavo.inspect.salvage.run import Run, SegmentFile
from octavo.inspect.salvage.sources import Told
from octavo.inspect.salvage.survey import Damage
from octavo.log.files.text_checkpoint import EpochEntry
from octavo.records.layout import MAX_INT32, MAX_INT64

OTHER_HISTORY: Final = "they are of another history, which lost: after offset {} their leader epochs differ"
NOT_COMPARABLE: Final = "they have no leader epoch in common with the replica that leads"

Interval = tuple[int, int, int]  # leader epoch, first and last offset


@dataclass(slots=True)
class Replica:
    """One source of a partition, after it was read."""

    number: int
    folder: Path
    files: list[SegmentFile]
    chain: Chain
    damage: list[Damage]
    left_out: list[LeftOut]
    epochs: Sequence[EpochEntry]  # of its checkpoint; empty if that cannot be read
    is_compacted: bool
    told: Told
    other_ends: list[int] = field(default_factory=list)  # that replicas of the same leader epoch reached
    parts_after: int | None = None  # last offset that it has in common with the replica that leads
    ignored: list[str] = field(default_factory=list)  # files that are not part of the log

    @property
    def last_epoch(self) -> int:
        """The leader epoch of the last batch; -1 if there is none."""
        return next((run.leader_epoch for run in reversed(self.chain.runs) if run.leader_epoch >= 0), -1)

    @property
    def end_offset(self) -> int:
        """The offset after the last sound batch."""
        return self.chain.runs[-1].last + 1 if self.chain.runs else 0

    @property
    def rank(self) -> tuple[int, int, int]:
        """The order in which replicas are chosen to lead, the highest first; at last, by the number of batches."""
        return self.last_epoch, self.end_offset, sum(run.count for run in self.chain.runs)

    @property
    def known_epoch(self) -> int:
        """The latest leader epoch, by batches or by the checkpoint; -1 if there is none."""
        return max([self.last_epoch, *(entry.epoch for entry in self.epochs)])

    @property
    def named_start(self) -> int:
        """Where the log began by the names of files."""
        return min([*(file.named for file in self._believed()), *self.told.segments], default=self.told.start)

    def ends(self) -> list[int]:
        """Return offsets that the log reached, by checkpoints and by names of files that have no sound batches."""
        used = {run.file.number for run in self.chain.runs}
        names = [file.named for file in self._believed() if file.number not in used]
        return [*names, *self.told.segments, *self.told.ends]

    def named_end(self, end_offset: int, limit: int = MAX_INT32) -> int:
        """Return where the log ended by names and checkpoints; at least `end_offset`, and not further than `limit`.

        Offsets before that were used, even if nothing of them is left.
        """
        return max([end_offset, *(end for end in (*self.ends(), *self.other_ends) if end - end_offset <= limit)])

    def _believed(self) -> list[SegmentFile]:
        """Return the files without those that only repeat others: somebody made a copy, and its name tells nothing."""
        other = {run.file.number for run in self.chain.runs} | {each.file.number for each in self.damage}
        other |= {each.run.file.number for each in self.left_out if each.reason != DOUBLED}
        return [file for file in self.files if not file.size or file.number in other]


def assemble(replicas: Sequence[Replica]) -> tuple[Replica, Chain, list[LeftOut]]:
    """Return the replica that leads, its log with gaps filled from the others, and the batches of other histories."""
    ranked = sorted(replicas, key=lambda replica: replica.rank, reverse=True)
    leader, *others = ranked
    chain = Chain(leader.chain.runs)
    history = _history(leader)
    left_out: list[LeftOut] = []
    for other in others:
        if other.known_epoch == leader.known_epoch:
            leader.other_ends += other.ends()
        common = _last_common(history, other.chain.runs)
        other.parts_after = common
        for run in other.chain.runs:
            part = None if common is None else run.cut(0, common)
            if part is not None:
                _fill_damage(chain, leader, part)
            count = run.count - (0 if part is None else part.count)
            if count:
                reason = NOT_COMPARABLE if common is None else OTHER_HISTORY.format(common)
                rest = run.cut(0 if common is None else common + 1, MAX_INT64) or run
                left_out.append(LeftOut(rest, count, reason))
    return leader, chain, left_out


def _fill_damage(chain: Chain, leader: Replica, run: Run) -> None:
    """Fill gaps with a run of another replica, but only those that are not gaps of a compacted log."""
    for before, first, last, behind in list(chain.gaps(run)):
        if leader.is_compacted and before is not None and behind is not None and before.is_followed_by(behind):
            continue
        if behind is None and before is not None and leader.last_epoch > run.leader_epoch:
            continue  # the lineage went on without these
        part = run.cut(first, last)
        if part is not None:
            fill(chain, part)


def _history(leader: Replica) -> list[Interval]:
    """Return which offsets have which leader epochs, by the batches and, if it agrees with them, the checkpoint."""
    history = _intervals(leader.chain.runs)
    known = [(one.epoch, one.start_offset, other.start_offset - 1) for one, other in pairwise(leader.epochs)]
    latest = [(entry.epoch, entry.start_offset, MAX_INT64) for entry in leader.epochs[-1:]]
    if all(_agrees(known + latest, interval) for interval in history):
        # Of the latest epoch nothing is known after the last batch: another replica may have had more, and lost it.
        last = leader.end_offset - 1
        history += known + [(epoch, start, last) for epoch, start, _ in latest if start <= last]
    return history


def _agrees(known: Sequence[Interval], interval: Interval) -> bool:
    epoch, first, last = interval
    return epoch < 0 or any(each[0] == epoch and each[1] <= first and last <= each[2] for each in known)


def _intervals(runs: Sequence[Run]) -> list[Interval]:
    intervals: list[Interval] = []
    for run in runs:
        if intervals and intervals[-1][0] == run.leader_epoch and intervals[-1][2] + 1 == run.base:
            intervals[-1] = (run.leader_epoch, intervals[-1][1], run.last)
        else:
            intervals.append((run.leader_epoch, run.base, run.last))
    return intervals


def _last_common(history: Sequence[Interval], runs: Sequence[Run]) -> int | None:
    """Return the last offset at which both have the same epoch; None if there is none."""
    by_epoch: dict[int, list[Interval]] = {}
    for interval in history:
        by_epoch.setdefault(interval[0], []).append(interval)
    common = None
    for epoch, first, last in reversed(_intervals(runs)):
        for _, start, end in by_epoch.get(epoch, ()):
            if first <= end and start <= last:
                common = max(min(last, end), -1 if common is None else common)
        if common is not None:
            return common
    return None
