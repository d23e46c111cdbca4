"""Where a log ends, for the rules about files that name a later offset.

Truncating a log to an offset inside a batch removes the whole batch. Kafka then goes on at that offset, and names it
in checkpoints and snapshots, although the last batch ends earlier. So an offset that lies less than a batch behind the
end is not held against a file, unless the newest snapshot says that the log did end there.
"""

from __future__ import annotations

from octavo.inspect.verify.batch_columns import BASE_OFFSET, LAST_OFFSET, Table
from octavo.inspect.verify.folder import Folder
from octavo.inspect.verify.partition import SegmentData
from octavo.log.names import SNAPSHOT, base_offset_of


class LogEnd:
    """The end of a log, once all of its segments were read."""

    def __init__(self, folder: Folder) -> None:
        names = (base_offset_of(name) for name in folder.files if name.endswith(SNAPSHOT))
        self._newest_snapshot = max((offset for offset in names if offset is not None), default=-1)
        self._largest_span = 0  # offsets of a batch
        self._is_sound = True
        self._has_segments = False
        self.offset = 0

    def note(self, table: Table) -> None:
        """Note the next batches."""
        self._largest_span = max(self._largest_span, int((table[:, LAST_OFFSET] - table[:, BASE_OFFSET]).max()) + 1)

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
        """Whether the log ends before `offset`, and so far that no truncation explains it."""
        room = 0 if self._newest_snapshot == self.offset else max(self._largest_span - 1, 0)
        return self.is_known and offset > self.offset + room
