"""What a forked process needs: locks that are free there, and callbacks that run there first.

A fork copies the thread that called it and no other. A lock that another thread held at that moment would stay locked
in the child for ever, and with it everything that needs the lock to find out that it must not write there.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, Final

_made: Final[weakref.WeakSet[Any]] = weakref.WeakSet()


class WeakCallbacks:
    """Methods to be called, each for as long as its object is alive."""

    def __init__(self) -> None:
        self._methods: Final[set[weakref.WeakMethod[Callable[[], object]]]] = set()

    def add(self, method: Callable[[], object]) -> None:
        """Have a bound method called from now on."""
        self._methods.add(weakref.WeakMethod(method, self._methods.discard))

    def call(self) -> None:
        """Call them all."""
        for reference in list(self._methods):
            method = reference()
            if method is not None:
                method()


in_child: Final = WeakCallbacks()  # called in every forked process


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
os.register_at_fork(after_in_child=in_child.call)
