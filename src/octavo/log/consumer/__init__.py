"""A consumer on a data directory, in this process and without a server."""

from __future__ import annotations

from octavo.log.consumer.config import ConsumerConfig, OffsetReset
from octavo.log.consumer.consumer import Consumer
from octavo.log.consumer.record import ConsumerRecord
from octavo.log.coordinator.offset_and_metadata import OffsetAndMetadata

__all__ = [
    "Consumer",
    "ConsumerConfig",
    "ConsumerRecord",
    "OffsetAndMetadata",
    "OffsetReset",
]
