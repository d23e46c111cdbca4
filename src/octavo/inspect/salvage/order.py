"""Put the sound batches of one source in the order of their offsets.

No checksum covers a batch's base offset and leader epoch, so neither is believed unless the batches around agree:

    in place        the heaviest sequence of runs, in the order of files and positions, whose offsets increase
    moved           runs out of place whose offsets are missing among those in place. They are inserted if they fill a
                    gap, if two of their batches confirm each other, if they continue the batch before or after them, or
                    if they are single batches between damage, next to which nothing contradicts them
    restored        one batch whose offset fits nowhere, between two others that leave room for exactly its offsets
    left out        all others: doubled batches, batches that contradict those in place, offsets that nothing confirms
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from operator import attrgetter
from typing import Final, NamedTuple

import numpy as np

from octavo.inspect.salvage.run import CONSECUTIVE, DISTINCT, Identities, Run
from octavo.records.layout import MAX_INT32, MAX_INT64

DOUBLED: Final = "the same batches are in the log already"
CONTRARY: Final = "other batches have these offsets"
UNCONFIRMED: Final = "the offset does not fit those around it, and no checksum covers it"

_base: Final = attrgetter("base")


class LeftOut(NamedTuple):
    """Sound batches that are not in the result, and why."""

    run: Run
    batches: int  # number of batches of the run that are left out
    reason: str


class Chain:
    """Runs in the order of their offsets, which do not overlap."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs: list[Run] = list(runs)
        self._by_position = {(run.file.path, run.position): run for run in runs}
        self._by_end = {(run.file.path, run.end): run for run in runs}
        self._known: tuple[Run, Identities] | None = None  # what was read last; often many runs touch the same

    @property
    def has_gaps(self) -> bool:
        """Whether offsets are missing between batches that follow each other in a file, as after a compaction."""
        if any(run.has_gaps for run in self.runs):
            return True
        return any(one.is_followed_by(other) and one.last + 1 < other.base for one, other in pairwise(self.runs))

    def has_room(self, first: int, last: int) -> bool:
        """Return whether no run has any of these offsets."""
        at = bisect_right(self.runs, last, key=_base) - 1
        return at < 0 or self.runs[at].last < first

    def gaps(self, run: Run) -> Iterator[tuple[Run | None, int, int, Run | None]]:
        """Yield the gaps that `run` touches: the run before, the first and last missing offset, the run after."""
        after = max(bisect_right(self.runs, run.base, key=_base) - 1, 0)
        while after <= len(self.runs):
            before = self.runs[after - 1] if after else None
            behind = self.runs[after] if after < len(self.runs) else None
            first = 0 if before is None else before.last + 1
            last = MAX_INT64 if behind is None else behind.base - 1
            if first > run.last:
                return
            if first <= last and run.base <= last:
                yield before, first, last, behind
            after += 1

    def insert(self, run: Run) -> None:
        """Insert a run into a gap."""
        insort(self.runs, run, key=_base)
        self._by_position[run.file.path, run.position] = self._by_end[run.file.path, run.end] = run

    def divide(self, run: Run) -> None:
        """Divide the runs of the chain where batches of `run` lie in gaps between their batches."""
        for each in [each for each in self.touching(run) if each.has_gaps]:
            own = run.identities(each.base, each.last)
            fitting = own[~_overlap(own, self.identities(each, run.base, run.last))]
            there = self.identities(each, 0, MAX_INT64)
            at = np.unique(np.searchsorted(there[:, 0], fitting[:, 0]))
            at = at[(at > 0) & (at < len(there))]
            if not len(at):
                continue
            index = bisect_left(self.runs, each.base, key=_base)
            del self.runs[index]
            for part in each.split(there[at, 1]):
                self.insert(part)

    def identities(self, run: Run, first: int, last: int) -> Identities:
        """Return what `Run.identities` returns for a run of the chain."""
        if self._known is None or self._known[0] is not run:
            self._known = run, run.identities(0, MAX_INT64)
        known = self._known[1]
        return known[np.searchsorted(known[:, 1], first) : np.searchsorted(known[:, 0], last, side="right")]

    def around(self, run: Run) -> tuple[Run | None, Run | None]:
        """Return the runs that lie directly before and after `run` in its file."""
        return self._by_end.get((run.file.path, run.position)), self._by_position.get((run.file.path, run.end))

    def touching(self, run: Run) -> Iterator[Run]:
        """Yield the runs that have offsets between the first and the last of `run`."""
        at = max(bisect_right(self.runs, run.base, key=_base) - 1, 0)
        while at < len(self.runs) and self.runs[at].base <= run.last:
            if self.runs[at].last >= run.base:
                yield self.runs[at]
            at += 1


def put_in_order(runs: Sequence[Run], extra: Sequence[Run], lowest: int) -> tuple[Chain, list[LeftOut]]:
    """Return the log that the runs of a source make up, and what is not in it.

    `runs` are in the order of files and positions. Runs in `extra` only fill gaps: they are of output of a compaction
    that was about to replace other files. `lowest` is the lowest offset in the name of a file.
    """
    near = [run for _, group in groupby(runs, attrgetter("file")) for run in _near(list(group))]
    chain = Chain([near[at] for at in heaviest(_weighed(near))])
    left_out = _move(chain, runs, _Confirming(lowest, chain.has_gaps))
    for at in heaviest([(run.base, run.last, run.count) for run in extra]):
        fill(chain, extra[at])
    return chain, left_out


def _move(chain: Chain, runs: Sequence[Run], confirming: _Confirming) -> list[LeftOut]:
    """Insert those of the runs that are not in the chain where they belong. Returns what belongs nowhere."""
    taken = {id(run) for run in chain.runs}
    rest = sorted((run for run in runs if id(run) not in taken), key=lambda run: -run.count)
    for run in rest:
        chain.divide(run)
    # Own offsets that fill a gap are right. Otherwise an offset with one wrong bit is more likely than a batch that was
    # moved alone, and this is more likely than an offset with many wrong bits.
    rest = [run for run in rest if not _fill_whole(chain, run)]
    inserted: dict[int, list[Run]] = {id(run): [] for run in rest}
    ascending = sorted(rest, key=_base)
    for ordered in (rest, ascending, ascending[::-1]):  # what is inserted may confirm the run before or after it
        for run in ordered:
            if sum(part.count for part in inserted[id(run)]) == run.count:
                continue
            if _restore(chain, run, bits=1):
                inserted[id(run)] = [run]
            else:
                inserted[id(run)] += fill(chain, run, confirming)
    left_out = []
    for run in rest:
        parts = inserted[id(run)]
        if sum(part.count for part in parts) < run.count and not _restore(chain, run):
            left_out += leave_out(chain, run, parts)
    return left_out


def _near(runs: Sequence[Run]) -> list[Run]:
    """Return the runs of one file that one segment can hold, by the file's name or by most of its batches."""
    most = max(runs, key=attrgetter("count"))
    places = [runs[0].file.named, *([most.base] if most.count > 1 else [])]
    return [run for run in runs if any(abs(run.last - place) <= MAX_INT32 for place in places)]


def _weighed(runs: Sequence[Run]) -> list[tuple[int, int, int]]:
    """Return what `heaviest` needs to know of runs.

    If one of two batches has to be wrong, it is rather the one that has room between those around it: a wrong offset
    leaves room where the right one was.
    """
    items = []
    for before, run, behind in zip((None, *runs), runs, (*runs[1:], None), strict=False):
        has_room = (
            run.count > 1 or before is None or behind is None or behind.base - before.last > run.last - run.base + 1
        )
        items.append((run.base, run.last, 2 * run.count + (not has_room)))
    return items


class _Confirming(NamedTuple):
    """What confirms the offsets of runs that are out of place.

    A value may hold batches, which come to light when the batch around them is damaged. So a log does not begin before
    the lowest offset in the name of a file, and a batch of a log has a leader epoch if those around it have one.
    """

    lowest: int
    is_compacted: bool  # there are gaps everywhere, so that offsets need not be consecutive to confirm each other

    def confirms(self, run: Run, before: Run | None, behind: Run | None) -> bool:
        """Return whether something confirms the offsets of a run between two others."""
        if any(each is not None and run.epoch < 0 <= each.epoch for each in (before, behind)):
            return False
        if (before is not None and run.base == before.last + 1) or (behind is not None and run.last + 1 == behind.base):
            return True
        if run.position == 0 and run.base == run.file.named:
            return True
        if run.credibility < (DISTINCT if self.is_compacted else CONSECUTIVE):
            return False
        if before is None:
            return run.position == 0 or run.base >= self.lowest
        return behind is not None or run.last - before.last <= MAX_INT32


def fill(chain: Chain, run: Run, confirming: _Confirming | None = None) -> list[Run]:
    """Insert the parts of a run that belong into gaps of the chain. Returns them.

    `confirming`: the run is out of place, so that something has to confirm its offsets.
    """
    parts = []
    for before, first, last, behind in list(chain.gaps(run)):
        part = run.cut(first, last)
        if part is None or not has_epoch_between(part, before, behind):
            continue
        if confirming is None or confirming.confirms(part, before, behind):
            chain.insert(part)
            parts.append(part)
    return parts


def _fill_whole(chain: Chain, run: Run) -> bool:
    """Insert a run if its offsets are exactly those that are missing between two others."""
    for before, first, last, behind in chain.gaps(run):
        if before is None or behind is None or (first, last) != (run.base, run.last):
            return False
        if has_epoch_between(run, before, behind):
            chain.insert(run)
            return True
    return False


def heaviest(items: Sequence[tuple[int, int, int]]) -> list[int]:
    """Return the indexes of the heaviest sequence of items (first, last, weight) that do not overlap and increase."""
    if all(before[1] < after[0] for before, after in pairwise(items)):
        return list(range(len(items)))
    lasts: list[int] = []  # last offsets of the best sequences, increasing as their weights do
    best: list[tuple[int, int]] = []  # weight of each of these, and the index of its last item
    before: list[int] = []
    for index, (first, last, weight) in enumerate(items):
        at = bisect_left(lasts, first) - 1
        before.append(best[at][1] if at >= 0 else -1)
        total = weight + (best[at][0] if at >= 0 else 0)
        at = bisect_left(lasts, last)
        if at < len(lasts) and lasts[at] == last and best[at][0] >= total:
            continue
        if at and best[at - 1][0] >= total:
            continue
        behind = at
        while behind < len(lasts) and best[behind][0] <= total:
            behind += 1
        lasts[at:behind], best[at:behind] = [last], [(total, index)]
    chosen = [best[-1][1]] if best else []
    while chosen and before[chosen[-1]] >= 0:
        chosen.append(before[chosen[-1]])
    return chosen[::-1]


def leave_out(chain: Chain, run: Run, inserted: Sequence[Run] = ()) -> list[LeftOut]:
    """Say why batches of a run are left out: all but those `inserted`."""
    known = [chain.identities(each, run.base, run.last) for each in chain.touching(run) if each.file is not run.file
             or not run.position <= each.position < run.end]  # fmt: skip
    own = run.identities(0, MAX_INT64)
    for part in inserted:
        own = own[(own[:, 1] < part.base) | (own[:, 0] > part.last)]
    if not len(own):
        return []
    there = np.concatenate([np.empty((0, 3), np.int64), *known])
    doubled = np.isin(_as_items(own), _as_items(there))
    overlapping = _overlap(own, there)
    counts = {
        DOUBLED: int(doubled.sum()),
        CONTRARY: int((overlapping & ~doubled).sum()),
        UNCONFIRMED: int((~overlapping & ~doubled).sum()),
    }
    return [LeftOut(run, count, reason) for reason, count in counts.items() if count]


def _as_items(identities: Identities) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    """View the rows of a table as single items, which NumPy can compare as a whole."""
    rows = np.ascontiguousarray(identities)
    return rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize))).reshape(-1)


def _overlap(own: Identities, there: Identities) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which batches have offsets that others have, too. Those in `there` do not overlap each other."""
    if not len(there):
        return np.zeros(len(own), np.bool_)
    there = there[np.argsort(there[:, 0])]
    at = np.searchsorted(there[:, 0], own[:, 1], side="right") - 1  # the last that begins before the end
    return np.asarray((at >= 0) & (there[np.maximum(at, 0), 1] >= own[:, 0]))


def has_epoch_between(run: Run, before: Run | None, behind: Run | None) -> bool:
    """Return whether the leader epoch of a run lies between those of the runs around it. Old messages have none."""
    return not (
        run.leader_epoch >= 0
        and (
            (before is not None and before.leader_epoch > run.leader_epoch)
            or (behind is not None and 0 <= behind.leader_epoch < run.leader_epoch)
        )
    )


def _restore(chain: Chain, run: Run, *, bits: int = 64) -> bool:
    """Give a batch its offset back if the batches before and after it in the file leave room for exactly that.

    At the beginning and end of a file, the names of this file and of the next stand for the batches.

    bits: how many bits of the offset may be wrong
    """
    if run.count > 1 or run.epoch < 0:
        return False
    before, behind = chain.around(run)
    first = run.file.named if run.position == 0 else None if before is None else before.last + 1
    end = run.file.next_named if run.end == run.file.size else None if behind is None else behind.base
    if first is None or end is None or end - first != run.last_offset - run.base_offset + 1:
        return False
    if (first ^ run.base_offset).bit_count() > bits or not chain.has_room(first, end - 1):
        return False
    run.written_base = first
    chain.insert(run)
    return True
