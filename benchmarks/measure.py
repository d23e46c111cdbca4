"""Measure contenders in turns, so that other load on the machine slows all of them alike.

A contender processes some amount (records, bytes) in one pass and returns how long that took. Speeds are medians.
Python contenders run with the garbage collector off, as in `timeit`. That helps those most that create the most
objects.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any, Final

DEFAULT_REPEAT: Final = 7


@dataclass(frozen=True, slots=True)
class Contender:
    """One of the implementations that are compared."""

    name: str
    amount: float  # number of records or bytes that one pass processes
    run: Callable[[], float]  # runs one pass; returns the seconds that it took


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of a measurement. A larger ratio is always better. Without a target, it is not judged."""

    name: str
    ratio: float
    ours: float
    peer: float
    unit: str  # unit of `ours` and `peer`
    target: float | None = None
    best_ratio: float | None = None  # ratio of the best passes, not the medians; on a noisy machine the two differ

    @property
    def ok(self) -> bool | None:
        return None if self.target is None else self.ratio >= self.target

    def as_json(self) -> dict[str, Any]:
        """Return the result as a dictionary for the JSON report."""
        fields = {
            "name": self.name,
            "ratio": _rounded(self.ratio),
            "target": self.target,
            "ok": self.ok,
            "ours": _rounded(self.ours),
            "peer": _rounded(self.peer),
            "unit": self.unit,
        }
        if self.best_ratio is not None:
            fields["best_ratio"] = _rounded(self.best_ratio)
        return fields


@dataclass(frozen=True, slots=True)
class Peer:
    """A contender to compare with, and the ratio that we want to reach."""

    contender: Contender
    target: float | None = None


def timed(function: Callable[[], object]) -> Callable[[], float]:
    """Return a function that measures one pass of a Python function, in wall-clock time."""

    def run() -> float:
        gc.collect()
        gc.disable()
        try:
            begin = perf_counter()
            result = function()
            taken = perf_counter() - begin
        finally:
            gc.enable()
        del result  # freeing the memory of the result is not measured
        return taken

    return run


def compare(name: str, ours: Contender, peers: Sequence[Peer], *, unit: str, repeat: int) -> list[Result]:
    """Compare our contender with each peer, in `repeat` rounds after a warm-up round."""
    tell(name)
    mine: list[float] = []
    theirs: list[list[float]] = [[] for _ in peers]
    for turn in range(repeat + 1):
        for peer, times in zip(peers, theirs, strict=True):
            for contender, kept in ((peer.contender, times), (ours, mine)):
                taken = contender.run()
                if turn:
                    kept.append(taken)
    results = []
    for peer, times in zip(peers, theirs, strict=True):
        other = peer.contender
        speed, other_speed = ours.amount / median(mine), other.amount / median(times)
        best, other_best = ours.amount / min(mine), other.amount / min(times)
        results.append(
            Result(
                name=f"{name} vs {other.name}",
                ratio=speed / other_speed,
                best_ratio=best / other_best,
                ours=speed,
                peer=other_speed,
                unit=unit,
                target=peer.target,
            )
        )
    return results


def within(name: str, used: float, limit: float, unit: str) -> Result:
    """Make a result for a quantity, such as memory, that may be at most `limit`."""
    return Result(name=name, ratio=limit / max(used, 1e-9), ours=used, peer=limit, unit=unit, target=1.0)


def tell(what: str) -> None:
    """Print a line of progress to standard error."""
    print(f"  {what}", file=sys.stderr, flush=True)


def _rounded(number: float) -> float:
    return float(f"{number:.4g}")
