"""Find every sound batch of a segment file, and every byte that belongs to none.

A batch is sound if its checksum is right, its offsets are possible, and its records can be read. After damage the
search goes on with the batch to which the length of the damaged one leads, and otherwise with the next bytes that are a
sound batch, whatever its offset. Which of them belong to the log is decided later, when all are known (`order`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from octavo.errors import BadRecord, FormatError, Truncated
from octavo.inspect.salvage.contents import Contents
from octavo.inspect.salvage.run import CONSECUTIVE, DISTINCT, Run, SegmentFile
from octavo.log.segment.block_reader import LARGE, BlockReader
from octavo.log.segment.damage import BatchSearch
from octavo.records.compression import DEFAULT_LIMIT
from octavo.records.kernels import kernels, scan
from octavo.records.kernels.batch_checksums import first_mismatch, mismatch
from octavo.records.kernels.batch_table import Table
from octavo.records.layout import MAX_INT32, MAX_INT64, NO_LEADER_EPOCH, Attributes

OnBytes = Callable[[int], None]

_BLOCK: Final = 4 << 20  # bytes
_ROWS: Final = 1 << 15
_CODEC: Final = int(Attributes.CODEC)
_IMPOSSIBLE: Final = "no batch can have these offsets"
_ZEROS: Final = "zeros, as a writer allocates them in advance, or a disk leaves them"
_UNREADABLE: Final = "the disk cannot read these bytes"
_TORN: Final = "the batch is not all there, as if its writer had died or the file were cut"

# Columns of extents: batches that follow each other without a gap in bytes and offsets, in the same leader epoch.
_POSITION, _END, _BASE, _LAST, _EPOCH, _COUNT, _SPAN = range(7)  # the span is the number of offsets of all batches
_Extents = npt.NDArray[np.int64]


class Damage(NamedTuple):
    """Bytes of a file that are not a sound batch."""

    file: SegmentFile
    position: int
    size: int
    rule: str  # what is wrong with the first of them

    @property
    def end(self) -> int:
        """The position after them."""
        return self.position + self.size


class Surveyed(NamedTuple):
    """The content of one segment file."""

    runs: list[Run]  # by position
    damage: list[Damage]
    has_thinned: bool  # records are missing in batches: the file is compacted


def survey(file: SegmentFile, on_bytes: OnBytes) -> Surveyed:
    """Read a whole segment file. Raises `OSError` and `BadDirectory`."""
    walk = _Walk(file, on_bytes)
    walk.run()
    extents = _joined(np.concatenate([np.empty((0, 7), np.int64), *walk.extents]))
    return Surveyed(_runs(file, extents), walk.damage, walk.has_thinned)


class _Walk:
    """One walk through a file."""

    def __init__(self, file: SegmentFile, on_bytes: OnBytes) -> None:
        self.extents: list[_Extents] = []
        self.damage: list[Damage] = []
        self.has_thinned = False
        self._last = (-1, -1)  # end and last offset of the last batch
        self._segment = file
        self._on_bytes = on_bytes
        self._file = file.open()
        self._end = min(file.size, self._file.size())
        self._kernels = kernels(self._end)
        self._reader = BlockReader(self._kernels, min(_BLOCK, max(self._end, 1)), _ROWS)
        self._search = BatchSearch(any_offset=True)
        self._contents = Contents()

    def run(self) -> None:
        reader = self._reader
        reader.begin(self._file, 0, self._end)
        told = 0
        while (met := reader.next()) != scan.DONE:
            if met == scan.MORE:
                self._take(reader.table)
            elif met == LARGE:
                error = reader.check_large()
                if error is None and self._first_wrong(reader.table, checked=True) is not None:
                    error = BadRecord(reader.position, _IMPOSSIBLE)
                if error is None:
                    self._add_large(reader.table[:1])
                    reader.pass_large()
                else:
                    self._skip(reader.position, error)
            else:
                self._skip(reader.position, reader.error())
            self._on_bytes(min(reader.position, self._end) - told)
            told = min(reader.position, self._end)

    def _take(self, table: Table) -> None:
        """Take the sound batches of a table. If one is damaged and the next is not, only that one is left out."""
        first = 0
        while (wrong := self._first_wrong(table[first:])) is not None:
            bad = first + wrong
            self._add_readable(table[first:bad])
            position = self._reader.shift + int(table[bad, scan.POSITION])
            following = table[bad + 1 : bad + 2]
            if not len(following) or self._first_wrong(following) is not None:
                self._skip(position, self._error(table[bad], position))
                return
            self._note(position, position + int(table[bad, scan.SIZE]), self._error(table[bad], position))
            first = bad + 1
        self._add_readable(table[first:])

    def _first_wrong(self, table: Table, *, checked: bool = False) -> int | None:
        """Return the first row of a batch that is not sound, or None. `checked`: its checksum is known to be right."""
        base, last = table[:, scan.BASE_OFFSET], table[:, scan.LAST_OFFSET]
        impossible = np.flatnonzero((base < 0) | (last < base) | (last == MAX_INT64))
        limit = int(impossible[0]) if len(impossible) else len(table)
        if not checked and limit:
            wrong = first_mismatch(self._kernels, self._reader.memory, table[:limit])
            if wrong is not None:
                return wrong
        return limit if limit < len(table) else None

    def _error(self, row: Table, position: int) -> FormatError:
        if self._first_wrong(row[np.newaxis], checked=True) is None:
            return mismatch(self._reader.memory, row, self._reader.shift)
        return BadRecord(position, _IMPOSSIBLE)

    def _skip(self, position: int, error: FormatError) -> None:
        """Go on after damage."""
        following = self._search.next_batch(self._file, position, self._end)
        self._note(position, following, error)
        self._reader.go_to(following, reread=False)

    def _note(self, position: int, end: int, error: FormatError) -> None:
        last = self.damage[-1] if self.damage else None
        if last is not None and last.end == position:
            self.damage[-1] = last._replace(size=end - last.position)
        else:
            self.damage.append(Damage(self._segment, position, end - position, self._rule(position, end, error)))

    def _rule(self, position: int, end: int, error: FormatError) -> str:
        pages = range(position - position % 4096, end, 4096)
        if self._file.unreadable and not self._file.unreadable.isdisjoint(pages):
            return _UNREADABLE
        if isinstance(error, Truncated):
            return _TORN
        if not self._file.read_at(min(end - position, 64), position).strip(b"\0"):
            return _ZEROS
        return error.rule

    def _add_large(self, table: Table) -> None:
        """Take a batch that the reader has checked, but does not hold in memory."""
        position, size = self._reader.position, int(table[0, scan.SIZE])
        wrong = [] if size > DEFAULT_LIMIT else self._contents.unreadable(self._read(position, size), table, position)
        if wrong:
            self._note(position, position + size, wrong[0][1])
        else:
            self._add(table)

    def _read(self, position: int, size: int) -> npt.NDArray[np.uint8]:
        return np.frombuffer(self._file.read_at(size, position), np.uint8)

    def _add_readable(self, table: Table) -> None:
        """Take batches that are sound from outside, except for those whose records nobody can read."""
        reader, first = self._reader, 0
        for row, error in self._contents.unreadable(reader.memory, table, reader.shift) if len(table) else []:
            self._add(table[first:row])
            position = reader.shift + int(table[row, scan.POSITION])
            self._note(position, position + int(table[row, scan.SIZE]), error)
            first = row + 1
        self._add(table[first:])

    def _add(self, table: Table) -> None:
        if not len(table):
            return
        rows = np.empty((len(table), 7), np.int64)
        rows[:, _POSITION] = table[:, scan.POSITION] + self._reader.shift
        rows[:, _END] = rows[:, _POSITION] + table[:, scan.SIZE]
        rows[:, _LAST] = table[:, scan.LAST_OFFSET]
        rows[:, _BASE] = self._bases(table, rows)
        rows[:, _EPOCH] = np.where(table[:, scan.MAGIC] == 2, table[:, scan.LEADER_EPOCH], NO_LEADER_EPOCH)
        rows[:, _COUNT] = 1
        rows[:, _SPAN] = rows[:, _LAST] - rows[:, _BASE] + 1
        thinned = (table[:, scan.MAGIC] == 2) & (table[:, scan.COUNT] < rows[:, _SPAN])
        self.has_thinned |= bool(thinned.any())
        self._last = int(rows[-1, _END]), int(rows[-1, _LAST])
        self.extents.append(_joined(rows))

    def _bases(self, table: Table, rows: _Extents) -> npt.NDArray[np.int64]:
        """Return the base offsets. A compressed message of magic 0 or 1 is taken to follow the one before it.

        Its own first offset is inside of it. It begins nowhere before the end of the one before it.
        """
        bases = table[:, scan.BASE_OFFSET].copy()
        ends = np.concatenate(([self._last[0]], rows[:-1, _END]))
        lasts = np.concatenate(([self._last[1]], rows[:-1, _LAST]))
        wrapped = (table[:, scan.MAGIC] < 2) & (table[:, scan.ATTRIBUTES] & _CODEC != 0)
        follows = wrapped & (ends == rows[:, _POSITION]) & (lasts < bases)
        bases[follows] = lasts[follows] + 1
        return bases


def _joined(extents: _Extents) -> _Extents:
    """Join extents that continue each other."""
    if len(extents) < 2:
        return extents
    before, after = extents[:-1], extents[1:]
    continues = (
        (after[:, _POSITION] == before[:, _END])
        & (after[:, _BASE] == before[:, _LAST] + 1)
        & (after[:, _EPOCH] == before[:, _EPOCH])
    )
    return _merged(extents, np.flatnonzero(np.concatenate(([True], ~continues))))


def _merged(extents: _Extents, starts: npt.NDArray[np.intp]) -> _Extents:
    """Make one extent of each group of extents, given the first of each group."""
    merged = extents[starts].copy()
    lasts = np.append(starts[1:], len(extents)) - 1
    merged[:, _END], merged[:, _LAST] = extents[lasts, _END], extents[lasts, _LAST]
    for column in (_COUNT, _SPAN):
        merged[:, column] = np.add.reduceat(extents[:, column], starts)
    return merged


def _runs(file: SegmentFile, extents: _Extents) -> list[Run]:
    """Make runs of the extents of a file. A compacted file has many extents, and few runs."""
    if not len(extents):
        return []
    before, after = extents[:-1], extents[1:]
    breaks = (after[:, _POSITION] != before[:, _END]) | (after[:, _EPOCH] != before[:, _EPOCH])
    # Nothing confirms the offset of the first and last batch if there is a gap next to it: it may be what is damaged.
    breaks[:1] = breaks[-1:] = True
    breaks |= after[:, _LAST] - before[:, _BASE] > MAX_INT32  # too far for one segment
    begins = [0, *(np.flatnonzero(breaks) + 1).tolist()]
    starts, first = set(begins), 0
    for at in (np.flatnonzero(after[:, _BASE] <= before[:, _LAST]) + 1).tolist():
        # Order is broken here. Either this extent is out of place, or those before it with higher offsets are. Those
        # after it are another run, so that their number does not speak for an extent that is alone out of place.
        first = max(first, begins[bisect_left(begins, at) - 1])
        starts |= {at, at + 1, first + int(np.searchsorted(extents[first:at, _LAST], extents[at, _BASE]))}
        first = at
    ordered = np.array(sorted(starts - {len(extents)}), np.intp)
    credibilities = np.maximum.reduceat(_credibility(extents), ordered)
    runs = []
    for row, credibility in zip(_merged(extents, ordered).tolist(), credibilities.tolist(), strict=True):
        position, end, base_offset, last_offset, epoch, count, span = row
        runs.append(Run(file, position, end, base_offset, last_offset, epoch, count, span, credibility))
    return runs


def _credibility(extents: _Extents) -> npt.NDArray[np.int64]:
    """Return how well the neighbours of each extent confirm its offsets; see `Run.credibility`."""
    before, after = extents[:-1], extents[1:]
    distance = after[:, _BASE] - before[:, _LAST]
    touches = (after[:, _POSITION] == before[:, _END]) & (np.abs(distance) <= MAX_INT32)
    credibility = np.where(_beside(touches), 0, CONSECUTIVE)
    credibility[_beside(touches & ((distance > 0) | (after[:, _LAST] < before[:, _BASE])))] = DISTINCT
    credibility[_beside(touches & (distance == 1)) | (extents[:, _COUNT] > 1)] = CONSECUTIVE
    # Two that leave room for exactly the batch between them confirm each other: only its own offset is wrong.
    width = extents[1:-1, _LAST] - extents[1:-1, _BASE] + 1
    rooms = extents[2:, _BASE] - extents[:-2, _LAST] - 1
    between = np.flatnonzero(
        (extents[1:-1, _COUNT] == 1)
        & (rooms == width)
        & (extents[1:-1, _POSITION] == extents[:-2, _END])
        & (extents[2:, _POSITION] == extents[1:-1, _END])
    )
    credibility[between] = credibility[between + 2] = CONSECUTIVE
    return credibility


def _beside(pairs: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return which items are in one of these pairs of neighbours."""
    no = np.zeros(1, np.bool_)
    return np.asarray(np.concatenate((no, pairs)) | np.concatenate((pairs, no)))
