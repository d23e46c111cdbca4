"""Where a group is in a partition: `OffsetAndMetadata`."""

from __future__ import annotations

from typing import NamedTuple

from octavo.records.layout import NO_LEADER_EPOCH


class OffsetAndMetadata(NamedTuple):
    """A position: the offset of the next record that is to be read, and whatever goes with it."""

    offset: int
    metadata: str = ""
    leader_epoch: int = NO_LEADER_EPOCH  # of the record before
