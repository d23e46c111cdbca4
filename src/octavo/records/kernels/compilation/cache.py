"""Choose the folders that keep compiled kernels between processes.

The candidates, in this order, are `OCTAVO_CACHE_DIR`, `octavo` in the user's cache folder, and `octavo-<uid>` in the
folder for temporary files. The first one that this user can write to receives newly compiled kernels. Those before it
are only read, as in the image of a container.

Each of them has a subfolder named after everything that the kernels depend on: their sources, Numba, llvmlite and
Python. Its content is therefore never stale, and does not depend on where Octavo is installed.
`octavo.records.kernels.compilation.keeping` names the files in it, one for each kernel and kind of processor.

The content of these files is executed. So a folder is used only if nobody but this user and root can change or replace
it: the folder and all folders above it belong to one of the two, and others cannot write to any of them. (A folder
above may be writable for others if they cannot remove files of other users, as in the folder for temporary files.)
Folders created here are readable for everybody and writable only for their owner.
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
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_log = logging.getLogger(__name__)

_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_OTHERS_ENTER: Final = stat.S_IXGRP | stat.S_IXOTH
_READABLE: Final = 0o755
_PRIVATE: Final = 0o700  # for shared parents such as ~/.cache


class _Candidate(NamedTuple):
    path: Path
    mode_above: int  # mode of the folders above it, if they have to be created
    is_given: bool = False  # whether it comes from OCTAVO_CACHE_DIR


class _Unusable(Exception):
    """Raised for a folder that cannot be used; the text says why."""


@cache
def sources_digest() -> str:
    """Return a digest of everything that compiled kernels depend on, except the processor."""
    made_with = (version("numba"), version("llvmlite"), sys.implementation.cache_tag, sys.abiflags)
    digest = hashlib.sha256(repr(made_with).encode())
    records = files("octavo.records")  # this may also be in a zip archive
    for source in (*_sources(records.joinpath("kernels")), records.joinpath("layout.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _sources(folder: Traversable) -> Iterator[Traversable]:
    """Yield the modules in `folder` and in the folders below it, in the same order everywhere."""
    for each in sorted(folder.iterdir(), key=lambda each: each.name):
        if each.name.endswith(".py"):
            yield each
        elif each.is_dir():
            yield from _sources(each)


def folders_to_load_from(*, checked: bool = False) -> Iterator[Path]:
    """Yield the folders that may have kernels, up to the first writable one, which receives missing kernels."""
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
    """Return the first folder that can be written to, creating it if necessary; None if there is none.

    Logs a warning if that is not the folder in `OCTAVO_CACHE_DIR`.
    """
    problems = []
    for candidate in _candidates():
        try:
            folder, missing = _checked(candidate.path / _name(checked))
            if missing:
                _make(missing, candidate.mode_above)
                _checked(folder)  # check again: another process may have been faster
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
    """Log a warning, unless this process has logged it before."""
    _log.warning("%s", text)


def _candidates() -> Iterator[_Candidate]:
    given = os.environ.get("OCTAVO_CACHE_DIR")
    if given:
        yield _Candidate(Path(given), _READABLE, is_given=True)
    caches = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not caches.is_absolute():  # its specification says to ignore relative paths
        with suppress(RuntimeError):  # there is no home, as for a user id without a name
            caches = Path("~/.cache").expanduser()
    if caches.is_absolute():
        yield _Candidate(caches / "octavo", _PRIVATE)
    with suppress(FileNotFoundError):  # there is no folder for temporary files
        yield _Candidate(Path(tempfile.gettempdir()) / f"octavo-{os.geteuid()}", _PRIVATE)


def _checked(folder: Path) -> tuple[Path, list[Path]]:
    """Return `folder` with links resolved, and the part of it that does not exist yet, innermost first.

    Raises `_Unusable` if others could change its content, or if this user can neither read nor create it.
    """
    try:
        folder = folder.resolve()
        missing = _missing(folder)
        above = missing[-1].parent if missing else folder.parent
        for each in (above, *above.parents):
            _check_safe(each)
        if not missing:
            _check_closed(folder)
    except (OSError, RuntimeError) as error:  # RuntimeError means a loop of links
        raise _Unusable(str(error)) from error
    if missing and not os.access(above, os.W_OK | os.X_OK):
        what = f"kernels of this version ({folder.name})" if above == folder.parent else missing[-1].name
        raise _Unusable(f"{above} has no {what}, and user {os.geteuid()} cannot write to it")
    if not missing and not os.access(folder, os.R_OK | os.X_OK):
        raise _Unusable(f"user {os.geteuid()} cannot read {folder}")
    return folder, missing


def _missing(folder: Path) -> list[Path]:
    """Return which of `folder` and the folders above it do not exist, innermost first."""
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
    """Create `folders`, given innermost first, with exactly these modes, whatever the umask is."""
    for number, folder in reversed(list(enumerate(folders))):
        try:
            folder.mkdir(_PRIVATE)
            folder.chmod(_READABLE if number < 2 else mode_above)  # 0 and 1 are the kernel folder and its parent
        except FileExistsError:  # another process was faster
            continue
        except OSError as error:
            raise _Unusable(str(error)) from error


def _check_safe(folder: Path) -> None:
    """Raise `_Unusable` if others can replace files of this user or of root in `folder`."""
    status = folder.lstat()
    _check_owner(folder, status)
    if status.st_mode & _OTHERS_WRITE and not status.st_mode & stat.S_ISVTX:
        raise _Unusable(f"others can write to {folder} (mode {stat.S_IMODE(status.st_mode):o})")


def _check_closed(folder: Path) -> None:
    """Raise `_Unusable` if others can change anything in `folder`."""
    _check_unchangeable(folder)
    if folder.lstat().st_mode & _OTHERS_ENTER:
        for each in folder.rglob("*"):
            with suppress(FileNotFoundError):  # another process has just renamed its file
                _check_unchangeable(each)


def _check_unchangeable(path: Path) -> None:
    status = path.lstat()
    _check_owner(path, status)
    if status.st_mode & _OTHERS_WRITE:
        raise _Unusable(f"others can write to {path} (mode {stat.S_IMODE(status.st_mode):o})")


def _check_owner(path: Path, status: os.stat_result) -> None:
    if status.st_uid not in (0, os.geteuid()):
        raise _Unusable(f"{path} belongs to user {status.st_uid}, and neither to user {os.geteuid()} nor to root")
