"""Write a page to a file, and never over anything else than a page."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from octavo.errors import InvalidInput
from octavo.inspect.kinds import reason_of
from octavo.inspect.pages.document import MARK


def check_target(target: Path) -> None:
    """Check that a page can be written to `target`: there is nothing, or a page of Octavo's. Raises `InvalidInput`.

    A mistyped path must not cost a segment. A file is made in the folder and removed, so that nobody waits for a page
    that cannot be written.
    """
    place = _place_of(target)
    try:
        descriptor, name = _temporary_file(place)
        os.close(descriptor)
        Path(name).unlink()
    except OSError as error:
        raise _unwritable(target, error) from None


def write_page(target: Path, page: str) -> None:
    """Write a page, whole or not at all. If `target` is a symbolic link, the file that it leads to is written.

    Raises `InvalidInput` as `check_target` does, and if the page cannot be written.
    """
    place = _place_of(target)
    try:
        descriptor, name = _temporary_file(place)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
                file.write(page)
            umask = os.umask(0)
            os.umask(umask)
            Path(name).chmod(0o666 & ~umask)  # as if it had been opened by its name
            Path(name).replace(place)
        except BaseException:
            with suppress(FileNotFoundError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise _unwritable(target, error) from None


def _place_of(target: Path) -> Path:
    """Return the path behind all symbolic links, if a page may be there. Raises `InvalidInput`."""
    try:
        place = target.resolve()
        has_folder = place.parent.is_dir()
        status = target.stat() if has_folder else None
    except FileNotFoundError:
        status = None
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: a loop of links; ValueError: a null character
        raise _unwritable(target, error) from None
    if not has_folder:
        raise InvalidInput(f"{target} cannot be written: there is no folder {place.parent}")
    if status is not None:
        _check_page(target, place, status)
    return place


def _check_page(target: Path, place: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise InvalidInput(f"{target} is no ordinary file: a page is not written there")
    try:
        # /dev/stdout and /proc can lead to an open file that has no name, or not this one any more.
        is_named = place.samefile(target)
        with target.open("rb") as file:
            is_page = file.read(len(MARK)) == MARK.encode()
    except OSError as error:
        raise _unwritable(target, error) from None
    if not is_named or (status.st_size and not is_page):
        raise InvalidInput(f"{target} exists and is no page of Octavo's: it is not overwritten")


def _temporary_file(place: Path) -> tuple[int, str]:
    return tempfile.mkstemp(prefix=".octavo-", suffix=".html", dir=place.parent)


def _unwritable(target: Path, error: Exception) -> InvalidInput:
    reason = reason_of(error) if isinstance(error, OSError | ValueError) else "its links lead in a circle"
    return InvalidInput(f"{target} cannot be written: {reason}")
