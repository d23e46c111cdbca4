"""Whether a broker is running in a data directory: whether somebody holds its lock. Nothing is locked to find out."""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path
from typing import Final

from octavo.log.names import LOCK

_FLOCK: Final = struct.Struct("hhqqi4x")  # type, whence, start, length and process, as Linux and macOS need them


def is_locked(directory: Path) -> bool:
    """Return whether a process holds the lock of a data directory. A lock on another machine is not always seen."""
    try:
        descriptor = os.open(directory / LOCK, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        answer: bytes = fcntl.fcntl(descriptor, fcntl.F_GETLK, asked)
        return bool(_FLOCK.unpack(answer)[0] != fcntl.F_UNLCK)
    except OSError:
        return False
    finally:
        os.close(descriptor)
