"""Check the files of a data directory itself: everything but the contents of its partitions.

check_directory    all problems of those files
partition_folders  the folders that `check_partition` is to be called with
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

from octavo.inspect.verify.folder import Folder
from octavo.inspect.verify.looks import Look, certain
from octavo.inspect.verify.problem import Problem
from octavo.log.names import AsideFolder, TopicPartition


class DirectoryFolder(Folder):
    """A data directory: its listing, without the contents of the partitions."""

    @property
    def partitions(self) -> dict[TopicPartition, str]:
        """The partitions, with the names of their folders."""
        parsed = {name: TopicPartition.parse(name) for name, entry in sorted(self.entries.items()) if entry.is_folder}
        return {partition: name for name, partition in parsed.items() if partition is not None}


DirectoryCheck = Callable[[DirectoryFolder], Iterable[Problem]]


def check_directory(path: Path | str, *, ignore: Collection[str] = ()) -> Iterator[Problem]:
    """Yield the problems of a data directory's own files.

    ignore: names of rules that are not checked

    Raises `BadDirectory` if `path` is a file, and `OSError` if it cannot be read.
    """
    from octavo.inspect.verify.checks import DIRECTORY_CHECKS

    def look(_number: int) -> Look:
        listing = DirectoryFolder(Path(path))
        return Look(listing, (problem for check in DIRECTORY_CHECKS for problem in check(listing)))

    yield from certain(look, ignore)


def partition_folders(path: Path) -> list[Path]:
    """Return the folders of a data directory that hold a partition, those that were set aside among them."""
    names = (name for name, entry in DirectoryFolder(path).entries.items() if entry.is_folder)
    return [path / name for name in sorted(names) if TopicPartition.parse(name) or AsideFolder.parse(name)]
