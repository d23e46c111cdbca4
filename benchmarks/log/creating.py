"""Measure creating topics, and writing the checkpoints of their partitions."""

from __future__ import annotations

from statistics import median
from time import perf_counter
from typing import Final

from benchmarks.log import sets
from benchmarks.measure import Result, tell, within
from octavo.log import DataDirectory

_LIMITS_S: Final = {50: 0.1, 1_000: 1.0}  # for topics of so many partitions
_CHECKPOINTS_MS: Final = 10.0


def create(*, repeat: int, scale: int) -> list[Result]:
    """Measure topics of 50 and of 1,000 partitions, each created by one call, and then their checkpoints."""
    creation: dict[int, list[float]] = {count: [] for count in _LIMITS_S}
    checkpoints: list[float] = []
    tell("create topics")
    with sets.scratch() as folder:
        for turn in range(repeat):
            with DataDirectory.open(folder / str(turn)) as directory:
                for count, times in creation.items():
                    begin = perf_counter()
                    directory.create_topic(f"of-{count}", max(count // scale, 1))
                    times.append(perf_counter() - begin)
                begin = perf_counter()
                directory.write_checkpoints()
                checkpoints.append(perf_counter() - begin)
                for topic in list(directory.topics):
                    directory.delete_topic(topic)
    names = {count: f"create a topic of {max(count // scale, 1):,} partitions" for count in creation}
    return [
        *(within(names[count], median(times), _LIMITS_S[count] / scale, "s") for count, times in creation.items()),
        within("write the checkpoints of all of them", 1e3 * median(checkpoints), _CHECKPOINTS_MS, "ms"),
    ]
