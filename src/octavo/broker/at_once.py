"""What coordinators do at once, in the thread that serves, or in another one if that thread would pause.

What is left to the other one is done there from the beginning. What coordinators have done is undone by then: either
everything that a request changes has happened, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from octavo.broker.answers import Later, Parked, Parts, Work
from octavo.log.append.readiness import ALLOWANCE, MustWait, TakesLong, without_pause

A = TypeVar("A", bound=Parts | Parked)
_LONG_REGEX: Final = 256  # characters


def at_once_or_later(work: Callable[[], A]) -> A | Later:
    """Make an answer at once if the thread need not pause for it; otherwise another thread makes it."""
    try:
        with without_pause():
            return work()
    except TakesLong:
        return Later(work, Work.COORDINATE)


def is_done_at_once(work: Callable[[], object]) -> bool:
    """Do something if the thread need not pause for it. Return whether it was done."""
    try:
        with without_pause():
            work()
    except TakesLong:
        return False
    return True


def leave_long(regex: str | None, longest: int = _LONG_REGEX) -> None:
    """Raise `MustWait` if the thread must not pause, and a client's regular expression is long.

    RE2 takes a twentieth of a second to compile the worst of those that it does not refuse.
    """
    if regex is not None and len(regex) > longest and ALLOWANCE.left is not None:
        raise MustWait
