"""Runs of sound batches: `Run`, the unit in which a salvage moves data. No batch of a run is looked at one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from octavo.errors import FormatError
from octavo.inspect.salvage.patient_file import PatientFile
from octavo.log.segment.header_scan import scan_headers
from octavo.records import read_batches
from octavo.records.kernels import scan
from octavo.records.layout import LOG_OVERHEAD, MAGIC_AT, Attributes

Identities = npt.NDArray[np.int64]  # base offset, last offset and checksum of each batch

_CODEC = int(Attributes.CODEC)

DISTINCT: Final = 1  # there is a batch beside it with higher or lower offsets, none of which are the same
CONSECUTIVE: Final = 2  # there is a batch with the next or previous offset, or nothing but damage around it


@dataclass(slots=True, eq=False)
class SegmentFile:
    """A segment file of a source. Nothing of it is believed but its bytes, not even its name."""

    path: Path
    named: int  # the base offset in its name
    size: int
    replica: int  # the number of the source that it is in
    number: int  # its place among the files of the source
    next_named: int | None = None  # the base offset in the name of the next file

    def open(self) -> PatientFile:
        """Open the file for reading. Raises `OSError` and `BadDirectory`."""
        return PatientFile(self.path)


@dataclass(slots=True, eq=False)
class Run:
    """Sound batches that lie one after another in a file, with increasing offsets and the same leader epoch."""

    file: SegmentFile
    position: int
    end: int
    base_offset: int  # if the first batch is a compressed message of magic 0 or 1: not after its first offset, or last
    last_offset: int
    epoch: int  # -1 for messages of magic 0 and 1
    count: int  # number of batches
    span: int  # number of offsets of all batches; smaller than from first to last if there are gaps between them
    credibility: int  # how well its neighbours in the file confirm its offsets: 0, `DISTINCT` or `CONSECUTIVE`
    written_base: int | None = None  # base offset to write instead of that of the only batch, whose own is wrong
    written_epoch: int | None = None  # leader epoch to write instead of a wrong one

    @property
    def size(self) -> int:
        """The number of bytes."""
        return self.end - self.position

    @property
    def base(self) -> int:
        """The base offset that the result has."""
        return self.base_offset if self.written_base is None else self.written_base

    @property
    def last(self) -> int:
        """The last offset that the result has."""
        return self.last_offset + self.base - self.base_offset

    @property
    def leader_epoch(self) -> int:
        """The leader epoch that the result has."""
        return self.epoch if self.written_epoch is None else self.written_epoch

    @property
    def has_gaps(self) -> bool:
        """Whether offsets are missing between batches: the log is compacted."""
        return self.span < self.last_offset - self.base_offset + 1

    def is_followed_by(self, other: Run) -> bool:
        """Return whether `other` begins in the same file where this one ends."""
        return self.file is other.file and self.end == other.position

    def first_offset(self) -> int:
        """Return the first offset. That of a compressed message of magic 0 or 1 is inside, and has to be read."""
        file = self.file.open()
        head = file.read_at(MAGIC_AT + 2, self.position)
        if head[MAGIC_AT] >= 2 or not head[MAGIC_AT + 1] & _CODEC:
            return self.base
        size = int.from_bytes(head[8:LOG_OVERHEAD], "big") + LOG_OVERHEAD
        try:
            return next(read_batches(file.read_at(size, self.position))).base_offset
        except FormatError:  # what is compressed cannot be read; the checksum was right, so it was written so
            return self.base

    def cut(self, first: int, last: int) -> Run | None:
        """Return the part whose batches lie between two offsets, ends included; None if there is none."""
        if first <= self.base and self.last <= last:
            return self
        if self.count == 1 or last < self.base or self.last < first:
            return None
        part: Run | None = None
        for table, shift in self.tables():
            rows = table[(table[:, scan.BASE_OFFSET] >= first) & (table[:, scan.LAST_OFFSET] <= last)]
            if not len(rows):
                continue
            begin, end = rows[0].tolist(), rows[-1].tolist()
            until = shift + end[scan.POSITION] + end[scan.SIZE]
            if part is None:
                part = replace(
                    self, position=shift + begin[scan.POSITION], base_offset=begin[scan.BASE_OFFSET], count=0
                )
            part.end, part.last_offset, part.count = until, end[scan.LAST_OFFSET], part.count + len(rows)
            part.span = part.last_offset - part.base_offset + 1  # whether it has gaps is told by the whole
        return part

    def split(self, offsets: Identities) -> list[Run]:
        """Divide the run in front of the batches that have these last offsets."""
        parts: list[Run] = []
        last = self.base_offset - 1
        for table, shift in self.tables():
            lasts = table[:, scan.LAST_OFFSET]
            follows = (table[:, scan.MAGIC] < 2) & (table[:, scan.ATTRIBUTES] & _CODEC != 0)
            bases = np.where(follows, np.concatenate(([last], lasts[:-1])) + 1, table[:, scan.BASE_OFFSET])
            starts = np.flatnonzero(np.isin(lasts, offsets))
            for begin, end in pairwise([0, *starts.tolist(), len(table)]):
                if begin == end:
                    continue
                position = shift + int(table[begin, scan.POSITION])
                if not parts or begin in starts:
                    parts.append(replace(self, position=position, base_offset=int(bases[begin]), count=0, span=0))
                part = parts[-1]
                part.end = shift + int(table[end - 1, scan.POSITION] + table[end - 1, scan.SIZE])
                part.last_offset = int(lasts[end - 1])
                part.count += end - begin
                part.span += int((lasts[begin:end] - bases[begin:end] + 1).sum())
            last = int(lasts[-1])
        return parts

    def tables(self) -> Iterator[tuple[npt.NDArray[np.int64], int]]:
        """Yield the headers of the batches; see `scan_headers`."""
        return scan_headers(self.file.open(), self.position, self.end)

    def identities(self, first: int, last: int) -> Identities:
        """Return base offset, last offset and checksum of the batches that have an offset between two offsets."""
        columns = [scan.BASE_OFFSET, scan.LAST_OFFSET, scan.CRC]
        parts = [
            table[(table[:, scan.LAST_OFFSET] >= first) & (table[:, scan.BASE_OFFSET] <= last)][:, columns]
            for table, _ in self.tables()
        ]
        return np.concatenate([np.empty((0, len(columns)), np.int64), *parts])
