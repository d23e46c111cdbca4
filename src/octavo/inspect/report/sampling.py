"""Find out how well batches are compressed, by decompressing a few of them."""

from __future__ import annotations

from typing import Final

import numpy as np

from octavo.errors import FormatError
from octavo.log.storage import File
from octavo.records.compression import decompress
from octavo.records.kernels import scan
from octavo.records.kernels.batch_inflation import has_stream
from octavo.records.kernels.batch_table import Table
from octavo.records.kernels.message import walk_message
from octavo.records.layout import BATCH_HEADER, Attributes

_BATCHES_A_TABLE: Final = 2
_MOST_BATCHES: Final = 24  # of one partition
_MOST_BYTES: Final = 4 << 20  # compressed bytes of one batch; larger ones are not sampled
_LIMIT: Final = 64 << 20  # bytes that one batch is decompressed to


class CompressionSample:
    """Decompresses a few batches of a partition, spread over its segments."""

    def __init__(self) -> None:
        self.size_in = 0  # compressed bytes
        self.size_out = 0  # decompressed bytes
        self._left = _MOST_BATCHES

    def take(self, file: File, table: Table, shift: int) -> None:
        """Decompress some batches of a table of headers, unless enough were. Damaged ones are skipped."""
        if not self._left:
            return
        rows = np.flatnonzero(has_stream(table) & (table[:, scan.SIZE] <= _MOST_BYTES))
        chosen = rows[np.linspace(0, len(rows) - 1, _BATCHES_A_TABLE).astype(np.int64)] if len(rows) else rows
        for row in np.unique(chosen).tolist()[: self._left]:
            self._left -= 1
            position, size, magic, attributes = table[
                row, [scan.POSITION, scan.SIZE, scan.MAGIC, scan.ATTRIBUTES]
            ].tolist()
            data = memoryview(file.read_at(size, shift + position))
            stream = _stream(data, magic)
            try:
                out = len(decompress(attributes & int(Attributes.CODEC), stream, limit=_LIMIT, magic=magic))
            except FormatError:
                continue
            self.size_in += len(stream)
            self.size_out += out


def _stream(data: memoryview, magic: int) -> memoryview:
    """Return the compressed bytes of a batch; nothing if they cannot be found."""
    if magic == 2:
        return data[BATCH_HEADER.size :]
    end, *_, at, size = walk_message(data, 0, len(data))
    return data[at : at + max(size, 0)] if end >= 0 else data[:0]
