"""Bound how many records of a batch are mapped one by one, however many there are."""

from __future__ import annotations

from octavo.inspect.bytemap.field import Section


class RecordWindow:
    """Decides which records are mapped: `most` of them, from `offset` on. None means no limit.

    Records that are left out become one field for each stretch of them, with what is wrong in the first broken one.
    """

    def __init__(self, most: int | None = None, offset: int | None = None) -> None:
        self.most = most
        self._left = most
        self._offset = offset

    def takes(self, offset: int | None) -> bool:
        """Return whether the next record is mapped. `offset` is its absolute offset, None for a broken record."""
        if self._left == 0 or (self._offset is not None and offset is not None and offset < self._offset):
            return False
        if self._left is not None:
            self._left -= 1
        return True


class LeftOut:
    """Collects records that lie one after another and are not mapped."""

    def __init__(self, section: Section, name: str, depth: int) -> None:
        self._section = section
        self._name = name
        self._depth = depth
        self._count = 0
        self._start = 0
        self._end = 0
        self._problem: str | None = None

    def add(self, start: int, end: int, problem: str | None = None) -> None:
        """Leave out a record, which follows the one before."""
        if self._count == 0:
            self._start = start
        self._count += 1
        self._end = end
        if problem and self._problem is None:
            self._problem = f"at byte {start}: {problem}"

    def finish(self) -> None:
        """Add a field for what was left out since the last call, if anything was."""
        if self._count:
            said = f"{self._count:,} not shown one by one"
            self._section.leaf(self._name, self._start, self._end, said, self._depth, self._problem)
        self._count, self._problem = 0, None
