"""List the files to look at below a path: a file, the folder of a partition, or a data directory."""

from __future__ import annotations

import os
from pathlib import Path

from octavo.errors import InvalidInput, NoSuchFile, Unreadable
from octavo.inspect.kinds import Kind, is_partition_folder, kind_of, reason_of


def files_below(path: Path) -> list[Path]:
    """Return the files of Kafka below a path, in the order of their names; the path itself if it is no folder.

    In a data directory these are its own files and those of its partitions' folders. Files of other kinds are left out.
    Raises `Unreadable` for a folder that cannot be listed, and `InvalidInput` if there is nothing of Kafka in it.
    """
    if not path.is_dir():
        return [path]
    found = _files(path, with_partitions=not is_partition_folder(path))
    if not found:
        raise InvalidInput(f"{path}: there are no files of Kafka in this directory")
    return found


def _files(folder: Path, *, with_partitions: bool) -> list[Path]:
    found: list[Path] = []
    for entry in _entries(folder):
        path = folder / entry.name
        if not entry.is_dir():
            if kind_of(path) not in (Kind.UNKNOWN, Kind.LOCK, Kind.COMMIT_JOURNAL):
                found.append(path)
        elif with_partitions and is_partition_folder(path):
            found += _files(path, with_partitions=False)
    return found


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except FileNotFoundError as error:
        raise NoSuchFile(folder, reason_of(error)) from None
    except OSError as error:
        raise Unreadable(folder, reason_of(error)) from None
