"""Follow segments as they grow: print what is there, and then what is written, until interrupted."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from octavo.cli.dump_forms import Form
from octavo.cli.exits import COULD_NOT_RUN, DAMAGE_FOUND, FINE
from octavo.cli.tell import tell
from octavo.errors import InvalidInput, OctavoError
from octavo.inspect.kinds import FileName, Kind, is_partition_folder, kind_of
from octavo.inspect.listing import files_below

if TYPE_CHECKING:
    from octavo.inspect.segment_file import SegmentFile

_PAUSE_S: Final = 0.2


class _Tail:
    """One file, or the segments of a partition's folder, in the order in which they are written."""

    def __init__(self, form: Form, path: Path) -> None:
        self.code = FINE
        self.is_over = False
        self._form: Final = form
        self._path: Final = path
        self._segment: SegmentFile | None = None
        self._base_offset = -1  # of the segment that is being printed

    def print_new(self) -> bool:
        """Print what is new. Returns whether there was anything."""
        following = self._next_file()  # first: a segment that is followed by another one does not grow any more
        if self._segment is not None and self._segment.grow():
            self._print(self._segment)
            return True
        if following is None:
            return False
        self._base_offset, path = following
        self._segment = self._form.reading.open(str(path))
        self._print(self._segment)
        return True

    def _next_file(self) -> tuple[int, Path] | None:
        """Return the file to go on with, and its base offset."""
        if not self._path.is_dir():
            return (0, self._path) if self._segment is None else None
        return min((found for found in _segments(self._path) if found[0] > self._base_offset), default=None)

    def _print(self, segment: SegmentFile) -> None:
        code = self._form.print_segment(segment, is_growing=True)
        self.code = max(self.code, code)
        self.is_over = code == DAMAGE_FOUND and not self._form.reading.resync


def follow(paths: Iterable[str], form: Form) -> int:
    """Print what is in the segments below all paths, and whatever is added. Ends only when all of them are damaged."""
    tails = [tail for path in paths for tail in _tails(form, Path(path))]
    while going := [tail for tail in tails if not tail.is_over]:
        is_idle = True
        for tail in going:
            try:
                if tail.print_new():
                    is_idle = False
            except OctavoError as error:
                tell(str(error))
                tail.code, tail.is_over = COULD_NOT_RUN, True
        sys.stdout.flush()
        if is_idle:
            time.sleep(_PAUSE_S)
    return max(tail.code for tail in tails)


def _tails(form: Form, path: Path) -> Iterator[_Tail]:
    """Yield what is to be followed below a path. Raises `Unreadable`, and `InvalidInput` for what cannot grow."""
    if not path.is_dir():
        kind = kind_of(path)
        if kind not in (Kind.SEGMENT, Kind.UNKNOWN):
            raise InvalidInput(f"{path} is {kind.value}: only segments can be followed")
        yield _Tail(form, path)
    elif is_partition_folder(path) or any(_segments(path)):
        yield _Tail(form, path)
    else:
        folders = dict.fromkeys(file.parent for file in files_below(path) if file.parent != path)
        if not folders:
            raise InvalidInput(f"{path}: there are no partitions in this directory")
        for folder in folders:
            yield _Tail(form, folder)


def _segments(folder: Path) -> Iterator[tuple[int, Path]]:
    """Yield the segments of a folder that are in use, with their base offsets."""
    for path in folder.iterdir():
        name = FileName.parse(path.name)
        if name.kind is Kind.SEGMENT and name.base_offset is not None and not name.renamed:
            yield name.base_offset, path
