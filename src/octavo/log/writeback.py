"""Have Linux begin to write a file to the disk, without waiting for it: `begin_writeback`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

_WRITE: Final = 2  # SYNC_FILE_RANGE_WRITE: submit what is dirty, and return


def begin_writeback(descriptor: int, position: int, size: int) -> None:
    """Begin to write `size` bytes from `position`, or all from there on. Does nothing on other systems.

    Otherwise dirty pages wait for a sync or for half a minute, and the disk is idle meanwhile. Errors are not reported:
    the next sync of the file reports them.
    """
    call = _sync_file_range()
    if call is not None:
        call(descriptor, position, size, _WRITE)


@cache
def _sync_file_range() -> Callable[[int, int, int, int], int] | None:
    import ctypes  # only who writes much needs it

    call = getattr(ctypes.CDLL(None), "sync_file_range", None)  # only Linux has it
    if call is not None:
        call.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
        call.restype = ctypes.c_int
    return call
