"""Check one partition folder.

    check_partition    all problems of one folder; a Spark task or another process can call it

A check is one of two things, and is added to a list in `checks`:

    FolderCheck     a function from a `PartitionFolder` to problems, for what needs no batches; it runs first
    BatchCheck      a class, made once for a folder, that is shown every sound batch of every segment, in order

A broker may be at work in the folder; `looks` says how its unfinished work is told from damage.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Protocol

from octavo.inspect.verify.batch_columns import Table
from octavo.inspect.verify.folder import Entry, Folder
from octavo.inspect.verify.looks import Look, certain
from octavo.inspect.verify.problem import Problem
from octavo.inspect.verify.repairs import considered
from octavo.inspect.verify.surroundings import Surroundings, surroundings
from octavo.log.names import TopicPartition

OnBytes = Callable[[int], None]  # is told how many more bytes were checked


class PartitionFolder(Folder):
    """A partition folder: its listing, and what is known of it from elsewhere."""

    def __init__(self, path: Path, beside: Surroundings, on_bytes: OnBytes | None = None) -> None:
        super().__init__(path)
        self.beside = beside
        self.partition = TopicPartition.parse(path.absolute().name)  # None if the folder's name is not one
        self.on_bytes = on_bytes or (lambda size: None)


class SegmentData:
    """What is known of one segment after its batches were read."""

    def __init__(self, base_offset: int, entry: Entry, *, is_last: bool, next_base_offset: int | None) -> None:
        self.base_offset = base_offset
        self.log = entry
        self.is_last = is_last
        self.next_base_offset = next_base_offset
        self.end_offset = base_offset  # after the last sound batch
        self.end_position = 0  # after the last sound batch
        self.is_sound = True  # whether every byte belongs to a sound batch, or to a torn tail of the last segment
        self.largest_timestamp = -1
        self.has_wrong_index = False  # whether its offset index names places where no batch is, or another one


class BatchCheck(Protocol):
    """A check that needs the batches. The segments come in the order of their base offsets."""

    def __init__(self, folder: PartitionFolder) -> None: ...

    def begin(self, segment: SegmentData) -> Iterable[Problem]:
        """A segment begins."""

    def batches(self, table: Table) -> Iterable[Problem]:
        """These are its next sound batches (see `batch_columns`). The table changes afterwards: copy what you keep."""

    def end(self, segment: SegmentData) -> Iterable[Problem]:
        """The segment ends; `segment` says where, and whether all of it was sound."""

    def finish(self) -> Iterable[Problem]:
        """All segments were read."""


FolderCheck = Callable[[PartitionFolder], Iterable[Problem]]


def check_partition(
    folder: Path | str,
    *,
    beside: Surroundings | None = None,
    ignore: Collection[str] = (),
    on_bytes: OnBytes | None = None,
) -> Iterator[Problem]:
    """Yield the problems of one partition folder, in the order of its files.

    beside: what the data directory says about the partition, if it was read already
    ignore: names of rules that are not checked
    on_bytes: called with the number of bytes that were checked since the last call

    Raises `BadDirectory` if `folder` is a file, and `OSError` if it cannot be read.
    """
    path = Path(folder)

    def look(number: int) -> Look:
        known = surroundings(path) if beside is None or number else beside
        listing = PartitionFolder(path, known, None if number else on_bytes)
        return Look(listing, _problems(listing), lambda: surroundings(path) == known)

    yield from certain(look, ignore)


def _problems(folder: PartitionFolder) -> Iterator[Problem]:
    from octavo.inspect.verify.checks import BATCH_CHECKS, FOLDER_CHECKS
    from octavo.inspect.verify.segments import walk_segments

    for check in FOLDER_CHECKS:
        yield from check(folder)
    visitors = [make(folder) for make in BATCH_CHECKS]
    found = [*walk_segments(folder, visitors)]
    for visitor in visitors:
        found += visitor.finish()
    yield from considered(found)
