"""Follow segments as they grow: print what is there, and then what is written, until interrupted."""

from __future__ import annotations

import select
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from octavo.cli.dump_forms import Form
from octavo.cli.exits import COULD_NOT_RUN, DAMAGE_FOUND, FINE
from octavo.cli.tell import tell
from octavo.errors import InvalidInput, NoSuchFile, OctavoError, Unreadable
from octavo.inspect.kinds import FileName, Kind, is_partition_folder, kind_of, reason_of
from octavo.log.names import TopicPartition

if TYPE_CHECKING:
    from octavo.inspect.segment_file import SegmentFile

_PAUSE_MS: Final = 200


class _Tail:
    """One file, or the segments of a partition's folder, in the order in which they are written."""

    def __init__(self, form: Form, path: Path) -> None:
        self.code = FINE
        self.is_over = False
        self.is_deleted = False
        self._form: Final = form
        self._path: Final = path
        self._is_folder: Final = path.is_dir()
        self._segment: SegmentFile | None = None
        self._base_offset = -1  # of the segment that is being printed

    def print_new(self) -> bool:
        """Print what is new. Returns whether there was anything. Raises `Unreadable` if the log was deleted."""
        following = error = None
        try:
            following = self._next_file()  # first: a segment that is followed by another one does not grow any more
        except NoSuchFile as found:
            error = found
        if self._segment is not None and self._segment.grow():
            self._print(self._segment)
            return True
        if error is not None:
            self.is_deleted = True
            raise error
        if following is None:
            return False
        base_offset, path = following
        try:
            self._segment = self._form.reading.open(str(path))
        except NoSuchFile:
            if not self._is_folder:
                raise
            return False  # it was deleted after the folder was listed
        self._base_offset = base_offset
        self._print(self._segment)
        return True

    def _next_file(self) -> tuple[int, Path] | None:
        """Return the file to go on with, and its base offset. Raises `NoSuchFile` if the log was deleted.

        If the segment that is being printed is gone, and none follows it, the log has begun again.
        """
        is_current = self._segment is not None and self._segment.is_at_its_path()
        if not self._is_folder:
            if self._segment is not None and not self._path.exists():
                raise NoSuchFile(self._path, "it was deleted while it was followed")
            return None if is_current else (0, self._path)
        try:
            found = sorted(_segments(self._path))
        except FileNotFoundError:
            raise NoSuchFile(self._path, "it was deleted while it was followed") from None
        except OSError as error:
            raise Unreadable(self._path, reason_of(error)) from None
        behind = [each for each in found if each[0] > self._base_offset]
        if not behind and not is_current:
            behind = found
        return behind[0] if behind else None

    def _print(self, segment: SegmentFile) -> None:
        code = self._form.print_segment(segment, is_growing=True)
        self.code = max(self.code, code)
        self.is_over = code == COULD_NOT_RUN or (code == DAMAGE_FOUND and not self._form.reading.resync)


class _Tails:
    """Everything that is followed below some paths."""

    def __init__(self, form: Form, paths: Iterable[Path]) -> None:
        """Raises `InvalidInput` for what cannot grow."""
        self.code = FINE
        self._form: Final = form
        self._directories: Final[list[Path]] = []
        self._tails: Final[dict[Path, _Tail]] = {}
        for path in paths:
            if _is_directory_of_partitions(path):
                self._directories.append(path)
                self.look_for_new()
                if not any(tail.parent == path for tail in self._tails):
                    raise InvalidInput(f"{path}: there are no partitions in this directory")
            else:
                self._tails[path] = _Tail(form, path)

    def look_for_new(self) -> None:
        """Follow the partitions of data directories that were created meanwhile."""
        for directory in self._directories:
            try:
                found = sorted(
                    path for path in directory.iterdir() if TopicPartition.parse(path.name) and path.is_dir()
                )
            except OSError as error:
                raise Unreadable(directory, reason_of(error)) from None
            for path in found:
                if path not in self._tails or self._tails[path].is_deleted:
                    self._tails[path] = _Tail(self._form, path)

    @property
    def going(self) -> list[_Tail]:
        """Those that are not over."""
        return [tail for tail in self._tails.values() if not tail.is_over]

    def print_new(self) -> bool:
        """Print what is new. Returns whether there was anything."""
        is_new = False
        for tail in self.going:
            try:
                is_new |= tail.print_new()
            except OctavoError as error:
                tell(str(error))
                tail.code, tail.is_over = COULD_NOT_RUN, True
            self.code = max(self.code, tail.code)
        return is_new


def follow(paths: Iterable[str], form: Form) -> int:
    """Print what is in the segments below all paths, and whatever is added. Ends when nothing is left to follow."""
    tails = _Tails(form, map(Path, paths))
    while tails.going:
        is_new = tails.print_new()
        sys.stdout.flush()
        if not is_new and tails.going:
            _pause()
            tails.look_for_new()
    return tails.code


def _pause() -> None:
    """Wait a little. Raises `BrokenPipeError` if nobody reads standard output any more."""
    poll = select.poll()
    try:
        poll.register(sys.stdout.fileno(), 0)  # errors are told in any case
    except OSError:  # it is no file
        poll = select.poll()
    told = poll.poll(_PAUSE_MS)
    if any(event & select.POLLNVAL for _, event in told):  # the poll of macOS does not know terminals
        time.sleep(_PAUSE_MS / 1000)
    elif told:
        raise BrokenPipeError


def _is_directory_of_partitions(path: Path) -> bool:
    """Return whether a path is a data directory. Raises `InvalidInput` for a file that cannot grow."""
    if path.is_dir():
        return not is_partition_folder(path) and not any(_segments(path))
    kind = kind_of(path)
    if kind not in (Kind.SEGMENT, Kind.UNKNOWN):
        raise InvalidInput(f"{path} is {kind.value}: only segments can be followed")
    return False


def _segments(folder: Path) -> Iterator[tuple[int, Path]]:
    """Yield the segments of a folder that are in use, with their base offsets."""
    for path in folder.iterdir():
        name = FileName.parse(path.name)
        if name.kind is Kind.SEGMENT and name.base_offset is not None and not name.renamed:
            yield name.base_offset, path
