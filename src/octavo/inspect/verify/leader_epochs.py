"""The rules of `leader-epoch-checkpoint`: which leader wrote from which offset on.

The file may be missing or empty, and may know nothing of the first batches: Kafka makes a new one if it is lost, and
forgets all epochs when a message of an old format is appended.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from octavo.inspect.verify.batch_columns import BASE_OFFSET, LEADER_EPOCH, MAGIC, Table
from octavo.inspect.verify.log_end import LogEnd
from octavo.inspect.verify.partition import PartitionFolder, SegmentData
from octavo.inspect.verify.problem import Problem, Rule
from octavo.inspect.verify.repairs import COLLECT_EPOCHS
from octavo.inspect.verify.text_lines import MAX_SIZE, Line, read_checkpoint
from octavo.log.names import LEADER_EPOCHS

KIND: Final = "leader epoch checkpoint"

FORMAT: Final = Rule.declare(
    "epochs-format",
    KIND,
    means="Kafka cannot read the leader epochs, and takes the log's directory offline.",
    repair=COLLECT_EPOCHS,
)
ENTRY: Final = Rule.declare(
    "epochs-entry",
    KIND,
    means="An epoch or its start offset is below 0.",
    repair=COLLECT_EPOCHS,
)
ORDER: Final = Rule.declare(
    "epochs-order",
    KIND,
    means="Epochs or their start offsets do not increase: followers are told a wrong end, and cut their logs there.",
    repair=COLLECT_EPOCHS,
)
BEYOND_END: Final = Rule.declare(
    "epochs-beyond-end",
    KIND,
    means="An epoch begins after the log's end: records are missing at the end.",
    repair="Restore the end of the log from another replica; otherwise nothing, for Kafka drops the entry.",
)
DATA: Final = Rule.declare(
    "epochs-data",
    KIND,
    means="A batch has another epoch than the checkpoint says: followers may cut their logs at a wrong offset.",
    repair=COLLECT_EPOCHS,
)


class LeaderEpochs:
    """Compares the epochs of the checkpoint with those of the batches."""

    def __init__(self, folder: PartitionFolder) -> None:
        self._folder = folder
        self._problems: list[Problem] = []
        self._lines = self._read() if LEADER_EPOCHS in folder.files else []
        self._epochs = np.array([line.number(0) for line in self._lines], np.int64)
        self._starts = np.array([line.number(1) for line in self._lines], np.int64)
        self._seen: set[tuple[int, int]] = set()
        self._end = LogEnd(folder)

    def _read(self) -> list[Line]:
        """Return the entries if they can be compared with anything."""
        lines, bad = read_checkpoint(self._folder.read(LEADER_EPOCHS, MAX_SIZE), 2)
        if bad is not None:
            self._problems.append(FORMAT.broken(LEADER_EPOCHS, position=bad.position, found=bad.what))
        before = (-1, -1)
        for line in lines:
            epoch, start = int(line.words[0]), int(line.words[1])
            found = " ".join(line.words)
            if epoch < 0 or start < 0 or line.number(0, 32) is None:
                self._problems.append(ENTRY.broken(LEADER_EPOCHS, position=line.position, found=found))
            elif epoch <= before[0] or start <= before[1]:
                found = f"epoch {epoch} from offset {start} after epoch {before[0]} from {before[1]}"
                self._problems.append(ORDER.broken(LEADER_EPOCHS, position=line.position, offset=start, found=found))
            before = (epoch, start)
        return [] if self._problems else lines

    def begin(self, segment: SegmentData) -> tuple[Problem, ...]:
        """Nothing is known yet."""
        return ()

    def batches(self, table: Table) -> Iterator[Problem]:
        """Compare the epoch of each batch with the one that the checkpoint has for its offset."""
        if not len(self._lines):
            return
        entry = np.searchsorted(self._starts, table[:, BASE_OFFSET], side="right") - 1
        epochs = table[:, LEADER_EPOCH]
        wrong = (entry >= 0) & (table[:, MAGIC] == 2) & (epochs >= 0) & (epochs != self._epochs[entry])
        if not wrong.any():
            return
        rows = np.flatnonzero(wrong)
        _, firsts = np.unique(np.stack((entry[rows], epochs[rows])), axis=1, return_index=True)
        for row in sorted(rows[firsts].tolist()):  # the first of each kind is enough
            pair = int(entry[row]), int(epochs[row])
            if pair not in self._seen:
                self._seen.add(pair)
                line = self._lines[pair[0]]
                found = f"epoch {pair[1]} in the batch, {line.words[0]} in the checkpoint"
                offset = int(table[row, BASE_OFFSET])
                yield DATA.broken(LEADER_EPOCHS, position=line.position, offset=offset, found=found)

    def end(self, segment: SegmentData) -> tuple[Problem, ...]:
        """Note the end of a segment."""
        self._end.end(segment)
        return ()

    def finish(self) -> Iterator[Problem]:
        """Report what is wrong with the file itself, and epochs after the end of a log that was closed."""
        yield from self._problems
        if not self._folder.beside.is_clean:
            return
        for line in self._lines:
            start = int(line.words[1])
            if self._end.is_before(start):
                found = f"epoch {line.words[0]} begins at {start}, and the log ends at {self._end.offset}"
                yield BEYOND_END.broken(LEADER_EPOCHS, position=line.position, offset=start, found=found)
