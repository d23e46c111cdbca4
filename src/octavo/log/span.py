"""What goes into a file, and where in the log it comes to lie: what a validator hands to segments."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from octavo.log.producer_batch import ProducerBatch
from octavo.records.layout import Buffer


class Origin(Enum):
    """Who appends as the leader."""

    CLIENT = 0
    COORDINATOR = 1  # of groups or transactions, on the same broker
    RAFT_LEADER = 2  # of the metadata log, who has given offsets and epoch already


class BatchSpan(NamedTuple):
    """Where one batch lies in the log: what segments and leader epochs need to know of it."""

    size: int
    base_offset: int  # of an old compressed message: its last, as the first is inside
    last_offset: int
    max_timestamp_ms: int
    leader_epoch: int
    magic: int


class Validated(NamedTuple):
    """What goes into the file."""

    parts: list[Buffer]  # one after the other
    size: int  # of all of them
    spans: list[BatchSpan]  # one a batch; none where there was nothing to append
    append_time_ms: int  # of a topic with append times, else -1
    producers: Sequence[ProducerBatch] = ()  # of the batches that have one
