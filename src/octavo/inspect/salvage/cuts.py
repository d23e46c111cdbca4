"""Tell batches that were cut out of a file from those that a compaction removed.

Both leave offsets that are missing between two batches that lie next to each other. Compaction leaves such gaps
everywhere, and thins out batches. If all is dense but for a few places, somebody cut batches out there.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np

from octavo.inspect.salvage.order import Chain
from octavo.inspect.salvage.run import Run
from octavo.records.kernels import scan
from octavo.records.layout import MAX_INT64

_RARE: Final = 50  # batches for each gap, at least, in a log that is not compacted; a single gap is rare in any log


def split_at_cuts(chain: Chain) -> Chain | None:
    """Return the chain with its runs divided where offsets are missing; None if they are missing all over."""
    allowed = max(1, sum(run.count for run in chain.runs) // _RARE)
    allowed -= sum(one.is_followed_by(other) and one.last + 1 < other.base for one, other in pairwise(chain.runs))
    runs: list[Run] = []
    for run in chain.runs:
        if not run.has_gaps:
            runs.append(run)
            continue
        if run.epoch < 0 or allowed < 1:  # old messages hide their first offset, so that gaps are not known
            return None
        firsts = [run.base]
        for first in _after_gaps(run):
            firsts.append(first)
            allowed -= 1
            if allowed < 0:
                return None
        bounds = pairwise([*firsts, MAX_INT64])
        runs += [part for first, end in bounds if (part := run.cut(first, end - 1)) is not None]
    return Chain(runs) if allowed >= 0 else None


def _after_gaps(run: Run) -> Iterator[int]:
    """Yield the base offsets of batches before which offsets are missing."""
    expected = run.base
    for table, _ in run.tables():
        bases = table[:, scan.BASE_OFFSET]
        before = np.concatenate(([expected], table[:-1, scan.LAST_OFFSET] + 1))
        yield from bases[bases > before].tolist()
        expected = int(table[-1, scan.LAST_OFFSET]) + 1
