"""Reports of what opening a log found and did. Nothing is cut or removed without an entry here."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from octavo.log.names import TopicPartition

_MOST: Final = 3  # partitions of which `tell_found` tells
_WIDTH: Final = 300  # characters for each of them
_LONGEST: Final = 700  # characters of one list


def in_lines(items: Iterable[str]) -> list[str]:
    """Put items into lists with commas between them, none of which is too long for a line of a log."""
    lines: list[str] = []
    for item in items:
        if lines and len(lines[-1]) + len(item) < _LONGEST:
            lines[-1] += f", {item}"
        else:
            lines.append(item)
    return lines


class Cut(NamedTuple):
    """Bytes at the end of a file that were cut off or cannot be read, with the reason."""

    file: str
    position: int
    size: int
    reason: str


class IgnoredFile(NamedTuple):
    """A file that could not be used, with the reason. Its content was rebuilt from the data."""

    file: str
    reason: str


@dataclass(slots=True)
class RecoveryReport:
    """A report of what opening one partition found and did."""

    partition: TopicPartition
    was_clean: bool  # the directory was closed cleanly: nothing had to be checked
    segments: int = 0
    segments_checked: int = 0
    bytes_checked: int = 0
    cuts: list[Cut] = field(default_factory=list)
    damaged: list[Cut] = field(default_factory=list)  # damage in flushed data, which is left as it is
    kept: list[str] = field(
        default_factory=list
    )  # files with what was cut off although it was sound: nobody reads them
    removed: list[str] = field(default_factory=list)  # files: leftovers, and segments after a cut
    rebuilt: list[str] = field(default_factory=list)  # segments that were checked only to rebuild their indexes
    renamed: list[str] = field(default_factory=list)  # finished output that had not yet replaced its input
    ignored: list[IgnoredFile] = field(default_factory=list)  # snapshots, transaction indexes and checkpoints

    @property
    def is_unremarkable(self) -> bool:
        """Whether everything was as it should be."""
        return not (self.cuts or self.damaged or self.removed or self.rebuilt or self.renamed or self.ignored)

    def __str__(self) -> str:
        if self.is_unremarkable and self.was_clean:
            return f"{self.partition}: closed cleanly, {self.segments} segment(s)"
        said = [f"{self.segments_checked} of {self.segments} segment(s) checked, {self.bytes_checked:,} bytes"]
        said += [f"cut {cut.size:,} bytes off {cut.file} at byte {cut.position}: {cut.reason}" for cut in self.cuts]
        if self.kept:
            said.append(f"sound batches lay behind that: they are kept in {', '.join(self.kept)}")
        said += [
            f"{found.file} is damaged at byte {found.position}, and left as it is: {found.reason}"
            for found in self.damaged
        ]
        said += [f"{found.file} could not be used: {found.reason}" for found in self.ignored]
        if self.rebuilt:
            said.append(f"indexes rebuilt: {', '.join(self.rebuilt)}")
        if self.renamed:
            said.append(f"put in their place: {', '.join(self.renamed)}")
        if self.removed:
            said.append(f"removed: {', '.join(self.removed)}")
        return f"{self.partition}: " + "; ".join(said)


class Progress(NamedTuple):
    """The progress of checking one partition."""

    partition: TopicPartition
    bytes_done: int
    bytes_total: int


OnProgress = Callable[[Progress], None]  # called with the progress of checking a partition


def tell_found(reports: Sequence[RecoveryReport], ignored: Sequence[IgnoredFile]) -> list[str]:
    """Return a few sentences on what opening a directory found, for an operator; none if all was as it should be.

    ignored: the checkpoints of the directory that could not be used
    """
    sentences = [f"{found.file} could not be used, and is written anew: {found.reason}" for found in ignored]
    checked = [report for report in reports if not report.was_clean]
    if checked:
        size = sum(report.bytes_checked for report in checked)
        sentences.append(
            f"the directory had not been closed cleanly: {len(checked)} partition(s) were checked, {size:,} bytes"
        )
    harmed = [report for report in reports if report.cuts or report.damaged or report.ignored]
    sentences += [textwrap.shorten(str(report), _WIDTH, placeholder=" ...") for report in harmed[:_MOST]]
    if len(harmed) > _MOST:
        sentences.append(f"{len(harmed) - _MOST} more partition(s) were cut off, or have files that could not be used")
    return sentences
