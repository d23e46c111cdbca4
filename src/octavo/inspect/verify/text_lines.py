"""Read Kafka's text checkpoints line by line, with the position of each line.

A checkpoint has a version, the number of entries, and a line of words for each entry. A file that is empty, or ends
after its version, has no entries; Kafka leaves both behind.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_LINE: Final = re.compile(rb"[^\r\n]*(?:\r\n|[\r\n]|\Z)")
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,19}")
_VERSION: Final = 0
MAX_SIZE: Final = 64 << 20  # of a checkpoint; one with a million partitions has less


class Line(NamedTuple):
    """One entry of a checkpoint."""

    position: int
    words: list[str]

    def number(self, at: int, bits: int = 64) -> int | None:
        """Return a word as the number that Java reads there; None if it is none that fits into so many bits."""
        if _NUMBER.fullmatch(self.words[at]) is None:
            return None
        number = int(self.words[at])
        return number if -(1 << bits - 1) <= number < 1 << bits - 1 else None


class BadText(NamedTuple):
    """Why a text cannot be read."""

    position: int
    what: str


def read_checkpoint(data: bytes, columns: int) -> tuple[list[Line], BadText | None]:
    """Return the entries of a checkpoint, and the first thing that Kafka would not read.

    columns: words in a line; all but the first of three are numbers
    """
    lines = _lines(data)
    if not lines:
        return [], None
    if lines[0].words != [str(_VERSION)]:
        return [], BadText(0, f"version {_shown(lines[0])} instead of {_VERSION}")
    if len(lines) == 1:
        return [], None
    count = lines[1].number(0, 32) if len(lines[1].words) == 1 else None
    if count is None:
        return [], BadText(lines[1].position, f"{_shown(lines[1])} instead of the number of entries")
    entries = lines[2:]
    for line in entries:
        if len(line.words) != columns or any(line.number(at) is None for at in range(columns - 2, columns)):
            return [], BadText(line.position, f"{_shown(line)} is no entry")
    if len(entries) != count:
        return entries, BadText(lines[1].position, f"{count} entries are announced, and {len(entries)} are there")
    return entries, None


def _lines(data: bytes) -> list[Line]:
    found = []
    position = 0
    while position < len(data):
        end = _LINE.match(data, position)
        assert end is not None  # the pattern matches at any position
        found.append(Line(position, end[0].decode("utf-8", "replace").split()))
        position = end.end()
    return found


def _shown(line: Line) -> str:
    return repr(" ".join(line.words)[:60])
