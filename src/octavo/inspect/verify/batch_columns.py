"""The columns of the tables of batches that checks are given: one row of 64-bit integers for each batch.

Positions are those in the file. A batch without a leader epoch, a timestamp or a producer has -1 there, as on the disk.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from octavo.records.kernels import scan
from octavo.records.kernels.verification import examine

Table = npt.NDArray[np.int64]

POSITION: Final = scan.POSITION
SIZE: Final = scan.SIZE  # of the whole batch
MAGIC: Final = scan.MAGIC
ATTRIBUTES: Final = scan.ATTRIBUTES  # the low byte, which has all flags
BASE_OFFSET: Final = scan.BASE_OFFSET  # of a compressed message of magic 0 or 1: that of the first message inside
LAST_OFFSET: Final = scan.LAST_OFFSET
LEADER_EPOCH: Final = scan.LEADER_EPOCH
MAX_TIMESTAMP: Final = scan.MAX_TIMESTAMP
PRODUCER_ID: Final = scan.PRODUCER_ID
PRODUCER_EPOCH: Final = scan.PRODUCER_EPOCH
BASE_SEQUENCE: Final = scan.BASE_SEQUENCE
COUNT: Final = scan.COUNT  # records
CONTROL_TYPE: Final = examine.CONTROL_TYPE  # of a control batch's first record, 0 for abort and 1 for commit; else -1
COORDINATOR_EPOCH: Final = examine.COORDINATOR_EPOCH  # in a commit or abort; else -1
COLUMNS: Final = examine.COLUMNS
