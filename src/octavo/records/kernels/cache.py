"""Where compiled kernels are kept between processes.

`OCTAVO_CACHE_DIR`, else the user's cache folder, else a private folder among the temporary files. The folder below it
is named after the sources of the kernels and the version of Numba, so that what lies there is never stale. Numba
keeps machine code of several processors apart by itself.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from functools import cache
from importlib.metadata import version
from pathlib import Path


@cache
def sources_digest() -> str:
    """Changes whenever anything changes that compiled kernels are made of."""
    digest = hashlib.sha256(version("numba").encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    digest.update((Path(__file__).parent.parent / "layout.py").read_bytes())
    return digest.hexdigest()[:16]


def cache_folder(*, checked: bool = False) -> Path:
    """The folder, made if need be: one that is ours and that nobody else can write to."""
    name = f"kernels-{sources_digest()}{'-checked' if checked else ''}"
    for parent in _candidates():
        folder = parent / name
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            continue
        # What is loaded from there is executed: only a folder of this user's, closed to others, will do.
        status = folder.stat()
        if status.st_uid == os.getuid() and not status.st_mode & stat.S_IWOTH and os.access(folder, os.W_OK):
            return folder
    return Path(tempfile.mkdtemp(prefix="octavo-"))


def _candidates() -> list[Path]:
    given = os.environ.get("OCTAVO_CACHE_DIR")
    if given:
        return [Path(given)]
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    return [home / "octavo", Path(tempfile.gettempdir()) / f"octavo-{os.getuid()}"]
