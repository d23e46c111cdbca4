"""What a consumer is in its group: `ConsumerGroupMetadata`."""

from __future__ import annotations

from typing import NamedTuple


class ConsumerGroupMetadata(NamedTuple):
    """A consumer and its group, as Kafka's producers name them for offsets in a transaction.

    If the consumer was a member and is none any more, or is not in this generation, such offsets are refused.
    """

    group_id: str
    generation_id: int = -1  # -1: not by a member
    member_id: str = ""
    group_instance_id: str | None = None
