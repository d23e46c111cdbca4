"""List the files to look at below a path: a file, the folder of a partition, or a data directory."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from octavo.errors import InvalidInput, NoSuchFile, Unreadable
from octavo.inspect.kinds import Kind, is_partition_folder, kind_of, reason_of


def files_below(path: Path, on_error: Callable[[Unreadable], None] | None = None) -> list[Path]:
    """Return the files of Kafka below a path, in the order of their names; the path itself if it is no folder.

    In a data directory these are its own files and those of its partitions' folders. Files of other kinds are left out.
    A partition's folder that is deleted meanwhile is left out. If one cannot be listed, `on_error` is called, or else
    the error raised. Raises `Unreadable` for a path that cannot be listed, and `InvalidInput` if there is nothing of
    Kafka in it.
    """
    if not path.is_dir():
        return [path]
    told: list[Unreadable] = []

    def tell(error: Unreadable) -> None:
        if on_error is None:
            raise error
        told.append(error)
        on_error(error)

    found: list[Path] = []
    for each, is_folder in _files_and_folders(path):
        if not is_folder:
            found.append(each)
        elif not is_partition_folder(path) and is_partition_folder(each):
            try:
                found += [file for file, is_folder in _files_and_folders(each) if not is_folder]
            except NoSuchFile:
                continue  # its topic was deleted after the directory was listed
            except Unreadable as error:
                tell(error)
    if not found and not told:
        raise InvalidInput(f"{path}: there are no files of Kafka in this directory")
    return found


def _files_and_folders(folder: Path) -> list[tuple[Path, bool]]:
    """Return the files of Kafka in a folder, and the folders in it; with each, whether it is a folder."""
    found = [(folder / entry.name, entry.is_dir()) for entry in _entries(folder)]
    others = (Kind.UNKNOWN, Kind.LOCK, Kind.COMMIT_JOURNAL)
    return [(path, is_folder) for path, is_folder in found if is_folder or kind_of(path) not in others]


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except FileNotFoundError as error:
        raise NoSuchFile(folder, reason_of(error)) from None
    except OSError as error:
        raise Unreadable(folder, reason_of(error)) from None
