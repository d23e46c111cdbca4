"""Memory that a worker process keeps from one task to the next.

Spark's workers run one task after another. Memory that one task has touched costs the next one no page faults.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from octavo.log.segment.block_reader import Blocks
from octavo.records.arrow.decoder import ArrowDecoder
from octavo.spark.spark_types import BATCH_ROWS


@lru_cache(maxsize=4)
def decoder_of(columns: tuple[str, ...]) -> ArrowDecoder:
    """Return the decoder of this process for some columns. Any number of tasks may use it at once."""
    return ArrowDecoder(columns=columns, max_rows=BATCH_ROWS)


@contextmanager
def blocks_of(block_size: int) -> Iterator[Blocks]:
    """Give blocks of a file that no other task uses meanwhile."""
    spare = _spare_blocks(block_size)
    try:
        blocks = spare.pop()
    except IndexError:
        blocks = Blocks(block_size)
    try:
        yield blocks
    finally:
        if len(blocks.memory) <= block_size:  # otherwise it has grown for a large batch
            spare.append(blocks)


@lru_cache(maxsize=1)
def _spare_blocks(block_size: int) -> deque[Blocks]:
    return deque(maxlen=1)
