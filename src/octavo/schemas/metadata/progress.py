"""Records about the metadata log itself: metadata transactions, blocks of producer ids, and no-ops."""

from __future__ import annotations

from typing import ClassVar

from octavo.schemas.entity import entity, kafka
from octavo.schemas.metadata.record import MetadataRecord


@entity
class NoOpRecord(MetadataRecord):
    """A no-op, written at intervals so that followers see the log advance."""

    TYPE: ClassVar = 20
    VERSIONS: ClassVar = range(1)


@entity
class BeginTransactionRecord(MetadataRecord):
    """Begins a metadata transaction: the records after it take effect only when the transaction ends (KIP-868)."""

    TYPE: ClassVar = 23
    VERSIONS: ClassVar = range(1)

    name: str | None = kafka("string", tag=0, nullable=True, default=None)


@entity
class EndTransactionRecord(MetadataRecord):
    """Ends a metadata transaction: the records since its beginning take effect."""

    TYPE: ClassVar = 24
    VERSIONS: ClassVar = range(1)


@entity
class AbortTransactionRecord(MetadataRecord):
    """Aborts a metadata transaction: the records since its beginning have no effect."""

    TYPE: ClassVar = 25
    VERSIONS: ClassVar = range(1)

    reason: str | None = kafka("string", tag=0, nullable=True, default=None)


@entity
class ProducerIdsRecord(MetadataRecord):
    """A broker was given a block of producer ids; the next block begins at `next_producer_id`."""

    TYPE: ClassVar = 15
    VERSIONS: ClassVar = range(1)

    broker_id: int = kafka("int32")
    broker_epoch: int = kafka("int64", default=-1)
    next_producer_id: int = kafka("int64")
