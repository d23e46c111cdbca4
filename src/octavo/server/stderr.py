"""Write messages to stderr without waiting for whoever reads them."""

from __future__ import annotations

import contextlib
import select
import sys
from typing import Final

_LONGEST: Final = 1000  # so that a message fits into a pipe that has any room


def to_stderr(message: str) -> None:
    """Write a message to stderr, unless nobody reads from it: then it would stop the thread that serves everybody."""
    with contextlib.suppress(OSError, ValueError):  # it is no file, as in some tests
        if not select.select([], [sys.stderr], [], 0)[1]:
            return
    with contextlib.suppress(OSError):  # it may be a file on the disk that is full
        sys.stderr.write(f"octavo: {message[:_LONGEST]}\n")  # in one piece: several threads say something
        sys.stderr.flush()
