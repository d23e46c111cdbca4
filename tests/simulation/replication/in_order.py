"""A set whose order is that in which things came: `InOrder`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSet
from typing import Final, TypeVar

T = TypeVar("T")


class InOrder(MutableSet[T]):
    """A set. `pop` takes what came first."""

    def __init__(self) -> None:
        self._all: Final[dict[T, None]] = {}

    def __contains__(self, value: object) -> bool:
        return value in self._all

    def __iter__(self) -> Iterator[T]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def add(self, value: T) -> None:
        """Have something in it."""
        self._all.setdefault(value)

    def discard(self, value: T) -> None:
        """Have something not in it."""
        self._all.pop(value, None)

    def update(self, values: Iterable[T]) -> None:
        """Have many in it."""
        for value in values:
            self.add(value)
