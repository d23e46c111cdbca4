"""Locks over a whole file, as `fcntl` has them: `take`, `give_back` and `holder`.

Linux has open-file-description locks, which belong to the one descriptor that took them. Elsewhere there is the POSIX
lock, which belongs to the process and is gone as soon as that closes *any* descriptor of the file.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import sys
from typing import Final

from octavo.log.storage import File

_OFD_SETLK: Final = 37 if sys.platform == "linux" else None  # F_OFD_SETLK, which not every Python names

# The fields of a `struct flock`. Their order on the BSDs and macOS is not that of Linux.
_FLOCK: Final = struct.Struct("@hhqqi4x" if sys.platform == "linux" else "@qqihh")


def take(file: File) -> bool:
    """Lock a file, without waiting. To take the same lock again does nothing.

    Returns whether the lock belongs to the descriptor. Raises `BlockingIOError` or `PermissionError`.
    """
    return _set(file, fcntl.F_WRLCK)


def give_back(file: File) -> None:
    """Unlock a file."""
    _set(file, fcntl.F_UNLCK)


def holder(file: File) -> tuple[bool, int]:
    """Return whether somebody holds a lock on a file, and the process id in it. Nothing is locked to find out.

    The id is -1 for an open-file-description lock, and 0 for a process in another container or on another machine. The
    POSIX lock of this process is not seen.
    """
    answer = _FLOCK.unpack(fcntl.fcntl(file.descriptor, fcntl.F_GETLK, _flock_over_all(fcntl.F_WRLCK)))
    kind, pid = (answer[0], answer[4]) if sys.platform == "linux" else (answer[3], answer[2])
    return kind != fcntl.F_UNLCK, pid


def _set(file: File, kind: int) -> bool:
    if _OFD_SETLK is not None:
        try:
            fcntl.fcntl(file.descriptor, _OFD_SETLK, _flock_over_all(kind))
            return True
        except OSError as error:
            if error.errno != errno.EINVAL:  # the error of kernels without these locks
                raise
    fcntl.lockf(file.descriptor, fcntl.LOCK_UN if kind == fcntl.F_UNLCK else fcntl.LOCK_EX | fcntl.LOCK_NB)
    return False


def _flock_over_all(kind: int) -> bytes:
    """Return a `struct flock` over the whole file."""
    # Type, whence, start, size, pid; or start, size, pid, type, whence.
    return _FLOCK.pack(*((kind, os.SEEK_SET, 0, 0, 0) if sys.platform == "linux" else (0, 0, 0, kind, os.SEEK_SET)))
