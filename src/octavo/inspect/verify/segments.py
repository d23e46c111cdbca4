"""Read the batches of all segments of a partition, check them, and show the sound ones to the other checks.

A broker may delete or replace segments meanwhile. What was opened stays what it was. What is gone before it is opened
was deleted, or is part of another segment now: the folder is listed again, and the walk goes on where it stopped.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from octavo.inspect.verify.batch_columns import BASE_OFFSET, LAST_OFFSET, LEADER_EPOCH, MAX_TIMESTAMP, POSITION, Table
from octavo.inspect.verify.batch_rules import FAULTS
from octavo.inspect.verify.examiner import Examiner
from octavo.inspect.verify.folder import Gone
from octavo.inspect.verify.leftovers import is_doomed
from octavo.inspect.verify.partition import BatchCheck, PartitionFolder, SegmentData
from octavo.inspect.verify.problem import Problem, Rule
from octavo.inspect.verify.repairs import CUT_TAIL, NAME_ANEW
from octavo.inspect.verify.tail import TailKind
from octavo.log.names import LOG, METADATA_TOPIC, file_name
from octavo.log.ownership.lock import is_locked
from octavo.log.storage import File
from octavo.records.kernels.verification import faults
from octavo.records.layout import MAX_INT32

FIRST_OFFSET: Final = Rule.declare(
    "segment-base-offset",
    "segment",
    means="A batch has a lower offset than the segment is named after: readers look for it in the segment before.",
    repair=NAME_ANEW,
)
OVERLAP: Final = Rule.declare(
    "segment-overlap",
    "segment",
    means="A segment has offsets of the next segment: readers get records twice, or skip some.",
    repair=NAME_ANEW,
)
OFFSET_RANGE: Final = Rule.declare(
    "segment-offset-range",
    "segment",
    means="A segment has more offsets than its indexes can hold, 2,147,483,648: readers do not find them.",
    repair=NAME_ANEW,
)
SIZE: Final = Rule.declare(
    "segment-size",
    "segment",
    means="A segment is larger than 2,147,483,647 bytes: Kafka cannot open it.",
    repair=NAME_ANEW,
)
TORN: Final = Rule.declare(
    "segment-torn-tail",
    "segment",
    means="The last batch of a segment is not complete, though nobody is writing it: readers stop before it for ever.",
    repair=CUT_TAIL,
)
ZEROS: Final = Rule.declare(
    "segment-zero-tail",
    "segment",
    means="A segment ends in zeros, as if it was preallocated, though nobody is writing it: readers stop before them.",
    repair=CUT_TAIL,
)
_MOST: Final = 1000  # problems of one rule and segment that are listed
_UNFINISHED: Final = {TailKind.TORN: TORN, TailKind.ZEROS: ZEROS}


def walk_segments(
    folder: PartitionFolder, checks: Sequence[BatchCheck], *, only: int | None = None
) -> Iterator[Problem]:
    """Yield the problems of all segments, and show their sound batches to `checks`.

    only: the base offset of the one segment to read
    """
    walk = _Walk(folder, checks, is_alone=only is not None)
    before = -1 if only is None else only - 1
    while (base_offset := next((base for base in folder.segments if base > before), None)) is not None:
        before = base_offset
        if only is not None and base_offset != only:
            break
        entry = folder.files[file_name(base_offset, LOG)]
        try:
            with folder.open_file(entry.name) as file:
                if os.fstat(file.descriptor).st_ino != entry.identity.inode:
                    folder.list_again()  # it was replaced, perhaps by one that has the offsets of others, too
                if entry.name in folder.files:
                    yield from walk.through(base_offset, file)
        except Gone:
            folder.list_again()


class _Walk:
    """One walk through the segments of a partition."""

    def __init__(self, folder: PartitionFolder, checks: Sequence[BatchCheck], *, is_alone: bool) -> None:
        self.end_offset = 0
        self._is_alone = is_alone
        self._folder = folder
        self._checks = checks
        self._examiner = Examiner()
        self._epoch = -1
        self._no_gaps = folder.partition is not None and folder.partition.topic == METADATA_TOPIC
        self._is_first = True

    def through(self, base_offset: int, file: File) -> Iterator[Problem]:
        """Yield the problems of one segment."""
        folder, name = self._folder, file.path.name
        behind = next((base for base in folder.segments if base > base_offset), None)
        segment = SegmentData(base_offset, folder.files[name], is_last=behind is None, next_base_offset=behind)
        for check in self._checks:
            yield from check.begin(segment)
        size = file.size()  # after indexes were read: what these name is there
        if size > MAX_INT32:
            yield SIZE.broken(name, position=MAX_INT32, found=f"{size} bytes")
        places, listed = _Places(segment, name), Counter[Rule]()
        position = 0
        for table, problems in self._examiner.examine(file, name, size, no_gaps=self._no_gaps, epoch=self._epoch):
            segment.is_sound &= not problems
            listed.update(problem.rule for problem in problems)
            yield from (problem for problem in problems if listed[problem.rule] <= _MOST)
            if len(table):
                yield from self._gap(segment, name, table)
                yield from places.look_at(table)
                self._take(segment, table)
                for check in self._checks:
                    yield from check.batches(table)
            folder.on_bytes(self._examiner.end_position - position)
            position = self._examiner.end_position
        folder.on_bytes(size - position)
        yield from self._tail(segment, name)
        for check in self._checks:
            yield from check.end(segment)
        self._is_first = False

    def _take(self, segment: SegmentData, table: Table) -> None:
        self.end_offset = segment.end_offset = int(table[-1, LAST_OFFSET]) + 1
        self._epoch = max(self._epoch, int(table[:, LEADER_EPOCH].max()))
        segment.largest_timestamp = max(segment.largest_timestamp, int(table[:, MAX_TIMESTAMP].max()))

    def _gap(self, segment: SegmentData, name: str, table: Table) -> Iterator[Problem]:
        """Compare the first batch of a segment of the metadata with the last one of the segment before."""
        first = int(table[0, BASE_OFFSET])
        is_begin = segment.end_offset == segment.base_offset and not self._is_first
        if self._no_gaps and is_begin and int(table[0, POSITION]) == 0 and first > self.end_offset:
            yield FAULTS[faults.GAP].at(name, 0, first, self.end_offset - 1, first)

    def _tail(self, segment: SegmentData, name: str) -> Iterator[Problem]:
        segment.end_position = self._examiner.end_position
        tail = self._examiner.tail
        if tail is None:
            return
        beside = self._folder.beside  # if nothing is known of it, the folder may be a copy that was made meanwhile
        is_open = beside.is_open or is_doomed(self._folder) or not (beside.is_known or self._is_alone)
        may_be_unfinished = segment.is_last and is_open
        if may_be_unfinished and (tail.kind is not TailKind.DAMAGED or self._will_be_cut()):
            return
        segment.is_sound = False
        rule = _UNFINISHED.get(tail.kind)
        if rule is None:
            yield tail.problem
        else:
            yield rule.broken(name, position=tail.position, offset=segment.end_offset, found=f"{tail.size} bytes")

    def _will_be_cut(self) -> bool:
        """Whether recovery will cut damage at the end of the log, as a power cut leaves it: no broker is running."""
        return self._folder.beside.is_open and not is_locked(self._folder.path.absolute().parent)


class _Places:
    """Compares the offsets of a segment's batches with its name and with the next segment. Each is reported once."""

    def __init__(self, segment: SegmentData, name: str) -> None:
        self._segment = segment
        self._name = name
        self._reported: set[Rule] = set()

    def look_at(self, table: Table) -> Iterator[Problem]:
        """Yield what is wrong with the offsets of these batches."""
        base, behind = self._segment.base_offset, self._segment.next_base_offset
        yield from self._first(FIRST_OFFSET, table, table[:, BASE_OFFSET] < base)
        yield from self._first(OFFSET_RANGE, table, table[:, LAST_OFFSET] > base + MAX_INT32)
        if behind is not None:
            yield from self._first(OVERLAP, table, table[:, LAST_OFFSET] >= behind)

    def _first(
        self, rule: Rule, table: Table, is_wrong: np.ndarray[tuple[int], np.dtype[np.bool_]]
    ) -> Iterator[Problem]:
        if rule not in self._reported and is_wrong.any():
            self._reported.add(rule)
            row = table[int(np.argmax(is_wrong))]
            first, last = int(row[BASE_OFFSET]), int(row[LAST_OFFSET])
            yield rule.broken(self._name, position=int(row[POSITION]), offset=first, found=f"offsets {first} to {last}")
