"""How the log itself goes on: transactions of metadata, blocks of producer ids, and nothing at all."""

from __future__ import annotations

from typing import ClassVar

from octavo.schemas.entity import entity, kafka
from octavo.schemas.metadata.record import MetadataRecord


@entity
class NoOpRecord(MetadataRecord):
    """Nothing: written now and then, so that followers see how far the log has come."""

    TYPE: ClassVar = 20
    VERSIONS: ClassVar = range(1)


@entity
class BeginTransactionRecord(MetadataRecord):
    """What follows counts only with the end of the transaction (KIP-868)."""

    TYPE: ClassVar = 23
    VERSIONS: ClassVar = range(1)

    name: str | None = kafka("string", tag=0, nullable=True, default=None)


@entity
class EndTransactionRecord(MetadataRecord):
    """What was written since the beginning of the transaction counts."""

    TYPE: ClassVar = 24
    VERSIONS: ClassVar = range(1)


@entity
class AbortTransactionRecord(MetadataRecord):
    """What was written since the beginning of the transaction is void."""

    TYPE: ClassVar = 25
    VERSIONS: ClassVar = range(1)

    reason: str | None = kafka("string", tag=0, nullable=True, default=None)


@entity
class ProducerIdsRecord(MetadataRecord):
    """A block of producer ids was given to a broker; the next block begins at `next_producer_id`."""

    TYPE: ClassVar = 15
    VERSIONS: ClassVar = range(1)

    broker_id: int = kafka("int32")
    broker_epoch: int = kafka("int64", default=-1)
    next_producer_id: int = kafka("int64")
