"""Ranges of offsets and of timestamps."""

from __future__ import annotations

from typing import Final, NamedTuple

from octavo.errors import InvalidInput
from octavo.records.layout import MAX_INT64, MIN_INT64


class Range(NamedTuple):
    """A range of numbers, both ends included."""

    first: int
    last: int


EVERYTHING: Final = Range(MIN_INT64, MAX_INT64)  # range of all offsets or of all timestamps


def closed(name: str, half_open: tuple[int | None, int | None] | None) -> Range:
    """Return a half-open range, of which `None` leaves an end open, with both ends included.

    Raises `InvalidInput` if it ends before it begins; `name` says what it is a range of.
    """
    if half_open is None:
        return EVERYTHING
    start, stop = half_open
    if start is not None and stop is not None and stop < start:
        raise InvalidInput(f"the range of {name} ends at {stop}, before it begins at {start}")
    first = MIN_INT64 if start is None else max(start, MIN_INT64)
    last = MAX_INT64 if stop is None else min(stop - 1, MAX_INT64)
    return Range(first, last) if first <= last else Range(1, 0)
