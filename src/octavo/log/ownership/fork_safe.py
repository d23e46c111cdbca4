"""Support for forked processes: locks that are free in the child, and callbacks that run in the child first.

A fork copies only the thread that called it. A lock that another thread held at that moment would stay locked in the
child for ever. Every call that needs the lock would hang there, even one that only finds out that it must not write.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, Final

_made: Final[weakref.WeakSet[Any]] = weakref.WeakSet()


class WeakCallbacks:
    """A set of methods to call. A method is dropped when its object is no longer alive."""

    def __init__(self) -> None:
        # Not `weakref.WeakMethod`: when Python exits it may be cleared before its object, and then prints an error.
        self._methods: Final[set[tuple[weakref.ref[Any], Callable[[Any], object]]]] = set()

    def add(self, method: Callable[[], object]) -> None:
        """Add a bound method."""
        bound: Any = method
        function, methods = bound.__func__, self._methods

        def forget(owner: weakref.ref[Any]) -> None:
            methods.discard((owner, function))

        methods.add((weakref.ref(bound.__self__, forget), function))

    def call(self) -> None:
        """Call all methods whose objects are alive."""
        for reference, function in list(self._methods):
            owner = reference()
            if owner is not None:
                function(owner)


in_child: Final = WeakCallbacks()  # called in every forked process


def make_lock() -> threading.Lock:
    """Return a `threading.Lock` that nobody holds in a forked child."""
    lock = threading.Lock()
    _made.add(lock)
    return lock


def make_rlock() -> threading.RLock:
    """Return a `threading.RLock` that nobody holds in a forked child."""
    lock = threading.RLock()
    _made.add(lock)
    return lock


def _free_all() -> None:
    for lock in list(_made):
        lock._at_fork_reinit()  # as the standard library does with its own locks


os.register_at_fork(after_in_child=_free_all)
os.register_at_fork(after_in_child=in_child.call)
