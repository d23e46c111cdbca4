"""Read the batches of metadata files in windows of bounded memory, and decode their records."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final, NamedTuple

from octavo.errors import FormatError, Truncated, Unsupported
from octavo.inspect.verify.folder import Folder, read_at
from octavo.records import Batch, Record, read_batches
from octavo.records.control import Control, read_control
from octavo.schemas.metadata.record import MetadataRecord
from octavo.schemas.metadata.serde import UnknownRecord, read_metadata

_WINDOW: Final = 4 << 20
_MAX_BATCH: Final = 256 << 20  # Kafka's quorum writes at most 8 MiB


class Decoded(NamedTuple):
    """One record of a metadata file."""

    position: int  # of its batch
    offset: int
    content: MetadataRecord | Control | FormatError


def metadata_batches(folder: Folder, name: str) -> Iterator[tuple[int, Batch]]:
    """Yield the batches of a file, each with its position. A batch is valid until the next one is asked for.

    Raises a `FormatError`, whose position is that in the file, at damage and at an incomplete last batch.
    """
    with folder.open(name) as descriptor:
        size = os.fstat(descriptor).st_size
        position, window = 0, _WINDOW
        while position < size:
            data = read_at(descriptor, window, position)
            reader = read_batches(data)
            try:
                for batch in reader:
                    yield position + batch.position, batch
            except FormatError as error:
                error.position += position
                raise
            if reader.position == 0:
                if position + len(data) >= size or window >= _MAX_BATCH:
                    raise Truncated(position, "the file ends inside a batch")
                window *= 4
                continue
            position, window = position + reader.position, _WINDOW


def metadata_records(folder: Folder, name: str) -> Iterator[Decoded]:
    """Yield the records of a file, those that cannot be decoded as errors. Raises as `metadata_batches` does."""
    for position, batch in metadata_batches(folder, name):
        try:
            records = list(batch)
        except FormatError as error:
            yield Decoded(position, batch.base_offset, error)
            continue
        for record in records:
            yield Decoded(position, record.offset, _decode(batch, record))


def _decode(batch: Batch, record: Record) -> MetadataRecord | Control | FormatError:
    try:
        if batch.is_control:
            return read_control(record)
        content = read_metadata(record.value)
    except FormatError as error:
        return error
    if isinstance(content, UnknownRecord):
        return Unsupported(0, f"a record of type {content.type} and version {content.version} is unknown")
    return content
