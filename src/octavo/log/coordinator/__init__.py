"""`Coordinator` does for producers and consumers what Kafka's brokers do besides keeping logs.

    producer ids         allocated in blocks, by records of the metadata log
    committed offsets    in `__consumer_offsets`
    transactions         in `__transaction_state`

All of it is kept in Kafka's own records. A stock Kafka that is given the directory continues with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from octavo.on_demand import on_demand

if TYPE_CHECKING:
    from octavo.log.coordinator.coordinator import Coordinator
    from octavo.log.coordinator.offset_and_metadata import OffsetAndMetadata
    from octavo.log.coordinator.producer_identity import ProducerIdentity
else:  # clients need `OffsetAndMetadata` alone, and the others take a moment to load
    __getattr__, __dir__ = on_demand(
        globals(),
        {
            "coordinator": ("Coordinator",),
            "offset_and_metadata": ("OffsetAndMetadata",),
            "producer_identity": ("ProducerIdentity",),
        },
    )

__all__ = [
    "Coordinator",
    "OffsetAndMetadata",
    "ProducerIdentity",
]
