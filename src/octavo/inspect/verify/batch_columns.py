"""The columns of the tables of batches that checks are given: one row of 64-bit integers for each batch."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Table = npt.NDArray[np.int64]

POSITION: Final = 0  # of the batch in its file
SIZE: Final = 1  # of the whole batch
MAGIC: Final = 2
ATTRIBUTES: Final = 3  # the low byte, which has all flags
BASE_OFFSET: Final = 4  # of an old message: its offset; of an old wrapper: that of its first message
LAST_OFFSET: Final = 5
LEADER_EPOCH: Final = 6  # -1 if there is none, as in old messages
MAX_TIMESTAMP: Final = 7  # -1 if there is none
PRODUCER_ID: Final = 8  # -1 if there is none
PRODUCER_EPOCH: Final = 9
BASE_SEQUENCE: Final = 10
COUNT: Final = 11  # records
CONTROL_TYPE: Final = 12  # type of a control batch's first record, 0 for abort and 1 for commit; -1 if there is none
COORDINATOR_EPOCH: Final = 13  # in a commit or abort; otherwise -1
COLUMNS: Final = 14
