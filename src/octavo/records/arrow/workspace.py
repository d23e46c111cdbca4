"""The memory that a reader needs while it reads a buffer, and that the next reader uses again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from octavo.records.arrow.batch_columns import batch_column
from octavo.records.arrow.room import Forecast
from octavo.records.arrow.sink import MADE_LAST, Chunk
from octavo.records.compression import Inflater
from octavo.records.kernels import decode, scan

_TABLE_ROWS: Final = 8192
_KEPT: Final = 4 << 20  # bytes: more decompressed bytes are not kept for the next reader
_SPARE: Final = 2  # free workspaces that are kept


class Workspace:
    """Work memory for one reader at a time."""

    def __init__(self, schema: pa.Schema, max_decompressed: int) -> None:
        self.table: Final = np.empty((_TABLE_ROWS, scan.COLUMNS), np.int64)
        self.cursor: Final = np.zeros(decode.CURSOR_SIZE, np.int64)  # the decoder's place in the table
        self.inflater = Inflater(limit=max_decompressed)
        self.chunk: Final = Chunk(schema.names, _TABLE_ROWS)
        self.forecast = Forecast()
        self._schema: Final = schema
        names: Sequence[str] = schema.names
        self._makers: Final[list[tuple[int, str, Callable[[list[int]], pa.Array] | None]]] = [
            (place, names[place], self.chunk.makers.get(names[place]))
            for place in sorted(range(len(names)), key=lambda place: names[place] in MADE_LAST)
        ]

    def record_batch(self, cursor: list[int], first: int, last: int) -> pa.RecordBatch:
        """Return the decoded records, of the rows `first` to `last` (excluded) of the table."""
        rows = cursor[decode.ROWS]
        table, counts = self.table[first:last], self.chunk.batch_rows[first:last]
        offsets = self.chunk.offsets.array[:rows]
        arrays: list[pa.Array] = [None] * len(self._makers)
        for place, name, make in self._makers:
            if make is not None:
                arrays[place] = make(cursor)
            else:
                arrays[place] = batch_column(name, table, counts, offsets)
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def clear(self) -> None:
        """Make ready for the next reader."""
        self.chunk.forget_large()
        self.inflater.clear(most=_KEPT)


class Workspaces:
    """The workspaces of readers with the same columns, as many as there are readers at the same time."""

    def __init__(self, schema: pa.Schema, max_decompressed: int) -> None:
        self.schema: Final = schema
        self.wanted: Final = (  # the first fields of `decode.Wanted`
            int("offset" in schema.names),
            int("timestamp" in schema.names),
            int("key" in schema.names),
            int("value" in schema.names),
            int("headers" in schema.names),
        )
        self._max_decompressed: Final = max_decompressed
        self._free: Final[deque[Workspace]] = deque(maxlen=_SPARE)

    def take(self) -> Workspace:
        """Return a workspace that nobody else uses."""
        try:
            return self._free.pop()  # one step, in which no other thread can take the same
        except IndexError:
            return Workspace(self.schema, self._max_decompressed)

    def give_back(self, workspace: Workspace) -> None:
        """Let other readers use a workspace."""
        workspace.clear()
        self._free.append(workspace)
