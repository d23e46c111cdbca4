"""Check which process may change a directory: `Owner`.

Only the process that opened a directory may write to it. A process made by a fork has a copy of every object of its
parent, with sizes and offsets that are out of date as soon as the parent goes on. So it may only read.

An append cannot afford a system call for this check, and for the check of the lock only now and then: see
`Owner.sure_until_s`. So the owner has a page of memory that Linux clears in every
child, however the child was forked (`MADV_WIPEONFORK`). On other systems, process ids are compared.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import sys
from math import inf
from pathlib import Path
from typing import Final, Protocol

from octavo.errors import LogError, WrongProcess

_MADV_WIPEONFORK: Final = 18  # the mmap module does not name it
_GONE: Final = b"\0"


class Mark(Protocol):
    """A sequence whose first item is 0 in every process that may not write."""

    def __getitem__(self, index: int, /) -> int: ...


class Owner:
    """The process that may write to the directory at `folder`: the one that opened it, until its lock is lost."""

    def __init__(self, folder: Path) -> None:
        self.folder: Final = folder
        self.pid: Final = os.getpid()
        self.mark: Mark = _make_mark(self.pid)  # for callers that cannot afford to call `check`
        self.sure_until_s = inf  # on the monotonic clock: until then no change has to call `check_lock`
        self._lost: LogError | None = None

    @property
    def is_elsewhere(self) -> bool:
        """Whether this process is a fork of the one that opened the directory."""
        return os.getpid() != self.pid

    def check(self) -> None:
        """Raise `WrongProcess` in a fork. After a call of `refuse_writes`, raise the error that was given to it."""
        if not self.mark[0]:
            raise self._refusal()

    def check_lock(self) -> None:
        """Check as `check` does. Subclasses also check, with system calls, that their lock is still in place."""
        self.check()

    def refuse_writes(self, error: LogError) -> None:
        """Refuse all further writes, with this error."""
        self._lost = error
        self.mark = _GONE

    def _refusal(self) -> LogError:
        if self._lost is None or self.is_elsewhere:
            return WrongProcess(self.folder, self.pid)
        return self._lost


class _ComparedPid:
    """A mark for systems that do not clear memory in a fork."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    def __getitem__(self, index: int, /) -> int:
        return os.getpid() == self._pid


def _make_mark(pid: int) -> Mark:
    if sys.platform == "linux":
        page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        with contextlib.suppress(OSError):  # Linux before 4.14 cannot
            page.madvise(_MADV_WIPEONFORK)
            page[0] = 1
            return page
    return _ComparedPid(pid)
