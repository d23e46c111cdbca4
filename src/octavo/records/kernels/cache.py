"""Where compiled kernels are kept between processes.

`OCTAVO_CACHE_DIR`, else the user's cache folder, else a folder of the user's among the temporary files. The folder
below it is named after the sources of the kernels and the version of Numba, so that what lies there is never stale.
Numba keeps machine code of several processors apart by itself.

What lies there is executed. So a folder serves only where nobody but this user and root can change it, or put another
in its place: it and all folders above it belong to one of the two, and others can write to none of them (where they
can, as among the temporary files, but not remove what is not theirs, that is good enough for a folder above).

    writable           Numba reads from it and writes to it
    only readable      as in the image of a container: copied to a temporary folder, as Numba reads only where it can
                       write
    none to be had     a temporary folder, and a warning

A temporary folder is of one process, and removed when that ends.
"""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

_log = logging.getLogger(__name__)

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_OTHERS_ENTER = stat.S_IXGRP | stat.S_IXOTH


@cache
def sources_digest() -> str:
    """Changes whenever anything changes that compiled kernels are made of."""
    digest = hashlib.sha256(version("numba").encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    digest.update((Path(__file__).parent.parent / "layout.py").read_bytes())
    return digest.hexdigest()[:16]


def cache_folder(*, checked: bool = False) -> Path:
    """The folder, made if need be; one that Numba can write to and nobody else."""
    name = f"kernels-{sources_digest()}{'-checked' if checked else ''}"
    candidates = list(_candidates())
    for parent in candidates:
        try:
            folder = _usable(parent / name)
        except (OSError, RuntimeError):  # not to be had; the latter is a loop of links
            continue
        if folder is not None:
            return folder
    return _temporary(name, ", ".join(map(str, candidates)), os.getpid())


def _candidates() -> Iterator[Path]:
    given = os.environ.get("OCTAVO_CACHE_DIR")
    if given:
        yield Path(given)
        return
    caches = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not caches.is_absolute():  # as its specification has it
        with suppress(RuntimeError):  # there is no home, as for a user that only a number tells
            caches = Path("~/.cache").expanduser()
    if caches.is_absolute():
        yield caches / "octavo"
    with suppress(FileNotFoundError):  # there is no folder for temporary files
        yield Path(tempfile.gettempdir()) / f"octavo-{os.geteuid()}"


def _usable(folder: Path) -> Path | None:
    """`folder`, or a copy of it; None where others could change it. Raises `OSError` where it cannot be had."""
    folder = folder.resolve()  # whatever led there: from here on there are no links
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    above = missing[-1].parent if missing else folder.parent
    if not all(_is_safe(each) for each in (above, *above.parents)):
        return None
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)  # not by `parents=True`, which leaves their modes to the umask
    if not _is_closed(folder):
        return None
    return folder if os.access(folder, os.W_OK) else _copied(folder, os.getpid())


def _is_safe(folder: Path) -> bool:
    """Whether others cannot replace what this user or root keeps in `folder`."""
    status = folder.lstat()
    return _is_of_ours(status) and (not status.st_mode & _OTHERS_WRITE or bool(status.st_mode & stat.S_ISVTX))


def _is_closed(folder: Path) -> bool:
    """Whether others can change nothing in `folder`."""
    status = folder.lstat()
    if not _is_of_ours(status) or status.st_mode & _OTHERS_WRITE:
        return False
    if not status.st_mode & _OTHERS_ENTER:
        return True
    inside = (each.lstat() for each in folder.rglob("*"))
    return all(_is_of_ours(each) and not each.st_mode & _OTHERS_WRITE for each in inside)


def _is_of_ours(status: os.stat_result) -> bool:
    return status.st_uid in (0, os.geteuid())


@cache
def _copied(folder: Path, _process: int) -> Path:
    """A copy that can be written to; a fork of this process needs its own, as this one may end before it."""
    copy = _temporary_root() / folder.name
    for source in folder.rglob("*"):
        target = copy / source.relative_to(folder)
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    copy.mkdir(exist_ok=True)
    return copy


@cache
def _temporary(name: str, tried: str, _process: int) -> Path:
    """An empty folder."""
    _log.warning(
        "compiled kernels are kept for this process only, and compiled again by the next: of %s, none is a folder that "
        "this user can write to and nobody else. Set OCTAVO_CACHE_DIR to one that is.",
        tried,
    )
    folder = _temporary_root() / name
    folder.mkdir()
    return folder


def _temporary_root() -> Path:
    """A new folder that only this user can enter, for as long as this process lives."""
    root = Path(tempfile.mkdtemp(prefix="octavo-"))
    made_by = os.getpid()

    def remove() -> None:
        if os.getpid() == made_by:  # and not a fork of it
            shutil.rmtree(root, ignore_errors=True)

    atexit.register(remove)
    return root
