"""Do the same for many partitions at once: most of the time each waits for a disk or a network."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

S = TypeVar("S")
T = TypeVar("T")

_THREADS: Final = 16


def in_threads(function: Callable[[S], T], items: Iterable[S]) -> list[T]:
    """Apply a function to each item; return the results in order. Of several errors, the first in order is raised."""
    items = list(items)
    if len(items) < 2:
        return [function(item) for item in items]
    with ThreadPoolExecutor(min(_THREADS, len(items)), "octavo-look") as pool:
        return list(pool.map(function, items))
