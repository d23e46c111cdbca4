"""Write a page to a file, and never over anything else than a page."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from octavo.errors import InvalidInput
from octavo.inspect.pages.document import MARK


def check_target(target: Path) -> None:
    """Check that a page may be written to `target`: there is nothing, or a page of Octavo's. Raises `InvalidInput`.

    A mistyped path must not cost a segment.
    """
    try:
        status = target.stat()
    except FileNotFoundError:
        if not target.parent.is_dir():
            raise InvalidInput(f"{target} cannot be written: there is no folder {target.parent}") from None
        return
    if not stat.S_ISREG(status.st_mode):
        raise InvalidInput(f"{target} is no ordinary file: a page is not written there")
    with target.open("rb") as file:
        if status.st_size and file.read(len(MARK)) != MARK.encode():
            raise InvalidInput(f"{target} exists and is no page of Octavo's: it is not overwritten")


def write_page(target: Path, page: str) -> None:
    """Write a page, whole or not at all. Raises `InvalidInput` as `check_target` does, and `OSError`."""
    check_target(target)
    descriptor, name = tempfile.mkstemp(prefix=".octavo-", suffix=".html", dir=target.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.write(page)
        umask = os.umask(0)
        os.umask(umask)
        Path(name).chmod(0o666 & ~umask)  # as if it had been opened by its name
        Path(name).replace(target)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(name).unlink()
        raise
