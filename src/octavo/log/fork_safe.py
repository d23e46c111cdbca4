"""Locks that are free in a forked process.

A fork copies the thread that called it and no other. A lock that another thread held at that moment would stay locked
in the child for ever, and with it everything that needs the lock to find out that it must not write there.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any, Final

_made: Final[weakref.WeakSet[Any]] = weakref.WeakSet()


def make_lock() -> threading.Lock:
    """A `threading.Lock` that nobody holds in a forked child."""
    lock = threading.Lock()
    _made.add(lock)
    return lock


def make_rlock() -> threading.RLock:
    """A `threading.RLock` that nobody holds in a forked child."""
    lock = threading.RLock()
    _made.add(lock)
    return lock


def _free_all() -> None:
    for lock in list(_made):
        lock._at_fork_reinit()  # as the standard library does with its own


os.register_at_fork(after_in_child=_free_all)
