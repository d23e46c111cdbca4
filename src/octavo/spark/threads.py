"""Process many partitions at the same time in threads, which mostly wait for a disk or a network."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

S = TypeVar("S")
T = TypeVar("T")

_THREADS: Final = 16


def in_threads(function: Callable[[S], T], items: Iterable[S]) -> list[T]:
    """Apply a function to each item and return the results in order. If several calls fail, raise the first error."""
    items = list(items)
    if len(items) < 2:
        return [function(item) for item in items]
    with ThreadPoolExecutor(min(_THREADS, len(items)), "octavo-look") as pool:
        return list(pool.map(function, items))
