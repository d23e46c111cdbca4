"""The position of a consumer group in a partition: `OffsetAndMetadata`."""

from __future__ import annotations

from typing import NamedTuple

from octavo.records.layout import NO_LEADER_EPOCH


class OffsetAndMetadata(NamedTuple):
    """The position of a group: the offset of the next record to read, and the metadata committed with it."""

    offset: int
    metadata: str = ""
    leader_epoch: int = NO_LEADER_EPOCH  # leader epoch of the record before `offset`
