"""Compare `octavo.log` with the minimum for the same work: plain writes, plain reads, and checksums."""

from __future__ import annotations

from benchmarks.data import prepare
from benchmarks.log import appending, creating, memory, opening, reading, recovering, rolling, sets
from benchmarks.measure import Result


def run(*, repeat: int, quick: bool = False) -> list[Result]:
    """Run all parts of this benchmark; `quick` uses a tenth of the data."""
    scale = 10 if quick else 1
    prepare(sets.all_of_them(scale))
    return [
        *appending.append(repeat=repeat, scale=scale),
        *rolling.roll(repeat=repeat, scale=scale),
        *recovering.recover(repeat=repeat, scale=scale),
        *reading.read(scale=scale),
        *reading.decode(repeat=repeat, scale=scale),
        *creating.create(repeat=repeat, scale=scale),
        *opening.open_many(repeat=repeat, scale=scale),
        *memory.resident(scale=scale),
    ]
