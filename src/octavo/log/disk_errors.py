"""What an error of the operating system says of the disk: that it is full, or that it has failed."""

from __future__ import annotations

import errno
from typing import Final

_UNCLEAN: Final = getattr(errno, "EUCLEAN", errno.EIO)  # the file system is damaged: only Linux says so
_BROKEN: Final = frozenset({errno.EIO, errno.EROFS, errno.ENXIO, errno.ENODEV, errno.ESTALE, _UNCLEAN})


def is_full(error: OSError) -> bool:
    """Return whether the error says that the disk is full or a quota is exceeded."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def is_broken(error: OSError) -> bool:
    """Return whether the error says that the disk has failed, and not that something is used up for the time being."""
    return error.errno in _BROKEN
