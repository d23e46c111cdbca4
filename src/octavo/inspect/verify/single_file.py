"""Check one file: a segment with its indexes, or whatever else is in a data directory."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from octavo.errors import Unreadable
from octavo.inspect.kinds import FileName, Kind, check_regular, is_partition_folder
from octavo.inspect.verify.directory import check_directory
from octavo.inspect.verify.examiner import Examiner
from octavo.inspect.verify.folder import Folder
from octavo.inspect.verify.looks import Look, certain
from octavo.inspect.verify.partition import OnBytes, PartitionFolder, check_partition
from octavo.inspect.verify.problem import Problem
from octavo.inspect.verify.repairs import considered
from octavo.inspect.verify.segments import walk_segments
from octavo.inspect.verify.surroundings import surroundings

_OF_DIRECTORY: Final = (Kind.OFFSET_CHECKPOINT, Kind.META_PROPERTIES, Kind.CLEAN_SHUTDOWN, Kind.LOCK)


def check_file(path: Path | str, *, ignore: Collection[str] = (), on_bytes: OnBytes | None = None) -> Iterator[Problem]:
    """Yield the problems of one file. What it has to agree with is read, too, if it is there.

    Raises `Unreadable` if it is no regular file, or none of Kafka's.
    """
    path = Path(path)
    check_regular(path)
    parsed, folder = FileName.parse(path.name), path.absolute().parent
    if parsed.kind is Kind.UNKNOWN:
        raise Unreadable(path, "this is none of Kafka's files, judged by its name")
    if parsed.kind is Kind.SEGMENT and parsed.base_offset is not None and not parsed.renamed:
        yield from _segment(folder, parsed.base_offset, ignore, on_bytes)
    elif parsed.kind.has_batches:
        yield from _batches(folder, path.name, ignore, on_bytes)
    else:
        if parsed.kind in _OF_DIRECTORY and not is_partition_folder(folder):
            problems = check_directory(folder, ignore=ignore)
        else:
            problems = check_partition(folder, ignore=ignore, on_bytes=on_bytes)
        yield from (problem for problem in problems if problem.file == path.name)


def _segment(folder: Path, base_offset: int, ignore: Collection[str], on_bytes: OnBytes | None) -> Iterator[Problem]:
    from octavo.inspect.verify.checks import SEGMENT_CHECKS

    def look(number: int) -> Look:
        listing = PartitionFolder(folder, surroundings(folder), None if number else on_bytes)
        checks = [make(listing) for make in SEGMENT_CHECKS]
        return Look(listing, considered(walk_segments(listing, checks, only=base_offset)))

    yield from certain(look, ignore)


def _batches(folder: Path, name: str, ignore: Collection[str], on_bytes: OnBytes | None) -> Iterator[Problem]:
    def problems(listing: Folder) -> Iterator[Problem]:
        examiner = Examiner()
        with listing.open_file(name) as file:
            size = file.size()
            for _, found in examiner.examine(file, name, size):
                yield from found
        if examiner.tail is not None:
            yield examiner.tail.problem
        if on_bytes is not None:
            on_bytes(size)

    def look(_number: int) -> Look:
        listing = Folder(folder)
        return Look(listing, problems(listing))

    yield from certain(look, ignore)
