"""Walk two replicas side by side, batch by batch, and skip what is equal quickly."""

from __future__ import annotations

from typing import Final

import numpy as np

from octavo.inspect.verify.replicas.replica_log import BASE_OFFSET, LAST_OFFSET, POSITION, SAME, SIZE, ReplicaLog, Rows

_NONE: Final[Rows] = np.empty((0, POSITION + 1), np.int64)
_ENOUGH: Final = 1 << 20  # bytes of batches to compare at a time


class Cursor:
    """The batches of one replica from some offset on, of which the first have not been compared yet."""

    def __init__(self, log: ReplicaLog, start_offset: int) -> None:
        self.log = log
        self._tables = log.tables(start_offset)
        self.rows: Rows = _NONE

    def fill(self) -> bool:
        """Return whether there is another batch, which `rows` then has."""
        if not len(self.rows):
            self.rows = next(self._tables, _NONE)
        return bool(len(self.rows))

    def take(self, count: int) -> Rows:
        """Return the next batches, and go on after them."""
        taken, self.rows = self.rows[:count], self.rows[count:]
        return taken


def skip_equal(left: Cursor, right: Cursor) -> bool:
    """Go past all batches that are the same on both sides. Returns whether both sides have another batch."""
    while left.fill() and right.fill():
        count = min(len(left.rows), len(right.rows))
        equal = (left.rows[:count, :SAME] == right.rows[:count, :SAME]).all(axis=1)
        same = count if equal.all() else int(equal.argmin())
        left.take(same)
        right.take(same)
        if same < count:
            return True
    return False


def take_together(left: Cursor, right: Cursor) -> tuple[Rows, Rows]:
    """Take the next batches of both sides, up to an offset at which no batch of either is cut.

    One of the results is empty if the other side has offsets there that this side does not have at all.
    """
    sides: tuple[tuple[Cursor, list[Rows]], ...] = ((left, [_NONE]), (right, [_NONE]))
    size, end = 0, 0
    while size < _ENOUGH and left.fill() and right.fill():
        end = min(int(left.rows[0, BASE_OFFSET]), int(right.rows[0, BASE_OFFSET])) + 1
        is_cut = True
        while is_cut:
            is_cut = False
            for cursor, taken in sides:
                while cursor.fill() and int(cursor.rows[0, BASE_OFFSET]) < end:
                    row = cursor.take(1)
                    taken.append(row)
                    end, is_cut = max(end, int(row[0, LAST_OFFSET]) + 1), True
                    size += int(row[0, SIZE])
    return np.concatenate(sides[0][1]), np.concatenate(sides[1][1])
