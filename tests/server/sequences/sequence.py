"""The table of all sequences: `sequence` adds one to `SEQUENCES`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from tests.server.sequences.script import Script


class Sequence(NamedTuple):
    """One sequence, and the topics with their partitions that have to exist."""

    name: str
    run: Callable[[Script], None]
    topics: Mapping[str, int]
    restart_at: int | None  # the only request before which the broker may be restarted, as time-outs pass; None: any


SEQUENCES: Final[list[Sequence]] = []


def sequence(
    *, restart_at: int | None = None, **topics: int
) -> Callable[[Callable[[Script], None]], Callable[[Script], None]]:
    """Add a function to the table."""

    def add(run: Callable[[Script], None]) -> Callable[[Script], None]:
        name = run.__name__
        assert name not in {each.name for each in SEQUENCES}, name
        SEQUENCES.append(Sequence(name, run, topics or {"t": 2}, restart_at))
        return run

    return add
