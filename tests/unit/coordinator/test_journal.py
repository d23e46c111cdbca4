"""Changes of state, and undoing them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.coordinator.journal import Journal, Table, Tracked


class Group(Tracked):
    def __init__(self, journal: Journal) -> None:
        super().__init__(journal)
        self.epoch = 0
        self.members: Table[str, int] = Table(journal)


def test_attributes_and_tables_are_undone() -> None:
    journal = Journal()
    groups: Table[str, Group] = Table(journal)
    group = groups.get_or_add("a", lambda: Group(journal))
    group.members["x"] = 1
    journal.keep(journal.mark())
    mark = journal.mark()
    group.epoch = 5
    group.members["x"] = 2
    group.members["y"] = 3
    del group.members["x"]
    assert groups.pop("a") is group
    groups["b"] = group
    journal.undo(mark)
    assert groups == {"a": group}
    assert group.members == {"x": 1}
    assert group.epoch == 0


def test_several_keys_that_are_set_at_once_are_undone() -> None:
    journal = Journal()
    table: Table[str, int] = Table(journal)
    table["a"] = 1
    mark = journal.mark()
    table.put_all({"a": 2, "b": 3})
    assert table == {"a": 2, "b": 3}
    assert journal.mark() == mark + 2
    journal.undo(mark)
    assert table == {"a": 1}


def test_what_is_kept_stays() -> None:
    journal = Journal()
    group = Group(journal)
    group.epoch = 1
    first = journal.mark()
    group.epoch = 2
    second = journal.mark()
    group.epoch = 3
    journal.keep(first)
    journal.undo(second)
    assert group.epoch == 2
    journal.undo(first)
    assert group.epoch == 1
    journal.undo(0)  # which is long ago
    assert group.epoch == 1


def test_tables_refuse_changes_that_are_not_tracked() -> None:
    table: Table[str, int] = Table(Journal())
    with pytest.raises(TypeError):
        table.update({"a": 1})
    with pytest.raises(TypeError):
        table.setdefault("a", 1)
    with pytest.raises(KeyError):
        del table["a"]
    with pytest.raises(KeyError):
        table.pop("a")
    assert table.pop("a", 7) == 7


_CHANGES = st.lists(
    st.tuples(st.sampled_from(["set", "delete", "pop", "clear"]), st.integers(0, 4), st.integers(0, 9)), max_size=20
)


@given(before=_CHANGES, after=_CHANGES)
def test_any_changes_are_undone(before: list[tuple[str, int, int]], after: list[tuple[str, int, int]]) -> None:
    journal = Journal()
    table: Table[int, Any] = Table(journal)
    _change(table, before)
    expected, mark = dict(table), journal.mark()
    _change(table, after)
    journal.undo(mark)
    assert table == expected
    journal.undo(0)
    assert table == {}


def _change(table: Table[int, Any], changes: list[tuple[str, int, int]]) -> None:
    for what, key, value in changes:
        if what == "set":
            table[key] = value
        elif what == "delete" and key in table:
            del table[key]
        elif what == "pop":
            table.pop(key, None)
        elif what == "clear":
            table.clear()
