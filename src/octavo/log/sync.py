"""Wait until the disk has what was written: `sync_file` for the bytes of a file, `sync_names` for those of a folder.

Linux has a call for the bytes alone, without times and the like. On macOS, `fsync` returns once the bytes are in the
disk's own memory, which a power cut empties; `F_FULLFSYNC` has the disk write that, too.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable
from typing import Final

_NOT_THERE: Final = frozenset({errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOTTY})


def make_full_sync(command: int) -> Callable[[int], None]:
    """Return a function that syncs a descriptor by this command of `fcntl`, or by `fsync` if its disk has no such."""

    def full_sync(descriptor: int) -> None:
        try:
            fcntl.fcntl(descriptor, command)
        except OSError as error:
            if error.errno not in _NOT_THERE:
                raise
            os.fsync(descriptor)

    return full_sync


sync_file: Callable[[int], object]
sync_names: Callable[[int], object]
if hasattr(fcntl, "F_FULLFSYNC"):
    sync_file = sync_names = make_full_sync(fcntl.F_FULLFSYNC)
else:
    sync_file = os.fdatasync if hasattr(os, "fdatasync") else os.fsync
    sync_names = os.fsync
