"""Find batches whose records nobody can read, although their checksums are right.

A client or a cleaner with a fault writes such batches. Readers fail at them, and so may Kafka when it loads the log.
What `octavo verify` advises to salvage is left out here: so the rules are those of `octavo verify`, without the ones
about offsets and leader epochs, which are put right in other ways (`order`, `epochs`).
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from octavo.errors import BadRecord, FormatError
from octavo.inspect.verify.batch_rules import COMPRESSION, FAULTS
from octavo.inspect.verify.examiner import Examiner
from octavo.inspect.verify.problem import Problem
from octavo.inspect.verify.repairs import SALVAGE, SALVAGE_MESSAGES
from octavo.records.kernels import scan
from octavo.records.kernels.batch_table import Table
from octavo.records.kernels.verification import faults

_OF_PLACE: Final = (faults.OFFSET, faults.ORDER, faults.EPOCH, faults.EPOCH_ORDER, faults.GAP)
_UNREADABLE: Final = {
    COMPRESSION,
    *(
        fault.rule
        for number, fault in FAULTS.items()
        if number not in _OF_PLACE and fault.rule.repair in (SALVAGE, SALVAGE_MESSAGES)
    ),
}


class Contents:
    """Looks into batches, one block after the other."""

    def __init__(self) -> None:
        self._examiner = Examiner()

    def unreadable(self, memory: npt.NDArray[np.uint8], table: Table, shift: int) -> list[tuple[int, FormatError]]:
        """Return the rows of batches that cannot be read, and why.

        table: of batches that lie in `memory` one behind the other, with right checksums
        shift: position of the memory in the file
        """
        positions = table[:, scan.POSITION]
        end = int(positions[-1] + table[-1, scan.SIZE])
        found = self._examiner.examine_content(memory, int(positions[0]), end, shift)
        rows: dict[int, FormatError] = {}
        for problem in found:
            if problem.rule in _UNREADABLE and problem.position is not None:
                row = int(np.searchsorted(positions, problem.position - shift, side="right")) - 1
                if problem.offset not in table[row, [scan.BASE_OFFSET, scan.LAST_OFFSET]].tolist():
                    row -= 1  # what is missing at the end of a batch is missing where the next one begins
                rows.setdefault(row, BadRecord(problem.position, _sentence(problem)))
        return sorted(rows.items(), key=lambda item: item[0])


def _sentence(problem: Problem) -> str:
    """Return what is wrong in the words of an error, which has no capital and no full stop."""
    means = problem.rule.means.removesuffix(".")
    return means[0].lower() + means[1:]
