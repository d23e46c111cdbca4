"""What all records of a KRaft cluster's metadata have in common."""

from __future__ import annotations

from typing import ClassVar


class MetadataRecord:
    """A record of `__cluster_metadata`; each kind is a dataclass of its own."""

    __slots__ = ()

    TYPE: ClassVar[int]  # Kafka's number for the kind
    VERSIONS: ClassVar[range]  # those that Kafka 4.3 knows
