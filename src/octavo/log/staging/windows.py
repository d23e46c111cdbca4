"""Read staged batches in windows of some MiB, and assign offsets to them, many batches at once.

A `WindowReader` uses its memory again: fresh memory would take as long as reading, since the system clears its pages.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from octavo.errors import AppendRefused, CorruptFile, ErrorCode
from octavo.log.storage import File
from octavo.records.checksum import crc32c
from octavo.records.kernels import kernels, scan
from octavo.records.kernels.batch_checksums import first_mismatch
from octavo.records.kernels.batch_table import BatchTable
from octavo.records.layout import LEADER_EPOCH_AT, MAX_SIZE

Bytes = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]

WINDOW: Final = 4 << 20
_ROWS: Final = 8192  # batches of a window
_OFFSET_BYTES: Final = np.arange(8)
_EPOCH_BYTES: Final = LEADER_EPOCH_AT + np.arange(4)
_IN_DIGEST: Final = [scan.SIZE, scan.CRC]


class Window(NamedTuple):
    """Whole batches of magic 2, which may be written to, and their rows of a batch table (see `scan`)."""

    data: Bytes
    rows: Int64s

    @property
    def size(self) -> int:
        """The number of bytes."""
        return len(self.data)

    @property
    def record_offsets(self) -> int:
        """How many offsets the batches take."""
        return int((self.rows[:, scan.LAST_OFFSET] - self.rows[:, scan.BASE_OFFSET] + 1).sum())

    def part(self, first: int, end: int) -> memoryview:
        """Return the bytes of the batches from row `first` to before row `end`."""
        stop = self.size if end == len(self.rows) else int(self.rows[end, scan.POSITION])
        return self.data.data[int(self.rows[first, scan.POSITION]) : stop]

    def set_offsets(self, base_offset: int) -> None:
        """Give the batches consecutive offsets from `base_offset` on, in the bytes and in the rows."""
        counts = self.rows[:, scan.LAST_OFFSET] - self.rows[:, scan.BASE_OFFSET] + 1
        ends = base_offset + np.cumsum(counts)
        self.rows[:, scan.BASE_OFFSET] = ends - counts
        self.rows[:, scan.LAST_OFFSET] = ends - 1
        as_bytes = (ends - counts).astype(">i8").view(np.uint8).reshape(-1, len(_OFFSET_BYTES))
        self.data[self.rows[:, scan.POSITION, None] + _OFFSET_BYTES] = as_bytes

    def set_epoch(self, leader_epoch: int) -> None:
        """Give all batches this leader epoch."""
        as_bytes = np.array([leader_epoch], ">i4").view(np.uint8)
        self.data[self.rows[:, scan.POSITION, None] + _EPOCH_BYTES] = as_bytes
        self.rows[:, scan.LEADER_EPOCH] = leader_epoch

    def digest(self, before: int) -> int:
        """Return a checksum of the sizes and checksums of the batches. `before`: that of the previous window, or 0."""
        return crc32c(self.rows[:, _IN_DIGEST].astype(">i8").tobytes(), before)

    def first_wrong_checksum(self) -> int | None:
        """Return the first row whose checksum is not that of its bytes, or None."""
        return first_mismatch(kernels(self.size), self.data, self.rows)


def whole_batches(data: bytearray) -> Window:
    """Return the batches of any magic at the beginning of `data`, up to one that is incomplete or broken."""
    array = np.frombuffer(data, np.uint8)
    table = BatchTable(kernels(len(data)), _ROWS)
    rows = []
    position, outcome = 0, scan.MORE
    while outcome == scan.MORE:
        outcome = table.scan(array, position, len(array))
        position = table.position
        rows.append(table.batches.copy())
    return Window(array[:position], np.concatenate(rows))


class WindowReader:
    """Reads staged batches. A window may be used until the next one is read."""

    def __init__(self, most_batches: int = _ROWS) -> None:
        """`most_batches`: that a window has at a time, so that few are decompressed together."""
        self._memory = np.empty(0, np.uint8)
        self._most_batches: Final = most_batches

    def read(self, file: File, position: int, size: int, *, max_batch: int = MAX_SIZE) -> Iterator[Window]:
        """Yield the batches in `size` bytes of a staged file, a window at a time. Checksums are not verified.

        Raises `CorruptFile` if there is anything but whole batches of magic 2. Raises `AppendRefused` for a batch that
        is larger than a window and than `max_batch`, without reading it.
        """
        end = position + size
        if end > file.size():
            raise CorruptFile(file.path, file.size(), f"the file ends before its staged batches do, at {end:,}")
        table = BatchTable(kernels(size), self._most_batches)
        wanted = WINDOW
        while position < end:
            array = self._room(min(wanted, end - position))
            if file.read_into(array.data, position) != len(array):
                raise CorruptFile(file.path, position, "the file was cut while it was read")
            outcome = table.scan(array, 0, len(array))
            if not table.position:
                _, wanted, _ = scan.entry_extent(array.data, 0, end - position)
                if outcome != scan.TORN or not len(array) < wanted <= end - position:
                    raise CorruptFile(file.path, position, "there should be a staged batch, and is none")
                if wanted > max_batch:
                    raise AppendRefused(
                        ErrorCode.MESSAGE_TOO_LARGE, f"a batch of {wanted:,} bytes is larger than {max_batch:,}"
                    )
                continue
            wanted = WINDOW
            rows = table.batches.copy()
            if (rows[:, scan.MAGIC] != 2).any() or (rows[:, scan.LAST_OFFSET] < rows[:, scan.BASE_OFFSET]).any():
                raise CorruptFile(file.path, position, "staged batches are of magic 2, and none ends before it begins")
            yield Window(array[: table.position], rows)
            position += table.position

    def _room(self, size: int) -> Bytes:
        """Return memory of this size. That of a batch which is larger than a window is not kept."""
        if size > WINDOW:
            return np.empty(size, np.uint8)
        if size > len(self._memory):
            self._memory = np.empty(size, np.uint8)
        return self._memory[:size]
