"""Folders that keep compiled kernels between processes.

These are tried, in this order: `OCTAVO_CACHE_DIR`, `octavo` in the user's cache folder, and `octavo-<uid>` among the
temporary files, up to the first that this user can write to. That one gets what is compiled; those before it are only
read, as in the image of a container.

In each of them, a folder is named after all that the kernels are made of and with: their sources, Numba, llvmlite and
Python. What it holds is therefore never stale, and does not depend on where Octavo is installed.
`octavo.records.kernels.keeping` names the files in it, one for each kernel and kind of processor.

What these files hold is executed. So a folder is used only where nobody but this user and root can change it or put
another in its place: it and all folders above it belong to one of the two, and others can write to none of them. (A
folder above may be writable for others if they cannot remove what is not theirs, as among the temporary files.) The
folders that are made here can be read by everybody and written to by their owner alone.
"""

from __future__ import annotations

import hashlib
import logging
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Final, NamedTuple

_log = logging.getLogger(__name__)

_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_OTHERS_ENTER: Final = stat.S_IXGRP | stat.S_IXOTH
_READABLE: Final = 0o755
_PRIVATE: Final = 0o700  # for folders that are not ours alone, such as ~/.cache


class _Candidate(NamedTuple):
    path: Path
    mode_above: int  # of the folders above it, where they have to be made
    is_given: bool = False  # by OCTAVO_CACHE_DIR


class _Unusable(Exception):
    """A folder that cannot be used; the text says why."""


@cache
def sources_digest() -> str:
    """Return a digest of all that compiled kernels are made of, except the processor."""
    made_with = (version("numba"), version("llvmlite"), sys.implementation.cache_tag, sys.abiflags)
    digest = hashlib.sha256(repr(made_with).encode())
    records = files("octavo.records")  # which may also be in a zip archive
    kernels = (each for each in records.joinpath("kernels").iterdir() if each.name.endswith(".py"))
    for source in (*sorted(kernels, key=lambda each: each.name), records.joinpath("layout.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def folders_to_load_from(*, checked: bool = False) -> Iterator[Path]:
    """Yield the folders that may have kernels: up to the first that can be written to, which gets what is missing."""
    for candidate in _candidates():
        try:
            folder, missing = _checked(candidate.path / _name(checked))
        except _Unusable:
            continue
        if not missing:
            yield folder
        if missing or os.access(folder, os.W_OK):
            return


def folder_to_write_to(*, checked: bool = False) -> Path | None:
    """Return the first folder that can be written to, made if need be; None where there is none.

    Log a warning where that is not the one that `OCTAVO_CACHE_DIR` says.
    """
    problems = []
    for candidate in _candidates():
        try:
            folder, missing = _checked(candidate.path / _name(checked))
            if missing:
                _make(missing, candidate.mode_above)
                _checked(folder)  # once more: somebody else may have been faster
            if not os.access(folder, os.W_OK):
                raise _Unusable(
                    f"{folder} has not all kernels for this processor, and user {os.geteuid()} cannot write to it"
                )
        except _Unusable as problem:
            problems.append(str(problem))
            continue
        if problems and not candidate.is_given and os.environ.get("OCTAVO_CACHE_DIR"):
            warn_once(f"compiled kernels are kept in {folder} and not in OCTAVO_CACHE_DIR: {problems[0]}")
        return folder
    warn_once(f"compiled kernels are not kept, so that every process compiles them again: {'; '.join(problems)}")
    return None


def _name(checked: bool) -> str:
    return f"kernels-{sources_digest()}{'-checked' if checked else ''}"


@cache
def warn_once(text: str) -> None:
    """Log a warning, unless this process has done so before."""
    _log.warning("%s", text)


def _candidates() -> Iterator[_Candidate]:
    given = os.environ.get("OCTAVO_CACHE_DIR")
    if given:
        yield _Candidate(Path(given), _READABLE, is_given=True)
    caches = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not caches.is_absolute():  # which its specification says to ignore
        with suppress(RuntimeError):  # there is no home, as for a user id without a name
            caches = Path("~/.cache").expanduser()
    if caches.is_absolute():
        yield _Candidate(caches / "octavo", _PRIVATE)
    with suppress(FileNotFoundError):  # there is no folder for temporary files
        yield _Candidate(Path(tempfile.gettempdir()) / f"octavo-{os.geteuid()}", _PRIVATE)


def _checked(folder: Path) -> tuple[Path, list[Path]]:
    """Return `folder` without links, and what of it has still to be made, the innermost first.

    Raises `_Unusable` where others could change what it holds, and where this user can neither read nor make it.
    """
    try:
        folder = folder.resolve()
        missing = _missing(folder)
        above = missing[-1].parent if missing else folder.parent
        for each in (above, *above.parents):
            _check_safe(each)
        if not missing:
            _check_closed(folder)
    except (OSError, RuntimeError) as error:  # the latter is a loop of links
        raise _Unusable(str(error)) from error
    if missing and not os.access(above, os.W_OK | os.X_OK):
        what = f"kernels of this version ({folder.name})" if above == folder.parent else missing[-1].name
        raise _Unusable(f"{above} has no {what}, and user {os.geteuid()} cannot write to it")
    if not missing and not os.access(folder, os.R_OK | os.X_OK):
        raise _Unusable(f"user {os.geteuid()} cannot read {folder}")
    return folder, missing


def _missing(folder: Path) -> list[Path]:
    """Return which of `folder` and the folders above it do not exist, the innermost first."""
    missing = []
    for each in (folder, *folder.parents):
        try:
            each.lstat()
        except FileNotFoundError:
            missing.append(each)
        except PermissionError as error:
            barred = next((above for above in reversed(each.parents) if not os.access(above, os.X_OK)), each.parent)
            raise _Unusable(f"user {os.geteuid()} cannot enter {barred}") from error
        else:
            break
    return missing


def _make(folders: list[Path], mode_above: int) -> None:
    """Make `folders`, the innermost first, with these very modes, whatever the umask says."""
    for number, folder in reversed(list(enumerate(folders))):
        try:
            folder.mkdir(_PRIVATE)
            folder.chmod(_READABLE if number < 2 else mode_above)  # those are the folder of kernels and its parent
        except FileExistsError:  # another process was faster
            continue
        except OSError as error:
            raise _Unusable(str(error)) from error


def _check_safe(folder: Path) -> None:
    """Raise `_Unusable` where others can replace what this user or root keeps in `folder`."""
    status = folder.lstat()
    _check_owner(folder, status)
    if status.st_mode & _OTHERS_WRITE and not status.st_mode & stat.S_ISVTX:
        raise _Unusable(f"others can write to {folder} (mode {stat.S_IMODE(status.st_mode):o})")


def _check_closed(folder: Path) -> None:
    """Raise `_Unusable` where others can change anything in `folder`."""
    _check_unchangeable(folder)
    if folder.lstat().st_mode & _OTHERS_ENTER:
        for each in folder.rglob("*"):
            with suppress(FileNotFoundError):  # another process has given its file the final name
                _check_unchangeable(each)


def _check_unchangeable(path: Path) -> None:
    status = path.lstat()
    _check_owner(path, status)
    if status.st_mode & _OTHERS_WRITE:
        raise _Unusable(f"others can write to {path} (mode {stat.S_IMODE(status.st_mode):o})")


def _check_owner(path: Path, status: os.stat_result) -> None:
    if status.st_uid not in (0, os.geteuid()):
        raise _Unusable(f"{path} belongs to user {status.st_uid}, and neither to user {os.geteuid()} nor to root")
