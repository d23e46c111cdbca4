"""The result of validating an append: the bytes for the segment file, and the offsets of each batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from octavo.log.producer_state.producer_batch import ProducerBatch
from octavo.log.segment.batch_span import BatchSpan
from octavo.records.layout import Buffer


class Validated(NamedTuple):
    """Validated batches, ready to be written to the segment file."""

    parts: list[Buffer]  # the bytes to write, one part after the other
    size: int  # total size of the parts
    spans: list[BatchSpan]  # one per batch; empty if there was nothing to append
    append_time_ms: int  # for a topic with LogAppendTime, otherwise -1
    producers: Sequence[ProducerBatch] = ()  # the batches that have a producer id
