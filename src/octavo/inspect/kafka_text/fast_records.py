"""Print the records of sound batches by a kernel, for large files.

The text is that of `log_text`, which prints everything else: small files, damaged batches, control records, messages of
old formats, and what is decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from octavo.records.kernels import Kernels
from octavo.records.kernels.printing import text
from octavo.records.layout import Attributes, BatchHeader, Buffer

_LOG_APPEND_TIME: Final = int(Attributes.LOG_APPEND_TIME)
_ROOM: Final = 1 << 20
_GAPS: Final = 4096


class Lines(NamedTuple):
    """Some lines of a batch; valid until the next are printed."""

    text: memoryview
    gaps: list[tuple[int, int]]  # offsets that are not consecutive


class RecordPrinter:
    """Prints the records of batches of magic 2, with metadata or contents or both."""

    def __init__(self, *, metadata: bool, contents: bool) -> None:
        self._batch: Final = np.zeros(text.BATCH_NUMBERS, np.int64)
        self._batch[text.WITH_METADATA] = metadata
        self._batch[text.WITH_CONTENTS] = contents
        self._fragments: Final = {kind: _fragments(kind, metadata) for kind in ("CreateTime", "LogAppendTime")}
        self._out: npt.NDArray[np.uint8] = np.empty(_ROOM, np.uint8)
        self._gaps: Final[npt.NDArray[np.int64]] = np.empty((_GAPS, 2), np.int64)

    @property
    def last_offset(self) -> int:
        """The offset of the last record that was printed."""
        return int(self._batch[text.LAST_OFFSET])

    def print(self, kernels: Kernels, header: BatchHeader, records: Buffer, last_offset: int) -> Iterator[Lines] | None:
        """Return the lines of a batch in pieces, or None if slower code has to print it."""
        is_append_time = bool(header.attributes & _LOG_APPEND_TIME)
        batch = self._batch
        batch[text.BASE_OFFSET] = header.base_offset
        batch[text.BASE_TIMESTAMP] = header.base_timestamp_ms
        batch[text.HAS_APPEND_TIME] = is_append_time
        batch[text.APPEND_TIME] = header.max_timestamp_ms
        batch[text.BASE_SEQUENCE] = header.base_sequence
        batch[text.COUNT] = header.record_count
        batch[text.LAST_OFFSET] = last_offset
        batch[text.ROW] = batch[text.POSITION] = 0
        limits, fragments = self._fragments["LogAppendTime" if is_append_time else "CreateTime"]
        arguments = (np.frombuffer(records, np.uint8), batch, limits, fragments)
        size, gaps, needed = kernels.print_records(*arguments, self._out, self._gaps)
        if size == text.DAMAGED:
            return None
        return self._pieces(kernels, arguments, size, gaps, needed)

    def _pieces(
        self, kernels: Kernels, arguments: tuple[npt.NDArray[np.generic], ...], size: int, gaps: int, needed: int
    ) -> Iterator[Lines]:
        while True:
            yield Lines(self._out.data[:size], [(first, second) for first, second in self._gaps[:gaps].tolist()])
            if self._batch[text.ROW] >= self._batch[text.COUNT]:
                return
            if needed > len(self._out):
                self._out = np.empty(needed, np.uint8)
            size, gaps, needed = kernels.print_records(*arguments, self._out, self._gaps)


def _fragments(timestamp_type: str, metadata: bool) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Return where each fragment begins, and all of them; the order is that of the constants in the kernel."""
    start = " " if metadata else "| "
    fragments = [
        "| offset: ",
        f" {timestamp_type}: ",
        " keySize: ",
        " valueSize: ",
        " sequence: ",
        " headerKeys: [",
        f"{start}key: ",
        " payload: ",
        f"{start}payload: ",
    ]
    assert len(fragments) == text.FRAGMENTS
    limits = np.cumsum([0, *map(len, fragments)], dtype=np.int64)
    return limits, np.frombuffer("".join(fragments).encode(), np.uint8)
