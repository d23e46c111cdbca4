"""Find the first difference of two replicas of a partition."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from octavo.errors import FormatError
from octavo.inspect.verify.replicas.cursor import Cursor, skip_equal, take_together
from octavo.inspect.verify.replicas.difference import Difference
from octavo.inspect.verify.replicas.replica_log import BASE_OFFSET, LAST_OFFSET, LEADER_EPOCH, ReplicaLog, Rows
from octavo.records import to_arrow

# What two replicas must agree on; where batches begin and how they are compressed may differ.
_COMPARED: Final = (
    "leaderEpoch",
    "magic",
    "isControl",
    "isTransactional",
    "producerId",
    "producerEpoch",
    "sequence",
    "timestampType",
    "timestampMs",
    "key",
    "value",
    "headers",
)


def first_difference(left: ReplicaLog, right: ReplicaLog) -> Difference | None:
    """Return the first difference in the offsets that both replicas cover; None if there is none."""
    start = max(left.start_offset, right.start_offset)
    end = min(left.end_offset, right.end_offset)
    ours, theirs = Cursor(left, start), Cursor(right, start)
    while skip_equal(ours, theirs):
        if min(int(ours.rows[0, BASE_OFFSET]), int(theirs.rows[0, BASE_OFFSET])) >= end:
            return None
        found = _compare(ours.log, theirs.log, *take_together(ours, theirs), start, end)
        if found is not None:
            return found
    rest, other = (ours, theirs) if ours.fill() else (theirs, ours)
    while rest.fill() and int(rest.rows[0, BASE_OFFSET]) < end:
        row = rest.take(1)
        found = _missing(rest.log, other.log, row[0], max(start, int(row[0, BASE_OFFSET])))
        if found is not None:
            return found if rest is ours else _turned(found)
    return None


def _compare(left: ReplicaLog, right: ReplicaLog, ours: Rows, theirs: Rows, start: int, end: int) -> Difference | None:
    """Compare batches of the same offsets, record by record."""
    if not len(theirs):
        return _missing(left, right, ours[0], max(start, int(ours[0, BASE_OFFSET])))
    if not len(ours):
        found = _missing(right, left, theirs[0], max(start, int(theirs[0, BASE_OFFSET])))
        return None if found is None else _turned(found)
    try:
        mine, other = _records(left, ours, start, end), _records(right, theirs, start, end)
    except FormatError:
        return None  # one side is damaged, which is reported for that side
    offset, what = _first_unequal(mine, other) or (end, "")
    for log, has, lacks in ((right, mine, other), (left, other, mine)):
        alone = np.setdiff1d(_offsets(has), _offsets(lacks))
        alone = alone[alone >= log.may_lack_below]
        if len(alone) and alone[0] < offset:
            offset, what = int(alone[0]), "missing"
    if offset == end:
        return None
    at_left, at_right = _row_at(ours, offset), _row_at(theirs, offset)
    return Difference(
        offset,
        what,
        None if at_left is None else left.place(at_left),
        None if at_right is None else right.place(at_right),
        None if at_left is None else int(at_left[LEADER_EPOCH]),
        None if at_right is None else int(at_right[LEADER_EPOCH]),
    )


def _records(log: ReplicaLog, rows: Rows, start: int, end: int) -> pa.Table:
    """Decode batches. Raises a `FormatError` if one is damaged."""
    data = b"".join(log.read(row) for row in rows)
    columns = ("offset", *_COMPARED)
    chunks = list(to_arrow(data, columns=columns, offsets=(start, end)))
    return pa.Table.from_batches(chunks) if chunks else pa.table({name: [] for name in columns})


def _first_unequal(left: pa.Table, right: pa.Table) -> tuple[int, str] | None:
    """Return the first offset that both have with different contents, and what differs."""
    offsets, at_left, at_right = np.intersect1d(_offsets(left), _offsets(right), return_indices=True)
    first: tuple[int, str] | None = None
    if not len(offsets):
        return None
    for name in _COMPARED:
        ours, theirs = left[name].take(pa.array(at_left)), right[name].take(pa.array(at_right))
        if ours.equals(theirs):
            continue
        if name == "headers":  # Arrow does not compare lists element by element
            unequal = np.array([a != b for a, b in zip(ours.to_pylist(), theirs.to_pylist(), strict=True)])
        else:
            same = pc.equal(ours, theirs).fill_null(False)
            both_null = pc.and_(ours.is_null(), theirs.is_null())
            unequal = ~pc.or_(same, both_null).to_numpy()
        offset = int(offsets[int(unequal.argmax())])
        if first is None or offset < first[0]:
            first = (offset, name)
    return first


def _offsets(table: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.asarray(table["offset"].to_numpy(), np.int64)


def _missing(has: ReplicaLog, lacks: ReplicaLog, row: Rows, offset: int) -> Difference | None:
    """Return that a replica lacks a batch, unless that may be so."""
    if offset < lacks.may_lack_below:
        return None
    return Difference(offset, "missing", has.place(row), None, int(row[LEADER_EPOCH]), None)


def _turned(found: Difference) -> Difference:
    return Difference(found.offset, found.what, found.right, found.left, found.right_epoch, found.left_epoch)


def _row_at(rows: Rows, offset: int) -> Rows | None:
    found = rows[(rows[:, BASE_OFFSET] <= offset) & (rows[:, LAST_OFFSET] >= offset)]
    return found[0] if len(found) else None
