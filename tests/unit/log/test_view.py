"""Where the segments of a view begin and end."""

from pathlib import Path

import pytest

from octavo.log.segment.segment import Segment
from octavo.log.storage import DISK
from octavo.log.view import View, segment_ends


def view_of(*bases: int, end_offset: int) -> View:
    segments = tuple(Segment(DISK, Path("nowhere"), base, size=0, created_ms=0) for base in bases)
    return View(segments, bases, 0, bases[0], end_offset, end_offset, 0)


@pytest.mark.parametrize(("offset", "number"), [(0, 0), (4, 0), (5, 0), (9, 0), (10, 1), (19, 1), (20, 2), (99, 2)])
def test_segment_at(offset: int, number: int) -> None:
    """The segment of an offset is the last that begins at or before it; what lies before the log is in the first."""
    assert view_of(5, 10, 20, end_offset=25).segment_at(offset) == number


@pytest.mark.parametrize(("offset", "count"), [(5, 0), (6, 1), (10, 1), (11, 2), (20, 2), (21, 3)])
def test_count_before(offset: int, count: int) -> None:
    assert view_of(5, 10, 20, end_offset=25).count_before(offset) == count


def test_segment_end() -> None:
    """A segment ends where the next one begins, and the last one where the log ends."""
    view = view_of(5, 10, 20, end_offset=25)
    assert [view.segment_end(number) for number in range(3)] == [10, 20, 25]
    assert segment_ends(view.segments, 25) == [10, 20, 25]
    assert segment_ends((), 25) == []
