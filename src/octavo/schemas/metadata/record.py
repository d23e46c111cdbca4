"""The common base class of all records of a KRaft cluster's metadata."""

from __future__ import annotations

from octavo.schemas.framed import FramedRecord


class MetadataRecord(FramedRecord):
    """A record of `__cluster_metadata`; each kind is a dataclass of its own."""

    __slots__ = ()
