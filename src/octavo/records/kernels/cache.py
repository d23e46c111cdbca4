"""Folders that keep compiled kernels between processes.

These are tried, in this order: `OCTAVO_CACHE_DIR`, `octavo` in the user's cache folder, and `octavo-<uid>` among the
temporary files. Kernels are loaded from any that has them and written to the first that this user can write to. So a
folder that can only be read serves too, as in the image of a container.

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
    """Yield the folders that exist and that only this user and root can change."""
    for candidate in _candidates():
        folder = candidate.path / _name(checked)
        try:
            found = _usable(folder, candidate) if folder.exists() else None
        except (OSError, _Unusable):  # the former where this user cannot even look
            continue
        if found is not None:
            yield found


def folder_to_write_to(*, checked: bool = False) -> Path | None:
    """Return the first folder that can be written to, made if need be; None where there is none.

    Log a warning where that is not the one that `OCTAVO_CACHE_DIR` says.
    """
    problems = []
    for candidate in _candidates():
        try:
            folder = _usable(candidate.path / _name(checked), candidate)
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


def _usable(folder: Path, candidate: _Candidate) -> Path:
    """Return `folder`, made if need be. Raises `_Unusable`."""
    try:
        folder = folder.resolve()  # from here on there are no links
        missing = _missing(folder)
        for above in missing[-1].parents if missing else folder.parents:
            _check_safe(above)
        for each in reversed(missing):
            is_ours = each == folder or each == folder.parent
            _make(each, _READABLE if is_ours else candidate.mode_above)
        _check_closed(folder)
    except (OSError, RuntimeError) as error:  # the latter is a loop of links
        raise _Unusable(str(error)) from error
    if not os.access(folder, os.R_OK | os.X_OK):
        raise _Unusable(f"user {os.geteuid()} cannot read {folder}")
    return folder


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


def _make(folder: Path, mode: int) -> None:
    """Make `folder` with this very mode, whatever the umask says."""
    try:
        folder.mkdir(_PRIVATE)
    except FileExistsError:  # another process was faster
        return
    except OSError as error:
        what = f"kernels of this version ({folder.name})" if folder.name.startswith("kernels-") else folder.name
        raise _Unusable(
            f"{folder.parent} has no {what}, and user {os.geteuid()} cannot write to it ({error.strerror})"
        ) from error
    folder.chmod(mode)


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
