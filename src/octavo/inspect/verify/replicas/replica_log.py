"""One replica of a partition: where it begins and ends, which leaders wrote it, and its batches one table at a time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from octavo.errors import InvalidInput
from octavo.inspect.verify.folder import Folder
from octavo.inspect.verify.surroundings import surroundings
from octavo.inspect.verify.text_lines import MAX_SIZE, read_checkpoint
from octavo.log.names import LEADER_EPOCHS, LOG, TopicPartition, file_name
from octavo.log.segment.header_scan import scan_headers
from octavo.log.storage import DISK
from octavo.records.kernels import scan
from octavo.records.layout import MAX_INT64

Rows = npt.NDArray[np.int64]

# The columns of a table of batches.
BASE_OFFSET: Final = 0
LAST_OFFSET: Final = 1
LEADER_EPOCH: Final = 2
SIZE: Final = 3
CRC: Final = 4
MAGIC: Final = 5
SAME: Final = 6  # of two equal batches, the columns before this one are equal
SEGMENT: Final = 6  # base offset of the segment
POSITION: Final = 7

_SCANNED: Final = (
    scan.BASE_OFFSET,
    scan.LAST_OFFSET,
    scan.LEADER_EPOCH,
    scan.SIZE,
    scan.CRC,
    scan.MAGIC,
)
_DELETE_HORIZON: Final = 0x40


class Place(NamedTuple):
    """Where a batch lies."""

    path: Path
    position: int

    def __str__(self) -> str:
        return f"{self.path} at {self.position}"


class ReplicaLog:
    """The log of one replica. Nothing is locked; a file that vanishes raises `FileNotFoundError`."""

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self.partition: Final = TopicPartition.parse(path.absolute().name)
        if self.partition is None:
            raise InvalidInput(f"{path} is not the folder of a partition, such as events-0")
        self._folder = Folder(path)
        self._beside = surroundings(path)
        self.segments: Final = self._folder.segments
        self.is_damaged = False  # whether a walk met bytes that are not a batch
        self._compaction_seen = False

    @property
    def start_offset(self) -> int:
        """The first offset that the log may have."""
        return max(self.segments[0] if self.segments else 0, self._beside.log_start or 0)

    @property
    def high_watermark(self) -> int | None:
        """The high watermark that was written down last, if it is known."""
        return self._beside.high_watermark

    @cached_property
    def end_offset(self) -> int:
        """The offset after the last complete batch."""
        return self._tail[1]

    @cached_property
    def last_epoch(self) -> int:
        """The last leader that the log knows; -1 if it knows none."""
        known = [epoch for epoch, start in self._epochs if start <= self.end_offset]
        return max([self._tail[0], *known])

    @cached_property
    def _tail(self) -> tuple[int, int]:
        """The epoch of the last batch, and the offset after it."""
        epoch, end = -1, self.segments[-1] if self.segments else 0
        for base in reversed(self.segments):
            last: Rows | None = None
            for rows in self._tables(base):
                last = rows[-1]
            if last is not None:
                epoch, end = int(last[LEADER_EPOCH]), max(end, int(last[LAST_OFFSET]) + 1)
                break
        return epoch, end

    @property
    def _epochs(self) -> list[tuple[int, int]]:
        if LEADER_EPOCHS not in self._folder.files:
            return []
        lines, _ = read_checkpoint(self._folder.read(LEADER_EPOCHS, MAX_SIZE), 2)
        return [(int(line.words[0]), int(line.words[1])) for line in lines]

    def tables(self, start_offset: int) -> Iterator[Rows]:
        """Yield the headers of the batches from an offset on. Those behind damage in a segment are left out."""
        for number, base in enumerate(self.segments):
            if number + 1 < len(self.segments) and self.segments[number + 1] <= start_offset:
                continue
            for rows in self._tables(base):
                wanted = rows[rows[:, LAST_OFFSET] >= start_offset]
                if len(wanted):
                    yield wanted

    def _tables(self, base: int) -> Iterator[Rows]:
        file = DISK.open(self.path / file_name(base, LOG))
        end, walked = file.size(), 0
        for table, shift in scan_headers(file, 0, end):
            rows = np.empty((len(table), POSITION + 1), np.int64)
            rows[:, :SAME] = table[:, _SCANNED]
            rows[:, SEGMENT] = base
            rows[:, POSITION] = table[:, scan.POSITION] + shift
            self._compaction_seen = self._compaction_seen or _is_compacted(table)
            walked = int(rows[-1, POSITION] + rows[-1, SIZE])
            yield rows
        if walked < end and base != self.segments[-1]:
            self.is_damaged = True

    @property
    def may_lack_below(self) -> int:
        """The offset below which compaction may have removed records, or damage hides them."""
        if self.is_damaged or self._looks_compacted:
            return MAX_INT64
        return self._beside.cleaner_offset or 0

    @cached_property
    def _looks_compacted(self) -> bool:
        return any(self._compaction_seen for base in self.segments for _ in self._tables(base))

    def read(self, row: Rows) -> bytes:
        """Return the bytes of a batch."""
        place = self.place(row)
        return DISK.open(place.path).read_at(int(row[SIZE]), place.position)

    def place(self, row: Rows) -> Place:
        """Return where a batch lies."""
        return Place(self.path / file_name(int(row[SEGMENT]), LOG), int(row[POSITION]))


def _is_compacted(table: npt.NDArray[np.int64]) -> bool:
    """Whether a batch lacks records that its header has room for, or waits for its tombstones to go."""
    is_new = table[:, scan.MAGIC] == 2
    lacks = table[:, scan.COUNT] < table[:, scan.LAST_OFFSET] - table[:, scan.BASE_OFFSET] + 1
    return bool((is_new & (lacks | (table[:, scan.ATTRIBUTES] & _DELETE_HORIZON != 0))).any())
