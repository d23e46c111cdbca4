"""Decode buffers to Arrow columns: `to_arrow` for one buffer, `ArrowDecoder` for many."""

from __future__ import annotations

from collections.abc import Sequence
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

    It does the same as `to_arrow`, but keeps its work memory, and what it has learned about the size of the records,
    for the next buffer. This matters for buffers of a few megabytes or less. Several readers, also in several threads,
    may be in use at once; each has work memory of its own. Up to some 100 MiB of it are kept, usually much less.
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
        check_range("max_rows", max_rows, 1, MAX_SIZE)
        check_range("max_bytes", max_bytes, 1, MAX_SIZE)
        if not columns:
            raise InvalidInput("no columns are asked for")
        self.schema: Final[pa.Schema] = schema_for(columns)
        self._settings: Final = Settings(
            schema=self.schema,
            columns=(
                int("offset" in columns),
                int("timestamp" in columns),
                int("key" in columns),
                int("value" in columns),
                int("headers" in columns),
            ),
            max_rows=max_rows,
            max_bytes=max_bytes,
            verify=verify,
            whole_batches=whole_batches,
            workspaces=Workspaces(self.schema, max_decompressed),
        )

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
    decoder = ArrowDecoder(
        columns=columns,
        max_rows=max_rows,
        max_bytes=max_bytes,
        verify=verify,
        max_decompressed=max_decompressed,
        whole_batches=whole_batches,
    )
    return decoder.read(
        buffer, offsets=offsets, timestamps=timestamps, keep=keep, follows=follows, start=start, end=end
    )
