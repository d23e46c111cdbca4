"""Lay out the bytes of a map in rows of equal length, cut where one field ends and the next begins.

Terminals and pages draw the same rows. The middle of a long field is left out if the caller wants that; the row in its
place says how much is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from octavo.inspect.bytemap.field import Field

WIDTH: Final = 16  # bytes in a row, unless the screen is narrow
_WORTH_LEAVING_OUT: Final = 4  # rows; a gap for fewer would save nothing


class Run(NamedTuple):
    """Bytes of one field in one row."""

    field: int  # its number in the list that was laid out
    data: memoryview


class HexRow(NamedTuple):
    """One row of bytes, or, if there are no runs, the place of bytes of one field that were left out."""

    position: int
    runs: tuple[Run, ...]
    field: int = -1  # the number of the field whose bytes were left out
    left_out: int = 0  # bytes


def hex_rows(fields: Sequence[Field], *, keep: int | None = None, width: int = WIDTH) -> Iterator[HexRow]:
    """Yield the rows of fields that lie one after another. Fields without bytes and groups are passed over.

    keep: of the rows that lie inside one field, show the first `keep` and the last, and leave out those between them
    width: bytes in a row
    """
    leaves = [(index, field) for index, field in enumerate(fields) if field.size and not field.is_group]
    if not leaves:
        return
    start = at = leaves[0][1].position
    end = leaves[-1][1].position + leaves[-1][1].size
    number = inside = 0  # the leaf at `at`; how many rows lay wholly inside it
    while at < end:
        row_end = min(at + width, end)
        runs, number_at_end = _runs(leaves, number, at, row_end)
        yield HexRow(at, runs)
        is_inside = len(runs) == 1 and number_at_end == number
        inside = inside + 1 if is_inside else 0
        number, at = number_at_end, row_end
        index, field = leaves[number] if number < len(leaves) else (0, None)
        if keep is not None and field is not None and inside >= keep:
            rows = (field.position + field.size - at) // width
            if rows > _WORTH_LEAVING_OUT:
                yield HexRow(at, (), index, (rows - 1) * width)
                at += (rows - 1) * width
    assert at == end >= start


def _runs(leaves: Sequence[tuple[int, Field]], number: int, at: int, end: int) -> tuple[tuple[Run, ...], int]:
    """Return the runs between two positions, and the number of the leaf at the second one."""
    runs = []
    while at < end:
        index, field = leaves[number]
        field_end = field.position + field.size
        stop = min(end, field_end)
        runs.append(Run(index, field.data[at - field.position : stop - field.position]))
        at = stop
        if at == field_end:
            number += 1
    return tuple(runs), number
