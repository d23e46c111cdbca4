"""Damage in segment files: what is wrong with a batch, and where the next one begins.

All code that goes on after damage uses this module. `octavo.records.resync` decides which batch is the next.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NoReturn

from octavo.errors import CorruptFile, FormatError
from octavo.log.segment.batch_walk import check, walk
from octavo.log.storage import File
from octavo.records.kernels.scan import TORN, entry_extent
from octavo.records.layout import BATCH_HEADER, LENGTH_AT, MAX_INT32
from octavo.records.resync import Resync

# A callback for damage found while walking a segment file. It gets the file, the error with its position, and the end
# of the walk. It raises, or returns where to go on: the position of a batch, or that end.
OnDamage = Callable[[File, FormatError, int], int]

MARKER_SIZE: Final = 512  # bytes to read of a control batch; a marker takes less than a hundred
WRONG_CRC: Final = -1  # stands for the checksum of a damaged marker in a table of headers (see `scan_headers`)

_WINDOW: Final = 4 << 20  # bytes that are searched first for the next batch
_LARGEST_WINDOW: Final = 64 << 20
_OVERLAP: Final = 16 << 20  # bytes of the largest window that the next one has, too, for batches that pass its end
_SMALL: Final = 64 << 10  # a search of so few bytes does not replace the window
_ZEROS_AT_ONCE: Final = 4096
_ZEROS: Final = LENGTH_AT + 3  # zero bytes with which a batch may begin


def refuse(file: File, error: FormatError, end: int) -> NoReturn:
    """Raise `CorruptFile`: the `OnDamage` for callers that need everything up to `end`."""
    raise CorruptFile(file.path, error.position, error.rule) from None


def wrong_with(file: File, position: int, end: int) -> FormatError | None:
    """Return what is wrong with the batch at `position`, which should end at `end`; None if nothing is wrong."""
    try:
        for entry in walk(file, position, end):
            check(file, entry)
            break
    except FormatError as error:
        return error
    return None


class BatchSearch:
    """Finds the next batch after damage, for one walk through a file.

    A window of the file stays in memory between two calls, with everything known about it. So the time of a walk is
    linear in the bytes, however many damaged places there are.

    The window grows while it has no batch, up to 64 MiB, and then moves on. A batch of more than 16 MiB that begins
    later than that in the damage may be missed.
    """

    def __init__(self, *, any_offset: bool = False) -> None:
        """Prepare a search. `any_offset`: take the first batch after damage, even if its offset is out of order."""
        self._any_offset = any_offset
        self._file: File | None = None
        self._end = 0
        self._start = 0  # of the window
        self._window = memoryview(b"")
        self._resync = Resync(self._window, 0, 0)
        self._checked = 0  # bytes of batches after the window whose checksums were computed

    def next_batch(self, file: File, position: int, end: int, last_offset: int | None = None) -> int:
        """Return the position of the first batch with a right checksum after the damage at `position`, else `end`.

        `last_offset` is that of the last good batch, if known: later batches continue from it. Positions beyond the
        largest possible segment are not searched, so that a file of a terabyte without batches is not read through.
        """
        limit = min(end, MAX_INT32)
        is_small = limit - position <= _SMALL and not self._is_of(file, limit)
        search = BatchSearch(any_offset=self._any_offset) if is_small else self
        found = search._search(file, position, limit, last_offset) if position < limit else limit
        return found if found < limit else end

    def _search(self, file: File, position: int, end: int, last_offset: int | None) -> int:
        size = _claimed_size(file, position, end)
        if not size:
            position = _skip_zeros(file, position, end)
        self._show(file, position, position + size, end)
        if position + size > self._window_end or (position + size == self._window_end < end):
            if self._has_batch_at(file, position + size, end):
                return position + size
            size = 0
        is_torn = None
        while position < end:
            self._resync.last_offset, self._resync.is_torn = last_offset, is_torn
            found = self._resync.find(position - self._start, size)
            if found is not None:
                return self._start + found[0]
            if self._window_end >= end:
                break
            before = self._window_end
            window = _WINDOW
            if position == self._start:
                window = min(4 * len(self._window), _LARGEST_WINDOW)
                if len(self._window) >= _LARGEST_WINDOW:
                    is_torn = _is_torn(file, position, end) if is_torn is None else is_torn
                    position, size = before - _OVERLAP, 0
            self._read(file, position, end, window)
            if self._window_end <= before:
                break  # the file was truncated meanwhile
        return end

    def _is_of(self, file: File, end: int) -> bool:
        return file is self._file and end == self._end

    @property
    def _window_end(self) -> int:
        return self._start + len(self._window)

    def _show(self, file: File, position: int, until: int, end: int) -> None:
        """Move the window if it does not have `position`, or is mostly searched and does not reach beyond `until`."""
        is_in = self._is_of(file, end) and self._start <= position < self._window_end
        is_late = position - self._start > len(self._window) // 2
        if not is_in or (is_late and until >= self._window_end < end):
            self._read(file, position, end, _WINDOW)

    def _read(self, file: File, position: int, end: int, size: int) -> None:
        if not self._is_of(file, end):
            self._checked = 0
        self._file, self._start, self._end = file, position, end
        self._window = memoryview(file.read_at(min(size, end - position), position))
        self._resync = Resync(self._window, 0, len(self._window), any_offset=self._any_offset)

    def _has_batch_at(self, file: File, position: int, end: int) -> bool:
        """Return whether there is a batch at `position`, after the window.

        In one walk, checksums are computed over at most twice as many bytes as the file has. After that, returns False.
        """
        try:
            entry = next(walk(file, position, end), None)
            if entry is None or self._checked + entry.size > 2 * end:
                return False
            self._checked += entry.size
            check(file, entry)
        except FormatError:
            return False
        return True


def pass_over() -> OnDamage:
    """Return an `OnDamage` that skips damage, for one walk by a caller that wants whatever can be read."""
    search = BatchSearch()

    def go_on(file: File, error: FormatError, end: int) -> int:
        return search.next_batch(file, error.position, end)

    return go_on


def _claimed_size(file: File, position: int, end: int) -> int:
    """Return the size that the header of a damaged batch claims; 0 if that is impossible."""
    try:
        entry = next(walk(file, position, end), None)
    except FormatError:
        return 0
    return 0 if entry is None else entry.size


def _is_torn(file: File, position: int, end: int) -> bool:
    """Return whether the damage at `position` may be a batch that passes the end of the file."""
    head = memoryview(file.read_at(BATCH_HEADER.size, position))
    return len(head) == BATCH_HEADER.size and entry_extent(head, 0, end - position)[0] == TORN


def _skip_zeros(file: File, position: int, end: int) -> int:
    """Skip zeros, with which a writer may have filled a gigabyte in advance.

    A batch may begin with zeros too. So the result is `position`, or a few bytes before the first that is not zero.
    """
    at, size = position, _ZEROS_AT_ONCE
    while at < end and (data := file.read_at(min(size, end - at), at)):
        rest = data.lstrip(b"\0")
        if rest:
            return max(position, at + len(data) - len(rest) - _ZEROS - 1)
        at = file.next_data(at + len(data))
        size = _WINDOW
    return end
