"""The result of validating an append: the bytes for the segment file, and where each batch lies in the log."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from octavo.log.producer_state.producer_batch import ProducerBatch
from octavo.records.layout import Buffer


class Origin(Enum):
    """The source of an append on the leader."""

    CLIENT = 0
    COORDINATOR = 1  # the coordinator of groups or transactions, on the same broker
    RAFT_LEADER = 2  # the leader of the metadata log, which has already assigned offsets and epoch


class BatchSpan(NamedTuple):
    """The size and place of one batch in the log, for segments and leader epochs."""

    size: int
    base_offset: int  # for an old compressed message its last offset, because the first one is inside
    last_offset: int
    max_timestamp_ms: int
    leader_epoch: int
    magic: int


class Validated(NamedTuple):
    """Validated batches, ready to be written to the segment file."""

    parts: list[Buffer]  # the bytes to write, one part after the other
    size: int  # total size of the parts
    spans: list[BatchSpan]  # one per batch; empty if there was nothing to append
    append_time_ms: int  # for a topic with LogAppendTime, otherwise -1
    producers: Sequence[ProducerBatch] = ()  # the batches that have a producer id
