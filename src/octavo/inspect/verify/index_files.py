"""What the checks of both indexes share: the file, and how strictly it is checked.

Kafka rebuilds indexes after a crash, and believes them after a clean shutdown. So the indexes that recovery will
rebuild are not checked. The index of an active segment may be preallocated: then it ends in zeros.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from octavo.inspect.verify.folder import Gone
from octavo.inspect.verify.leftovers import is_doomed
from octavo.inspect.verify.partition import PartitionFolder, SegmentData
from octavo.inspect.verify.problem import Problem, Rule
from octavo.inspect.verify.repairs import NAME_ANEW
from octavo.log.ownership.lock import is_locked

Int64s = npt.NDArray[np.int64]

MOST: Final = 1000  # problems of one index that are listed
_MAX_SIZE: Final = 128 << 20  # bytes of an index that are checked; Kafka makes them 10 MiB large


EMPTIED: Final = Rule.declare(
    "segment-emptied",
    "segment",
    means="A segment has no batches, but its index has entries: the batches are lost.",
    repair=NAME_ANEW,
)


@dataclass(frozen=True)
class IndexRules:
    """The rules that both indexes have."""

    size: Rule
    zeros: Rule


def may_be_checked(folder: PartitionFolder, segment: SegmentData) -> bool:
    """Whether the indexes of a segment will be believed, and neither rebuilt by recovery nor deleted."""
    beside = folder.beside
    if is_doomed(folder):
        return False
    return not beside.is_known or _is_settled(folder, segment) or is_locked(folder.path.absolute().parent)


def may_be_preallocated(folder: PartitionFolder, segment: SegmentData) -> bool:
    """Whether the segment may be active, so that its indexes may end in zeros."""
    return segment.is_last and not folder.beside.is_clean


def _is_settled(folder: PartitionFolder, segment: SegmentData) -> bool:
    behind, point = segment.next_base_offset, folder.beside.recovery_point
    return folder.beside.is_clean or (behind is not None and point is not None and behind <= point)


class IndexFile:
    """The entries of one index, without the zeros at its end, and what is wrong with the file as such."""

    def __init__(self, folder: PartitionFolder, segment: SegmentData, name: str, fields: np.dtype[np.void]) -> None:
        self.name = name
        self.is_there = name in folder.files
        data = b""
        if self.is_there:
            try:
                data = folder.read(name, _MAX_SIZE)
            except Gone:
                self.is_there = False
        self._rest = len(data) % fields.itemsize
        self._size = len(data)
        self._may_have_zeros = may_be_preallocated(folder, segment)
        entries = np.frombuffer(data, fields, count=len(data) // fields.itemsize)
        used = len(data[: len(data) - self._rest].rstrip(b"\0"))
        self.entries = entries[: -(-used // fields.itemsize)]
        self._zeros = len(entries) - len(self.entries)

    def problems(self, rules: IndexRules) -> Iterator[Problem]:
        """Yield what is wrong with the size of the file."""
        end = len(self.entries) * self.entries.itemsize
        if self._zeros and not self._may_have_zeros:
            yield rules.zeros.broken(self.name, position=end, found=f"{self._zeros} entries")
        if self._rest:
            yield rules.size.broken(self.name, position=self._size - self._rest, found=f"{self._size} bytes")


def emptied(segment: SegmentData, entries: int) -> Problem:
    """Return the problem that an index has entries, but its segment no batches."""
    return EMPTIED.broken(segment.log.name, position=0, offset=segment.base_offset, found=f"{entries} entries")
