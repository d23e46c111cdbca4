"""Compare transaction indexes and producer snapshots with the batches, in one pass over the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from octavo.inspect.verify import producer_snapshots, transaction_index
from octavo.inspect.verify.batch_columns import BASE_OFFSET, Table
from octavo.inspect.verify.log_end import LogEnd
from octavo.inspect.verify.partition import PartitionFolder, SegmentData
from octavo.inspect.verify.problem import Problem
from octavo.inspect.verify.producer_replay import Aborted, Marker, ProducerReplay
from octavo.inspect.verify.transaction_index import IndexEntry, SegmentTransactions
from octavo.log.names import PARTITION_METADATA, SNAPSHOT, TXN_INDEX, base_offset_of, file_name

_MAX_INDEX: Final = 1 << 30


class ProducerChecks:
    """The transaction indexes and producer snapshots of one partition."""

    def __init__(self, folder: PartitionFolder) -> None:
        self._folder = folder
        self._replay: ProducerReplay | None = None  # None before the first segment, and after damage
        self._is_damaged = False
        self._snapshots = [
            (offset, name)
            for name in folder.files
            if name.endswith(SNAPSHOT) and (offset := base_offset_of(name)) is not None
        ]
        self._end = LogEnd(folder)
        self._begin_segment([])

    def _begin_segment(self, entries: list[IndexEntry]) -> None:
        self._named = np.array([entry.last_offset for entry in entries], np.int64)
        self._entries = entries
        self._aborted: dict[int, Aborted] = {}
        self._markers: dict[int, Marker] = {}
        self._begins: set[int] = set()
        self._start: int | None = None

    def begin(self, segment: SegmentData) -> Iterable[Problem]:
        """Read the transaction index of a segment, to know which markers matter."""
        if self._replay is None and not self._is_damaged:
            self._replay = ProducerReplay(max(segment.base_offset, self._folder.beside.log_start or 0))
            while self._snapshots and self._snapshots[0][0] <= segment.base_offset:
                yield from self._check_snapshot(*self._snapshots.pop(0), None)
        self._begin_segment(self._read_index(segment.base_offset))

    def _read_index(self, base_offset: int) -> list[IndexEntry]:
        name = file_name(base_offset, TXN_INDEX)
        if name not in self._folder.files:
            return []
        return transaction_index.read_entries(self._folder.read(name, _MAX_INDEX))

    def batches(self, table: Table) -> Iterable[Problem]:
        """Replay batches, and stop at the offset of each snapshot to compare it."""
        if self._replay is None:
            return
        bases = table[:, BASE_OFFSET]
        if self._start is None:
            self._start = int(bases[0])
        at = 0
        while self._snapshots and self._snapshots[0][0] <= bases[-1]:
            offset, name = self._snapshots.pop(0)
            stop = at + int(np.searchsorted(bases[at:], offset))
            self._replay_rows(self._replay, table[at:stop])
            at = stop
            yield from self._check_snapshot(offset, name, self._replay)
        self._replay_rows(self._replay, table[at:])

    def _replay_rows(self, replay: ProducerReplay, table: Table) -> None:
        replay.replay(table)
        self._aborted |= {each.marker.offset: each for each in replay.aborted}
        if len(self._named):
            offsets = np.array([marker.offset for marker in replay.markers], np.int64)
            self._begins.update(replay.begins)
            self._begins.update(offsets.tolist())
            for row in np.flatnonzero(np.isin(offsets, self._named)).tolist():
                self._markers[int(offsets[row])] = replay.markers[row]
        replay.aborted.clear()
        replay.markers.clear()
        replay.begins.clear()

    def end(self, segment: SegmentData) -> Iterable[Problem]:
        """Compare the transaction index of a segment with its batches."""
        name = file_name(segment.base_offset, TXN_INDEX)
        entries: list[IndexEntry] = []
        if name in self._folder.files:
            data = self._folder.read(name, _MAX_INDEX)  # again: meanwhile a broker may have added entries
            entries = transaction_index.read_entries(data)
            form = transaction_index.check_form(name, len(data), entries, segment.base_offset, segment.next_base_offset)
            yield from (problem for problem in form if not self._is_unfinished(problem, segment))
        self._end.end(segment)
        if not segment.is_sound:
            self._replay, self._is_damaged = None, True
        if self._replay is None:
            return
        start = max(segment.base_offset, self._folder.beside.log_start or 0)
        read = SegmentTransactions(self._aborted, self._markers, self._begins, start, segment.end_offset)
        yield from transaction_index.check_against_data(name, self._entries, read)
        yield from transaction_index.check_missing(name, entries, self._aborted)
        if segment.next_base_offset is not None:
            self._replay.reach(segment.next_base_offset)

    def _is_unfinished(self, problem: Problem, segment: SegmentData) -> bool:
        """Whether a broker that is running, or has crashed, may just be writing the last entry."""
        return problem.rule is transaction_index.LENGTH and segment.is_last and self._folder.beside.is_open

    def finish(self) -> Iterator[Problem]:
        """Compare the snapshots at the end of the log."""
        yield from self._check_missing()
        for offset, name in self._snapshots:
            is_beyond = offset > self._end.offset
            yield from self._check_snapshot(offset, name, None if is_beyond else self._replay)
            if self._end.is_before(offset) and self._folder.beside.is_clean:
                found = f"the log ends at {self._end.offset}"
                yield producer_snapshots.BEYOND_END.broken(name, offset=offset, found=found)

    def _check_missing(self) -> Iterator[Problem]:
        """Report that a log was closed without a snapshot.

        Kafka writes one then, even if it has forgotten all producers. Only the first releases that knew producers did
        not always; so a partition that no release since 2.8 has served is not reported.
        """
        folder = self._folder
        has_snapshots = any(name.endswith(SNAPSHOT) for name in folder.files)
        is_meant = folder.partition is not None and PARTITION_METADATA in folder.files and folder.beside.is_clean
        if is_meant and not has_snapshots and self._replay is not None and self._replay.producers:
            last = max(producer.last_event for producer in self._replay.producers.values())
            found = f"{len(self._replay.producers)} producers, the last of them at offset {last}"
            name = file_name(self._end.offset, SNAPSHOT)
            yield producer_snapshots.NONE.broken(name, offset=self._end.offset, found=found)

    def _check_snapshot(self, offset: int, name: str, replay: ProducerReplay | None) -> Iterator[Problem]:
        """Check a snapshot, and compare it with what was replayed, if all of the log up to it was."""
        data = self._folder.read(name, producer_snapshots.MAX_SIZE)
        if not data and self._folder.beside.is_open:
            return  # made, and not yet written
        problems, entries = producer_snapshots.check_form(name, data, offset)
        yield from problems
        if entries is not None and replay is not None:
            replay.reach(offset)
            yield from producer_snapshots.check_against_log(name, entries, offset, replay)
