"""Take away what only Linux has from every Python process whose PYTHONPATH has this folder, before anything else runs.

Python imports a module of this name when it starts. So it holds for the tests, for their workers, and for all programs
that they start. What stays is what macOS has, too. Its own means, such as kqueue, do not come by this: whatever Octavo
does instead of Linux's way is made of what both have.

Tests keep a few means of their own that only Linux has, such as the capabilities that root gives up.
"""

from __future__ import annotations

import _socket
import ctypes
import errno
import fcntl
import mmap
import os
import posix
import resource
import select
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

HIDDEN: Final[dict[ModuleType, tuple[str, ...]]] = {
    select: ("epoll", "EPOLL*"),
    os: (
        *("eventfd*", "EFD_*", "memfd_create", "MFD_*", "pidfd_open", "pipe2", "getrandom", "sched_*"),
        *("copy_file_range", "fdatasync", "posix_fadvise", "posix_fallocate", "POSIX_FADV_*", "splice"),
        "sendfile",  # that of macOS has another form
        *("O_DIRECT", "O_NOATIME", "O_PATH", "O_TMPFILE", "RWF_*"),
        *("getxattr", "listxattr", "removexattr", "setxattr"),
    ),
    _socket: ("MSG_MORE", "SOCK_CLOEXEC", "SOCK_NONBLOCK", "TCP_CORK", "TCP_QUICKACK", "TCP_USER_TIMEOUT", "SO_DOMAIN"),
    fcntl: ("F_OFD_*",),
    mmap: ("MADV_HUGEPAGE", "MADV_NOHUGEPAGE", "MADV_DONTFORK", "MAP_POPULATE"),
    resource: ("prlimit", "RUSAGE_THREAD"),
    errno: ("EUCLEAN",),
}
HIDDEN_FROM_C: Final = frozenset({"sync_file_range", "memfd_create"})
_OFD_COMMANDS: Final = range(36, 39)  # F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW
_ADVICE: Final = frozenset({10, 14, 15, 18})  # DONTFORK, HUGEPAGE, NOHUGEPAGE, WIPEONFORK


class _Map(mmap.mmap):
    """A map that takes no advice which only Linux understands."""

    def madvise(self, option: int, *rest: int) -> None:
        if option in _ADVICE:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        super().madvise(option, *rest)


def hide() -> None:
    """Take everything away. It cannot be brought back."""
    for module, names in HIDDEN.items():
        for each in {module, posix} if module is os else {module}:
            for name in _matching(each, names):
                delattr(each, name)
    mmap.mmap = _Map  # type: ignore[misc]
    _hide_commands()
    _hide_from_c()
    _hide_proc()


def _matching(module: ModuleType, names: tuple[str, ...]) -> list[str]:
    begins = tuple(name[:-1] for name in names if name.endswith("*"))
    return [name for name in vars(module) if name in names or (begins and name.startswith(begins))]


def _hide_commands() -> None:
    """Have `fcntl` answer as a kernel without open-file-description locks does."""
    real = fcntl.fcntl

    def call(fd: Any, cmd: int, arg: Any = 0) -> Any:
        if cmd in _OFD_COMMANDS:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return real(fd, cmd, arg)

    fcntl.fcntl = call


def _hide_from_c() -> None:
    """Have C libraries lack functions of Linux."""
    real = ctypes.CDLL.__getattr__

    def get(self: ctypes.CDLL, name: str) -> Any:
        if name in HIDDEN_FROM_C:
            raise AttributeError(name)
        return real(self, name)

    ctypes.CDLL.__getattr__ = get  # type: ignore[method-assign]


def _hide_proc() -> None:
    """Have /proc not be there."""

    def forbid(event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("open", "os.listdir", "os.scandir") and _is_in_proc(arguments[0]):
            raise _missing(arguments[0])

    sys.addaudithook(forbid)
    for name in ("stat", "lstat", "readlink"):  # of which no hook is told
        real = getattr(os, name)
        replaced = _without_proc(real)
        setattr(os, name, replaced)
        for those in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
            if real in those:
                those.add(replaced)


def _without_proc(real: Callable[..., Any]) -> Callable[..., Any]:
    def call(path: Any, *arguments: Any, **named: Any) -> Any:
        if _is_in_proc(path):
            raise _missing(path)
        return real(path, *arguments, **named)

    return call


def _is_in_proc(path: Any) -> bool:
    if not isinstance(path, str | bytes | os.PathLike):
        return False  # a descriptor
    return f"{os.fsdecode(path)}/".startswith("/proc/")


def _missing(path: Any) -> OSError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


if __name__ == "sitecustomize":  # and not where tests look at it
    hide()
