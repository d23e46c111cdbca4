"""The size and offsets of one batch that is appended to a segment: `BatchSpan`."""

from __future__ import annotations

from typing import NamedTuple


class BatchSpan(NamedTuple):
    """The fields of an appended batch that the segment, its indexes and the leader epochs need."""

    size: int
    base_offset: int  # of a compressed message of magic 0 or 1, the last offset: the first one is inside
    last_offset: int
    max_timestamp_ms: int
    leader_epoch: int
    magic: int
