"""Read and write the records of `__cluster_metadata`, and find record classes by their number."""

from __future__ import annotations

from typing import Final

from octavo.schemas.framed import UnknownRecord, read_framed, record_kinds, write_framed
from octavo.schemas.metadata import access, nodes, progress, topics
from octavo.schemas.metadata.record import MetadataRecord

__all__ = ["KINDS", "UnknownRecord", "read_metadata", "write_metadata"]

KINDS: Final[dict[int, type[MetadataRecord]]] = record_kinds(MetadataRecord, access, nodes, progress, topics)


def read_metadata(value: bytes | None, *, position: int = 0) -> MetadataRecord | UnknownRecord:
    """Read the metadata record in the value of a log record.

    Raises a `FormatError`, at `position`, for whatever Kafka's reader refuses, except unknown types and versions.
    """
    return read_framed(KINDS, value, what="metadata", position=position)


def write_metadata(record: MetadataRecord | UnknownRecord, *, version: int | None = None) -> bytes:
    """Return the value of the log record for a metadata record, in the newest version unless another is given.

    Raises `InvalidInput` for an unknown version or a field that it cannot hold.
    """
    return write_framed(record, version=version)
