"""The part of a log that is decided, for readers of committed data.

`last_stable_offset` is for whoever plans a query. `Lookahead` is for its tasks: of a batch of a transaction in a slice
they have to know how that ended, and the marker that says so may lie far behind the slice. So they read headers ahead,
no further than they have to; where there are no transactions, they do not read ahead at all.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from octavo.log.storage import File
from octavo.log.watched import WatchedLog
from octavo.records.arrow.reader import Keep
from octavo.records.arrow.sink import Int64s
from octavo.records.kernels import scan
from octavo.records.layout import Attributes
from octavo.spark.options import Options
from octavo.spark.slices import Slice

Truths = npt.NDArray[np.bool_]

_TRANSACTIONAL: Final = int(Attributes.TRANSACTIONAL)
_CONTROL: Final = int(Attributes.CONTROL)


def last_stable_offset(log: WatchedLog, bound: int) -> int:
    """Up to where, below `bound`, all transactions are decided."""
    return bound  # TODO


def without_control(table: Int64s) -> Truths:
    """Which batches hold no control records."""
    kept: Truths = (table[:, scan.ATTRIBUTES] & _CONTROL == 0) | (table[:, scan.MAGIC] < 2)
    return kept


class _NoControl:
    """For readers of everything but control records."""

    def at(self, shift: int) -> Keep:
        """Which batches of a window to read; positions in it count from `shift`."""
        return without_control


def keep_for(options: Options, file: File, piece: Slice) -> _NoControl | None:
    """What is to be read of a slice; None where that is everything."""
    return None if options.include_control_records else _NoControl()
