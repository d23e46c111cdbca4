"""How time is divided among those that want some: kinds of soak, and the tests of one kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

_GOLDEN = 0.6180339887498949

T = TypeVar("T")


class Claim(NamedTuple):
    """What somebody wants of the time."""

    name: str
    least: float  # seconds, without which it is of no use
    weight: float  # its part of what is left when everybody has the least; 0 for who could do nothing with it


def divide(claims: Sequence[Claim], seconds: float) -> dict[str, float]:
    """Return the seconds of each, in the order of the claims. Whose least does not fit any more gets none."""
    granted: list[Claim] = []
    left = seconds
    for claim in claims:
        if claim.least <= left:
            granted.append(claim)
            left -= claim.least
    weights = sum(claim.weight for claim in granted)
    part = left / weights if weights else 0.0
    return {claim.name: claim.least + part * claim.weight for claim in granted}


def turned(things: Sequence[T], run: int) -> list[T]:
    """Return the same things, beginning at another one in each run.

    By the golden ratio: however many of them a run has time for, a few runs after each other reach all.
    """
    first = int(run * _GOLDEN % 1 * len(things))
    return [*things[first:], *things[:first]]
