"""Decode buffers to Arrow columns: `to_arrow` for one buffer, `ArrowDecoder` for many."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from mmap import mmap
from typing import Final

import pyarrow as pa

from octavo.errors import InvalidInput
from octavo.records.arrow.reader import ArrowReader, Settings
from octavo.records.arrow.schema import COLUMNS, schema_for
from octavo.records.arrow.selection import Keep
from octavo.records.arrow.workspace import Workspaces
from octavo.records.compression import DEFAULT_LIMIT
from octavo.records.fields import check_range
from octavo.records.layout import MAX_SIZE, Buffer

MAX_ROWS: Final = 1 << 17
MAX_BYTES: Final = 8 << 20


class ArrowDecoder:
    """Decodes one buffer after another to the same columns, for example fetches of a log.

    It does the same as `to_arrow`, but what it has learned about the size of the records in one buffer decides how much
    memory it takes for the next one. So buffers of a few megabytes or less take less time, and where chunks end depends
    on the buffers before. Several readers, also in several threads, may be in use at once.
    """

    def __init__(
        self,
        *,
        columns: Sequence[str] = COLUMNS,
        max_rows: int = MAX_ROWS,
        max_bytes: int = MAX_BYTES,
        verify: bool = True,
        max_decompressed: int = DEFAULT_LIMIT,
        whole_batches: bool = False,
    ) -> None:
        """The arguments are those of `to_arrow`. Raises `InvalidInput` for arguments that make no sense."""
        schema = _checked_schema(columns, max_rows, max_bytes)
        workspaces = Workspaces(schema, max_decompressed)
        self._settings: Final = Settings(workspaces, max_rows, max_bytes, verify, whole_batches, learns=True)

    @property
    def schema(self) -> pa.Schema:
        """The schema of every chunk."""
        return self._settings.workspaces.schema

    def read(
        self,
        buffer: Buffer | mmap,
        *,
        offsets: tuple[int | None, int | None] | None = None,
        timestamps: tuple[int | None, int | None] | None = None,
        keep: Keep | None = None,
        follows: int | None = None,
        start: int = 0,
        end: int | None = None,
    ) -> ArrowReader:
        """Read the records of `buffer[start:end]`. Arguments, result and errors are those of `to_arrow`."""
        return ArrowReader(
            self._settings,
            buffer,
            offsets=offsets,
            timestamps=timestamps,
            keep=keep,
            follows=follows,
            start=start,
            end=end,
        )


def to_arrow(
    buffer: Buffer | mmap,
    *,
    columns: Sequence[str] = COLUMNS,
    offsets: tuple[int | None, int | None] | None = None,
    timestamps: tuple[int | None, int | None] | None = None,
    max_rows: int = MAX_ROWS,
    max_bytes: int = MAX_BYTES,
    verify: bool = True,
    max_decompressed: int = DEFAULT_LIMIT,
    whole_batches: bool = False,
    keep: Keep | None = None,
    follows: int | None = None,
    start: int = 0,
    end: int | None = None,
) -> ArrowReader:
    """Read the records of `buffer[start:end]`, of any mix of magics, as chunks of Arrow columns.

    columns: the columns to decode, from those in `octavo.records.arrow.schema`
    offsets, timestamps (in milliseconds): half-open ranges, `None` for an open end. Batches that cannot hold such a
        record are neither decompressed nor decoded. Their checksums are verified only where headers alone may mislead:
        for timestamps, and next to gaps in the offsets
    max_rows, max_bytes: a chunk has at most `max_rows` records and about `max_bytes` each of keys and of values, or one
        larger record
    whole_batches: end a chunk only where a batch ends; `max_bytes` is then the approximate size of its batches
    keep: takes a table of headers (`octavo.records.kernels.scan`), and returns for each batch whether to read it
    follows: check that the offsets increase as in a log, from batch to batch, and begin after this offset

    Control records are returned like other records, and marked in `isControl`.

    Raises `InvalidInput` at once for arguments that make no sense. At damage, the iteration returns all records before
    it, and then raises a `FormatError`. A torn tail just ends the iteration.
    """
    _checked_schema(columns, max_rows, max_bytes)
    workspaces = _workspaces(tuple(columns), max_decompressed)
    settings = Settings(workspaces, max_rows, max_bytes, verify, whole_batches, learns=False)
    return ArrowReader(
        settings,
        buffer,
        offsets=offsets,
        timestamps=timestamps,
        keep=keep,
        follows=follows,
        start=start,
        end=end,
    )


def _checked_schema(columns: Sequence[str], max_rows: int, max_bytes: int) -> pa.Schema:
    check_range("max_rows", max_rows, 1, MAX_SIZE)
    check_range("max_bytes", max_bytes, 1, MAX_SIZE)
    if not columns:
        raise InvalidInput("no columns are asked for")
    return schema_for(columns)


@lru_cache(maxsize=4)
def _workspaces(columns: tuple[str, ...], max_decompressed: int) -> Workspaces:
    """Return the workspaces of `to_arrow`, which are kept for the next call."""
    return Workspaces(schema_for(columns), max_decompressed)
