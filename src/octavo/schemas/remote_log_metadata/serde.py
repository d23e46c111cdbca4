"""Read and write the records of `__remote_log_metadata`, and find record classes by their number."""

from __future__ import annotations

from typing import Final

from octavo.schemas.framed import UnknownRecord, read_framed, record_kinds, write_framed
from octavo.schemas.remote_log_metadata import records
from octavo.schemas.remote_log_metadata.records import RemoteLogMetadataRecord

KINDS: Final[dict[int, type[RemoteLogMetadataRecord]]] = record_kinds(RemoteLogMetadataRecord, records)


def read_remote_metadata(value: bytes | None, *, position: int = 0) -> RemoteLogMetadataRecord | UnknownRecord:
    """Read the record in the value of a log record.

    Raises a `FormatError`, at `position`, for whatever Kafka's reader refuses, except unknown types and versions.
    """
    return read_framed(KINDS, value, what="remote log metadata", position=position)


def write_remote_metadata(record: RemoteLogMetadataRecord | UnknownRecord, *, version: int | None = None) -> bytes:
    """Return the value of the log record for a record, in the newest version unless another is given.

    Raises `InvalidInput` for an unknown version or a field that it cannot hold.
    """
    return write_framed(record, version=version)
