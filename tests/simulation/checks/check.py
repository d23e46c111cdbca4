"""Somebody who sees all requests and answers, and knows what must not be: `Check`."""

from __future__ import annotations

from octavo.broker.wire.messages import Struct
from tests.simulation.wire import Ask


class Violation(AssertionError):
    """Something has happened that must not."""


class Check:
    """Sees everything in the order in which the broker does it."""

    def arrived(self, who: str, ask: Ask) -> None:
        """A request has come to the broker."""

    def answered(self, who: str, ask: Ask, answer: Struct) -> None:
        """The broker has answered a request. The client may never get the answer."""

    def died(self, handled: tuple[str, Ask] | None) -> None:
        """The broker was killed, while it was at a request or between two."""

    def started(self) -> None:
        """The broker was started again."""


def demand(is_so: bool, complaint: str) -> None:
    """Complain unless something is so."""
    if not is_so:
        raise Violation(complaint)
