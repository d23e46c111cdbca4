"""The common base class of all records of a KRaft cluster's metadata."""

from __future__ import annotations

from typing import ClassVar


class MetadataRecord:
    """A record of `__cluster_metadata`; each kind is a dataclass of its own."""

    __slots__ = ()

    TYPE: ClassVar[int]  # Kafka's number for the kind
    VERSIONS: ClassVar[range]  # versions that Kafka 4.3 knows
