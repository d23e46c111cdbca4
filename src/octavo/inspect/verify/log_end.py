"""Where a log ends, for the rules about files that name a later offset.

Truncating a log to an offset inside a batch removes the whole batch. Kafka then goes on at that offset, and names it
in checkpoints and snapshots, although the last batch ends earlier. How many offsets the removed batch had cannot be
told any more. So a later offset is held against a file only if it is further away than a batch can reach, or if
the producer snapshots show that more than a truncation happened:

- The newest one is of the log's end, so the log did end there when it was closed.
- Several are of later offsets. A truncation leaves only the one of the offset to which it was done.
- One of a later offset names a producer's batch that the log does not have. After a truncation Kafka reads the state of
  producers from what is left.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final

from octavo.inspect.verify import producer_snapshots
from octavo.inspect.verify.partition import PartitionFolder, SegmentData
from octavo.log.names import SNAPSHOT, base_offset_of
from octavo.records.compression import DEFAULT_LIMIT
from octavo.records.kernels.record import MIN_RECORD_SIZE

_LARGEST_SPAN: Final = DEFAULT_LIMIT // MIN_RECORD_SIZE  # offsets of a batch that is not reported for its size


class LogEnd:
    """The end of a log, once all of its segments were read."""

    def __init__(self, folder: PartitionFolder) -> None:
        self._folder = folder
        self._is_sound = True
        self._has_segments = False
        self.offset = 0

    def end(self, segment: SegmentData) -> None:
        """Note the end of a segment."""
        self.offset = max(segment.base_offset, segment.end_offset)
        self._is_sound = self._is_sound and segment.is_sound
        self._has_segments = True

    @property
    def is_known(self) -> bool:
        """Whether the end can be told. In a damaged log it cannot."""
        return self._has_segments and self._is_sound

    def is_before(self, offset: int) -> bool:
        """Whether the log ends before `offset`, and no truncation explains it. To be asked after the last segment."""
        if not self.is_known or offset <= self.offset:
            return False
        return offset - self.offset >= _LARGEST_SPAN or self._is_cut

    @cached_property
    def _is_cut(self) -> bool:
        """Whether the snapshots show that the end of the log is lost, or that it never was behind the last batch."""
        if self._folder.beside.is_open:
            return False  # a broker that has started after a truncation may not have written its checkpoints yet
        names = {name: base_offset_of(name) for name in self._folder.files if name.endswith(SNAPSHOT)}
        offsets = {name: offset for name, offset in names.items() if offset is not None}
        beyond = [name for name, offset in offsets.items() if offset > self.offset]
        if not beyond:
            return max(offsets.values(), default=-1) == self.offset
        return len(beyond) > 1 or self._names_lost_batch(beyond[0], offsets[beyond[0]])

    def _names_lost_batch(self, name: str, offset: int) -> bool:
        data = self._folder.read(name, producer_snapshots.MAX_SIZE)
        _, entries = producer_snapshots.check_form(name, data, offset)
        return any(max(entry.last_offset, entry.transaction) >= self.offset for entry in entries or ())
