"""Draw charts as HTML: bars, columns and lanes of time, which grow and shrink with the page.

Only the marks are SVG. Labels are text beside them, so they keep their size on a narrow screen. A chart is one stop for
the Tab key, and the arrow keys go from mark to mark; what a mark stands for is shown when it is pointed at or focused.
Nothing is drawn by a library: the ones that make pages without a network add megabytes of script to each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from octavo.inspect.pages.document import text

_WIDE: Final = 1000  # units of an SVG in the direction of the bars
_THIN: Final = 2.5  # units below which a mark could not be seen
_TICKS: Final = 5


class Mark(NamedTuple):
    """One coloured area."""

    start: float  # from 0 to 1
    length: float
    kind: str  # the class of its colour
    tip: str  # what it stands for


class Row(NamedTuple):
    """A line of a chart: a label, marks, and a number at the end."""

    label: str
    marks: Sequence[Mark]
    number: str = ""


def stacked(parts: Iterable[tuple[str, float, str]], whole: float) -> list[Mark]:
    """Return marks one after another. `parts` have a colour, a length and a tip; `whole` is the longest row."""
    marks, at = [], 0.0
    for kind, length, tip in parts:
        if length > 0 and whole > 0:
            marks.append(Mark(at, length / whole, kind, tip))
            at += length / whole
    return marks


def bars(name: str, rows: Iterable[Row]) -> str:
    """Return a chart of horizontal bars."""
    lines = "".join(
        f'<div class="line"><span class="label" title="{text(row.label)}">{text(row.label)}</span>'
        f'<svg viewBox="0 0 {_WIDE} 10" preserveAspectRatio="none">{_rectangles(row.marks)}</svg>'
        f'<span class="num">{text(row.number)}</span></div>'
        for row in rows
    )
    return f'<div class="chart bars" role="group" aria-label="{text(name)}">{lines}</div>'


def lanes(name: str, rows: Iterable[Row], ticks: Sequence[str]) -> str:
    """Return a chart of lanes along one axis, such as time. `ticks` are written at equal distances below it."""
    lines = "".join(
        f'<div class="line"><span class="label" title="{text(row.label)}">{text(row.label)}</span>'
        f'<svg class="lane" viewBox="0 0 {_WIDE} 10" preserveAspectRatio="none">{_rectangles(row.marks)}</svg></div>'
        for row in rows
    )
    axis = "".join(f"<span>{text(tick)}</span>" for tick in ticks)
    return (
        f'<div class="chart lanes" role="group" aria-label="{text(name)}">{lines}'
        f'<div class="line"><span class="label"></span><div class="axis" aria-hidden="true">{axis}</div></div></div>'
    )


def columns(name: str, heights: Sequence[tuple[str, float, str]]) -> str:
    """Return a chart of vertical columns: label, height from 0 to 1, and tip of each."""
    drawn = "".join(
        f'<div class="column"><svg viewBox="0 0 10 {_WIDE}" preserveAspectRatio="none">'
        f"{_column(height, tip)}</svg><span>{text(label)}</span></div>"
        for label, height, tip in heights
    )
    return f'<div class="chart columns" role="group" aria-label="{text(name)}">{drawn}</div>'


def ticks_between(first: int, last: int) -> list[int]:
    """Return a few numbers at equal distances, both ends among them."""
    return [first + (last - first) * number // (_TICKS - 1) for number in range(_TICKS)]


def _rectangles(marks: Iterable[Mark]) -> str:
    return "".join(
        f'<rect class="{mark.kind}" x="{min(mark.start * _WIDE, _WIDE - _THIN):.1f}" y="0" '
        f'width="{max(mark.length * _WIDE, _THIN):.1f}" height="10" tabindex="-1" role="img" '
        f'aria-label="{text(mark.tip)}"/>'
        for mark in marks
    )


def _column(height: float, tip: str) -> str:
    if height <= 0:
        return ""
    tall = max(height * _WIDE, 12)
    return (
        f'<rect class="k-plain" x="0" y="{_WIDE - tall:.0f}" width="10" height="{tall:.0f}" tabindex="-1" role="img" '
        f'aria-label="{text(tip)}"/>'
    )
