"""What one pass of a benchmark took, and how both brokers take turns: `Pass`, `take_turns`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from benchmarks.broker.served import Pair, Served


class Pass(NamedTuple):
    """What one pass took."""

    seconds: float
    cpu_seconds: float  # of the broker

    def __add__(self, other: object) -> Pass:
        assert isinstance(other, Pass)
        return Pass(self.seconds + other.seconds, self.cpu_seconds + other.cpu_seconds)


def take_turns(pair: Pair, run: Callable[[Served], Pass], repeat: int) -> tuple[list[Pass], ...]:
    """Return the passes of each broker. A first round does not count."""
    passes: dict[Served, list[Pass]] = {each: [] for each in pair}
    for turn in range(repeat + 1):
        for broker in pair:
            taken = run(broker)
            if turn:
                passes[broker].append(taken)
    return tuple(passes[each] for each in pair)
