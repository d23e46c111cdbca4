"""Walk through one file of batches, for people to look at: by objects, or by columns if it is large.

Both ways find the same records and the same damage, and can take turns: each continues where the other stopped, at the
start of a batch.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from octavo.errors import FormatError, InvalidInput, Truncated
from octavo.inspect.kinds import FileName, Kind, begins_with_batch, open_regular
from octavo.inspect.segment_bytes import SegmentBytes
from octavo.inspect.wanted import Wanted
from octavo.log.names import LOG
from octavo.records import Batch, Damage, Record, read_batches
from octavo.records.kernels.scan import DONE, TORN, entry_extent
from octavo.records.layout import BATCH_HEADER, LOG_OVERHEAD, MIN_INT64
from octavo.records.offset_order import HEAD_SIZE, base_offset_at, is_misplaced, misplaced

if TYPE_CHECKING:
    import pyarrow as pa

    from octavo.records.arrow.reader import ArrowReader

_ZEROS: Final = bytes(1 << 16)


class SegmentFile:
    """The batches of one file, as far as it reaches when it is opened. It is read step by step.

    wanted: the records to return. Batches outside the range of offsets are not decoded
    verify: compare checksums; for batches outside the range of offsets, only if a gap in the offsets follows
    resync: continue after damage, and record it in `damage`

    In a file that is named like a segment, batches whose offsets do not increase are damage, too.
    Raises `Unreadable` if the file cannot be opened, and whenever it turns out that it was cut while it was read; and
    `InvalidInput` if it is of a kind that has no batches.
    """

    def __init__(self, path: Path, *, wanted: Wanted, verify: bool = True, resync: bool = False) -> None:
        wanted.check()
        self.path: Final = path
        self.wanted: Final = wanted
        self._verify: Final = verify
        self._resync: Final = resync
        self._open: Final = open_regular(path)
        name = FileName.parse(path.name)
        if name.kind is not Kind.UNKNOWN and not name.kind.has_batches:
            raise InvalidInput(
                f"{path} is {name.kind.value}, not a segment: the records are in files that end in {LOG}"
            )
        # The last offset of the previous batch; None if the file is not named like a segment.
        self._is_named: Final = name.base_offset is not None
        is_segment = name.kind is Kind.SEGMENT and name.base_offset is not None and not name.renamed
        self.last_offset = name.base_offset - 1 if is_segment and name.base_offset is not None else None
        self.damage: Final[list[Damage]] = []
        self.torn_tail: int | None = None  # position of an incomplete batch at the end; known after the walk
        self.zero_tail: int | None = None  # where zeros begin that fill the file to its end, as if allocated in advance
        self._begin(0)

    def _begin(self, position: int) -> None:
        self._bytes = SegmentBytes(self._open, position)
        self._data = self._bytes.data
        self.size = self._bytes.size
        self._bytes.fill(position)
        self._read_from(position, None)

    def _read_from(self, position: int, last_offset: int | None) -> None:
        """Go on at the start of a batch, with what is in memory by now."""
        # The head of the batch that follows the last one has to be there as well.
        self._end = self.size if self._bytes.is_complete else max(position, self._bytes.filled - HEAD_SIZE)
        # Without resync only the wanted batches are verified, in `batches`.
        self._reader = read_batches(
            self._data, start=position, end=self._end, verify=self._verify and self._resync, resync=self._resync
        )
        self._reader.damage = self.damage
        self._reader.go_to(position, last_offset)
        self._last_read = last_offset

    def _read_on(self) -> None:
        """Get the batch at `position`, which is not all there yet, into memory.

        What follows damage is needed to the end of the file, because any batch in it may be the one to go on with.
        """
        position = self.position
        outcome, size, _ = entry_extent(self._data, position, self._end)
        is_whole = outcome in (DONE, TORN) and position + size <= self.size
        self._bytes.release(position)
        self._bytes.fill(position + size if is_whole else self.size)
        self._read_from(position, self._last_read)

    @property
    def position(self) -> int:
        """The position after the batches that were returned."""
        return self._reader.position

    def is_at_its_path(self) -> bool:
        """Return whether the path still leads to this file, which may have been deleted or replaced."""
        try:
            return os.path.samestat(self.path.stat(), os.fstat(self._open.descriptor))
        except OSError:
            return False

    def grow(self) -> bool:
        """Look for what has been written to the file since. Returns whether there is any; the walk can then go on.

        Raises `Unreadable` if the file is shorter than what was read of it.
        """
        size = self._open.size()
        if size < self.position:
            raise self._bytes.cut()
        is_filled = self.zero_tail is not None and not self._is_zero(self.zero_tail, LOG_OVERHEAD)
        if size == self.size and not is_filled:
            return False
        self.torn_tail = self.zero_tail = None
        self._begin(self.position)
        return True

    @property
    def has_batches(self) -> bool:
        """Whether the file is named after an offset, as Kafka's are, or begins with something like a batch."""
        return self._is_named or begins_with_batch(self._data[: BATCH_HEADER.size], self.size)

    def batches(self) -> Iterator[Batch]:
        """Yield the wanted batches. To get their records, call `records`.

        Without `resync`, this yields everything before the first damage, and then raises `FormatError`.
        """
        while (batch := self._next_batch()) is not None:
            try:
                behind = base_offset_at(self._data, batch.position + batch.size)
                is_wanted = self.wanted.may_have(batch)
                if self._verify and not self._resync and (is_wanted or behind != batch.last_offset + 1):
                    batch.verify()
                if self.last_offset is not None:
                    self._check_place(batch, self.last_offset, behind)
            except FormatError as error:
                self.pass_over(batch.position, error)
            else:
                if is_wanted:
                    yield batch
        if self.zero_tail is not None:
            return
        self.torn_tail = self._reader.torn_tail
        self._check_tail()

    def _next_batch(self) -> Batch | None:
        """Return the next batch; None at the end, or if only zeros follow."""
        while True:
            begin, known = self.position, len(self.damage)
            if self._resync and self._ends_in_zeros(begin):
                return None
            try:
                batch = next(self._reader, None)
            except FormatError:
                if not self._ends_in_zeros(self.position):
                    raise
                return None
            if self._end == self.size or (batch is not None and len(self.damage) == known):
                if batch is not None:
                    self._last_read = batch.last_offset
                return batch
            del self.damage[known:]  # it was found without looking at the rest of the file
            self._reader.position = begin
            self._read_on()

    def _ends_in_zeros(self, position: int) -> bool:
        """Return whether only zeros follow, enough of them to be no torn batch; then remember that."""
        left = self.size - position
        head = self._data[position : min(position + HEAD_SIZE, self._bytes.filled)]
        if left < LOG_OVERHEAD or any(head) or not self._is_zero(position, left):
            return False
        self.zero_tail = position
        return True

    def _is_zero(self, position: int, size: int) -> bool:
        """Return whether all of `size` bytes at `position` are zero by now. Holes of the file are not read."""
        end = position + size
        while (position := max(position, self._open.next_data(position))) < end:
            piece = self._open.read_at(min(end - position, len(_ZEROS)), position)
            if not piece:
                raise self._bytes.cut()
            if piece != _ZEROS[: len(piece)]:
                return False
            position += len(piece)
        return True

    def records(self, batch: Batch) -> Iterator[Record]:
        """Return the wanted records of a batch. Iterating raises `FormatError` at damage; call `pass_over` with it."""
        return iter(batch) if self.wanted.is_everything else filter(self.wanted.has, batch)

    def pass_over(self, position: int, error: FormatError) -> None:
        """Record damage in the batch at `position`, so that the walk can go on. Without `resync`, raise it."""
        if not self._resync:
            raise error
        _, size, _ = entry_extent(self._data, position, self.size)
        self.damage.append(Damage(position, size, error))

    def chunks(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the wanted records from `position` on as Arrow columns, which include `key`, `isControl` and so on."""
        while True:
            reader = self._columns(columns)
            try:
                for chunk in reader:
                    for sound in self._sound_parts(chunk):
                        if (wanted := self.wanted.with_keys(sound)).num_rows:
                            yield wanted
                    self._reader.position = reader.position
            except FormatError as error:
                self._go_to(reader)
                if self._ends_in_zeros(self.position):
                    return
                if not self._resync:
                    raise
                if not self._pass_to_next(error):
                    break
                continue
            self._go_to(reader)
            if self._end < self.size:
                self._read_on()
                continue
            self.torn_tail = reader.torn_tail
            if self.torn_tail is None or not self._resync or not self._pass_to_next(None):
                break
        self._check_tail()

    def _sound_parts(self, chunk: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a chunk, without those of batches that have a bad control record, from that record on."""
        from octavo.inspect.control_rows import control_rows

        while (controls := control_rows(chunk)) is not None and controls.bad is not None:
            row, error = controls.bad
            yield chunk.slice(0, row)
            self.pass_over(error.position, error)
            behind = row
            while behind < chunk.num_rows and chunk.column("position")[behind].as_py() == error.position:
                behind += 1
            chunk = chunk.slice(behind)
        yield chunk

    def _columns(self, columns: Sequence[str]) -> ArrowReader:
        from octavo.records import to_arrow

        return to_arrow(
            self._data,
            columns=columns,
            offsets=self.wanted.offsets,
            timestamps=self.wanted.timestamps,
            verify=self._verify,
            follows=self.last_offset,
            start=self.position,
            end=self._end,
        )

    def _go_to(self, reader: ArrowReader) -> None:
        last_offset = None if reader.last_offset == MIN_INT64 else reader.last_offset
        self._reader.go_to(reader.position, last_offset)
        self._last_read = last_offset
        if self.last_offset is not None:
            self.last_offset = last_offset

    def _pass_to_next(self, error: FormatError | None) -> bool:
        """Go to the next batch after damage, or after what looks like a torn tail. Returns whether there is one."""
        begin = self.position
        batch = self._next_batch()
        if batch is None:
            self.torn_tail = self._reader.torn_tail
            return False
        if batch.position > begin:
            self._reader.position = batch.position
        elif error is not None:  # its checksum is right, but its offsets or its records are not
            self.pass_over(begin, error)
        return True

    def _check_place(self, batch: Batch, before: int, behind: int | None) -> None:
        """Raise `BadRecord` if a batch has offsets that it cannot have at its place in the log."""
        base_offset = batch.last_offset if batch.count is None else batch.base_offset
        if is_misplaced(base_offset, batch.last_offset, before, behind):
            raise misplaced(batch.position)
        self.last_offset = batch.last_offset

    def _check_tail(self) -> None:
        """Raise `Truncated` if another batch follows the seemingly incomplete last one."""
        if self.torn_tail is None or self._resync:
            return
        found = next(read_batches(self._data, start=self.torn_tail, resync=True), None)
        if found is not None and (self.last_offset is None or found.last_offset > self.last_offset):
            raise Truncated(self.torn_tail, "a batch ends behind the file, and there are others behind its header")
