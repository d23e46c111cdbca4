"""What Kafka's brokers do for producers and consumers besides keeping logs: `Coordinator`.

    producer ids         in blocks, by records of the metadata log
    committed offsets    in `__consumer_offsets`
    transactions         in `__transaction_state`

All of it is kept in Kafka's own records. A stock Kafka that is given the directory continues with them.
"""

from __future__ import annotations

from octavo.log.coordinator.coordinator import Coordinator
from octavo.log.coordinator.offset_and_metadata import OffsetAndMetadata
from octavo.log.coordinator.transaction_log import ProducerIdentity

__all__ = [
    "Coordinator",
    "OffsetAndMetadata",
    "ProducerIdentity",
]
