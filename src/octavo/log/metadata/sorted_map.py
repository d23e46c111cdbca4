"""An immutable map in the order of its keys: `SortedMap`. A changed copy shares with it nearly all that it has.

It keeps its items in blocks of some dozens. A copy with another item has one other block. So a change costs the same
whether there are ten topics or ten thousand, and what differs between two maps is found without looking at what they
share.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import ItemsView, Iterable, Iterator, Mapping, ValuesView
from itertools import chain, islice
from operator import itemgetter
from typing import Any, Final, TypeVar, overload

_K = TypeVar("_K")
_V = TypeVar("_V")
_D = TypeVar("_D")

_LARGEST: Final = 64  # items of a block
_ABSENT: Final = object()


class SortedMap(Mapping[_K, _V]):
    """A map that is never changed. Its keys can be compared with one another. Any thread may use it."""

    __slots__ = ("_blocks", "_firsts", "_size")

    def __init__(self, items: Iterable[tuple[_K, _V]] = ()) -> None:
        ordered = sorted(dict(items).items(), key=itemgetter(0))
        blocks = range(0, len(ordered), _LARGEST)
        self._blocks: list[dict[_K, _V]] = [dict(ordered[at : at + _LARGEST]) for at in blocks]
        self._firsts: list[Any] = [ordered[at][0] for at in blocks]  # the least key of each block
        self._size = len(ordered)

    # ------------------------------------------------------------------------------------------------------- reading

    def __getitem__(self, key: _K) -> _V:
        return self._block(key)[key]

    @overload
    def get(self, key: _K, /) -> _V | None: ...
    @overload
    def get(self, key: _K, /, default: _V | _D) -> _V | _D: ...
    def get(self, key: _K, default: Any = None) -> Any:
        """Return the value of a key, or the default."""
        return self._block(key).get(key, default)

    def __contains__(self, key: object) -> bool:
        return key in self._block(key)

    def __iter__(self) -> Iterator[_K]:
        return chain.from_iterable(self._blocks)

    def __len__(self) -> int:
        return self._size

    def values(self) -> ValuesView[_V]:
        """Return the values, in the order of their keys."""
        return _Values(self)

    def items(self) -> ItemsView[_K, _V]:
        """Return the items, in the order of their keys."""
        return _Items(self)

    def items_from(self, first: _K) -> Iterator[tuple[_K, _V]]:
        """Yield the items from a key on, whether it is there or not."""
        if not self._blocks:
            return
        at = self._place(first)
        keys: list[Any] = list(self._blocks[at])
        yield from islice(self._blocks[at].items(), bisect_left(keys, first), None)
        for later in islice(self._blocks, at + 1, None):
            yield from later.items()

    def changed_since(self, before: SortedMap[_K, _V]) -> set[_K]:
        """Return the keys that only one of two maps has, and those of which they have other objects."""
        if before is self:
            return set()
        mine, others = (dict(zip(map(id, each._blocks), each._blocks, strict=True)) for each in (self, before))
        # A key that is in a block of which only one map knows is in no block that both have.
        here: dict[_K, _V] = {}
        there: dict[_K, _V] = {}
        for number in mine.keys() - others.keys():
            here |= mine[number]
        for number in others.keys() - mine.keys():
            there |= others[number]
        return {key for key, value in here.items() if there.get(key, _ABSENT) is not value} | there.keys() - here.keys()

    def _place(self, key: Any) -> int:
        """Return the number of the block that has a key, or would have it. There is a block."""
        return max(0, bisect_right(self._firsts, key) - 1)

    def _block(self, key: Any) -> dict[_K, _V]:
        return self._blocks[self._place(key)] if self._blocks else {}

    def __repr__(self) -> str:
        return f"SortedMap({dict(self.items())!r})"

    # ---------------------------------------------------------------------------------------------------- other maps

    def with_item(self, key: _K, value: _V) -> SortedMap[_K, _V]:
        """Return a map that has this item, too, and no other with its key."""
        if not self._blocks:
            return SortedMap([(key, value)])
        at = self._place(key)
        old = self._blocks[at]
        if key in old:
            return self._replaced(at, [old | {key: value}], 0)
        keys: list[Any] = list(old)
        keys.insert(bisect_left(keys, key), key)
        new = old | {key: value}
        middle = len(keys) // 2
        parts = (keys,) if len(keys) <= _LARGEST else (keys[:middle], keys[middle:])
        return self._replaced(at, [dict(zip(part, map(new.__getitem__, part), strict=True)) for part in parts], 1)

    def without(self, key: _K) -> SortedMap[_K, _V]:
        """Return a map without this key, whether it is there or not."""
        if key not in self:
            return self
        at = self._place(key)
        left = self._blocks[at].copy()
        del left[key]
        return self._replaced(at, [left] if left else [], -1)

    def _replaced(self, at: int, blocks: list[dict[_K, _V]], growth: int) -> SortedMap[_K, _V]:
        changed: SortedMap[_K, _V] = SortedMap()
        changed._blocks = [*self._blocks[:at], *blocks, *self._blocks[at + 1 :]]
        changed._firsts = [*self._firsts[:at], *(next(iter(each)) for each in blocks), *self._firsts[at + 1 :]]
        changed._size = self._size + growth
        return changed


class _Values(ValuesView[_V]):
    """The values of a map: without looking each of them up."""

    _mapping: SortedMap[Any, _V]

    def __iter__(self) -> Iterator[_V]:
        return chain.from_iterable(block.values() for block in self._mapping._blocks)


class _Items(ItemsView[_K, _V]):
    """The items of a map: without looking each of them up."""

    _mapping: SortedMap[_K, _V]

    def __iter__(self) -> Iterator[tuple[_K, _V]]:
        return chain.from_iterable(block.items() for block in self._mapping._blocks)
