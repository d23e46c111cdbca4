"""How a producer is known in the logs: `ProducerIdentity`."""

from __future__ import annotations

from typing import NamedTuple


class ProducerIdentity(NamedTuple):
    """Producer id and epoch, as in the producer's batches."""

    producer_id: int
    epoch: int
