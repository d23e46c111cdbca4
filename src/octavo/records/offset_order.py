"""Find batches with a wrong base offset: the offsets of a log only increase.

No checksum covers a batch's base offset, length and magic. But the neighbours of a batch reveal a wrong base offset. A
base offset directly after the last offset of the previous batch is right; one that is not above that offset is wrong.
If there is a gap, as after compaction, the next batch decides: if it begins in the gap, or within the batch in
question, the offset is wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from octavo.errors import BadRecord
from octavo.records.kernels import rules
from octavo.records.kernels.machine import read_i64
from octavo.records.kernels.scan import entry_extent
from octavo.records.layout import MAGIC_AT

if TYPE_CHECKING:
    from mmap import mmap

    import numpy as np
    import numpy.typing as npt

HEAD_SIZE: Final = MAGIC_AT + 1  # bytes by which a batch is recognised
RULE: Final = "a batch's offsets do not lie between those of the batches around it"


def base_offset_at(data: bytes | memoryview | mmap, position: int) -> int | None:
    """Return the base offset of the batch at `position`, or None if no batch begins there.

    The batch may be incomplete. Zeros, which may follow the last batch of a file, are not a batch.
    """
    _, size, rule = entry_extent(data, position, len(data))
    return read_i64(data, position) if size and rule != rules.ENTRY_MAGIC else None


def is_misplaced(base_offset: int, last_offset: int, before: int, behind: int | None) -> bool:
    """Return whether the batches before and after a batch show that its own base offset is wrong.

    `before` is the last offset of the previous batch, `behind` the base offset of the next batch, if known.
    """
    if base_offset == before + 1:
        return False
    return base_offset <= before or (behind is not None and before < behind <= last_offset)


def first_misplaced(table: npt.NDArray[np.int64], before: int, behind: int | None) -> int | None:
    """Return the first row of a batch table (see `kernels.scan`) that has a wrong base offset, or None.

    `before` is the last offset of the batch before the first row, `behind` the base offset of the batch after the last
    row, if known.
    """
    import numpy as np

    from octavo.records.kernels import scan

    if not len(table):
        return None
    bases, lasts = table[:, scan.BASE_OFFSET], table[:, scan.LAST_OFFSET]
    befores = np.concatenate((np.array([before], np.int64), lasts[:-1]))
    apart = bases != befores + 1
    if not apart.any():
        return None
    wrong = bases <= befores
    wrong[:-1] |= (bases[1:] > befores[:-1]) & (bases[1:] <= lasts[:-1])
    previous = int(befores[-1])
    wrong[-1] |= behind is not None and previous < behind <= int(lasts[-1])
    rows = np.flatnonzero(wrong & apart)
    return int(rows[0]) if len(rows) else None


def misplaced(position: int) -> BadRecord:
    """Return the error for a misplaced batch at `position`."""
    return BadRecord(position, RULE)
