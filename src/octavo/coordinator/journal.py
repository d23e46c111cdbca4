"""State whose changes can be undone: `Journal`, `Tracked` and `Table`.

A coordinator changes its state first and writes records then. If the log refuses the records, what was changed since is
undone, newest first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

_K = TypeVar("_K")
_V = TypeVar("_V")

_ABSENT: Final = object()


class Journal:
    """The changes that can still be undone, numbered in their order."""

    def __init__(self) -> None:
        self._changes: Final[deque[tuple[dict[Any, Any], Any, Any]]] = deque()
        self._first = 0  # the number of the first change that is kept

    def mark(self) -> int:
        """Return the number of the next change."""
        return self._first + len(self._changes)

    def note(self, changed: dict[Any, Any], key: Any) -> None:
        """Note what a dictionary has for a key, before that changes."""
        self._changes.append((changed, key, changed.get(key, _ABSENT)))

    def note_all(self, changed: dict[Any, Any], keys: Iterable[Any]) -> None:
        """Note what a dictionary has for several keys, before that changes."""
        get = changed.get
        self._changes.extend([(changed, key, get(key, _ABSENT)) for key in keys])

    def undo(self, mark: int) -> None:
        """Undo all changes since a mark."""
        while self._changes and self.mark() > mark:
            changed, key, before = self._changes.pop()
            if before is _ABSENT:
                dict.pop(changed, key, None)
            else:
                dict.__setitem__(changed, key, before)

    def keep(self, mark: int) -> None:
        """Keep all changes before a mark for good."""
        if mark == self.mark():  # nearly always
            self._changes.clear()
            self._first = mark
            return
        while self._first < mark and self._changes:
            self._changes.popleft()
            self._first += 1


class Tracked:
    """An object whose attributes are tracked by a journal. What they refer to should not be changed in place."""

    def __init__(self, journal: Journal) -> None:
        self.__dict__["_journal"] = journal

    def __setattr__(self, name: str, value: Any) -> None:
        attributes = self.__dict__
        attributes["_journal"].note(attributes, name)
        attributes[name] = value

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{name} stays")


class Table(dict[_K, _V]):
    """A dictionary whose changes are tracked by a journal.

    Undoing a removal puts the entry at the end, so nothing may depend on the order of entries.
    """

    def __init__(self, journal: Journal) -> None:
        super().__init__()
        self._journal: Final = journal

    def __setitem__(self, key: _K, value: _V) -> None:
        self._journal.note(self, key)
        super().__setitem__(key, value)

    def __delitem__(self, key: _K) -> None:
        if key not in self:
            raise KeyError(key)
        self._journal.note(self, key)
        super().__delitem__(key)

    def pop(self, key: _K, *default: Any) -> Any:
        """Remove a key and return its value, as `dict.pop` does."""
        self._journal.note(self, key)
        return super().pop(key, *default)

    def put_all(self, items: Mapping[_K, _V]) -> None:
        """Set several keys."""
        self._journal.note_all(self, items)
        super().update(items)

    def clear(self) -> None:
        """Remove everything."""
        for key in list(self):
            del self[key]

    def get_or_add(self, key: _K, make: Callable[[], _V]) -> _V:
        """Return the value of a key, which is made if it is missing."""
        if key not in self:
            self[key] = make()
        return self[key]

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise TypeError("a table is changed by its own methods")

    update = setdefault = popitem = __ior__ = _refuse  # these are not tracked
