"""Callbacks that live as long as their objects."""

from __future__ import annotations

import gc

from octavo.log.ownership.fork_safe import WeakCallbacks


class Owner:
    """An object with two methods to be called."""

    def __init__(self, called: list[str]) -> None:
        self.called = called
        self.callbacks: WeakCallbacks | None = None

    def one(self) -> None:
        self.called.append("one")

    def other(self) -> None:
        self.called.append("other")


def test_methods_are_called_once_each_while_their_object_is_alive() -> None:
    called: list[str] = []
    callbacks = WeakCallbacks()
    owner, gone = Owner(called), Owner(called)
    for method in (owner.one, owner.other, owner.one, gone.one):
        callbacks.add(method)
    del method, gone
    callbacks.call()
    assert sorted(called) == ["one", "other"]
    del owner
    callbacks.call()
    assert len(called) == 2
    assert not callbacks._methods, "nothing is left of objects that are gone"


def test_objects_and_callbacks_may_go_together() -> None:
    """A complaint from there, as `weakref.WeakMethod` may have one, would be an error here."""
    owner = Owner([])
    owner.callbacks = WeakCallbacks()
    owner.callbacks.add(owner.one)
    del owner
    gc.collect()
