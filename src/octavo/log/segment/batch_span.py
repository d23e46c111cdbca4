"""The size and place of one batch that is appended to a segment: `BatchSpan`."""

from __future__ import annotations

from typing import NamedTuple


class BatchSpan(NamedTuple):
    """The size and place of one batch in the log, for segments and leader epochs."""

    size: int
    base_offset: int  # for an old compressed message its last offset, because the first one is inside
    last_offset: int
    max_timestamp_ms: int
    leader_epoch: int
    magic: int
