"""A map that is never changed is what a dict would be, in the order of its keys."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from octavo.log.metadata.sorted_map import SortedMap

KEYS = st.integers(0, 300)


@given(st.dictionaries(KEYS, st.text(), max_size=300), st.lists(st.tuples(KEYS, st.none() | st.text()), max_size=200))
def test_changed_copies_have_what_a_dict_would_have(
    first: dict[int, str], changes: list[tuple[int, str | None]]
) -> None:
    model, map_ = dict(first), SortedMap(first.items())
    before, known = map_, dict(model)
    for key, value in changes:
        if value is None:
            model.pop(key, None)
            map_ = map_.without(key)
        else:
            model[key] = value
            map_ = map_.with_item(key, value)
    assert list(map_.items()) == sorted(model.items())
    assert list(map_) == sorted(model)
    assert list(map_.values()) == [value for _, value in sorted(model.items())]
    assert len(map_) == len(model)
    assert before == known
    assert map_ == model
    missing = object()
    assert map_.changed_since(before) == {
        key for key in model.keys() | known.keys() if model.get(key, missing) is not known.get(key, missing)
    }
    for key in (-1, 0, 150, 301):
        assert map_.get(key) == model.get(key)
        assert (key in map_) is (key in model)
        assert list(map_.items_from(key)) == [item for item in sorted(model.items()) if item[0] >= key]


def test_nothing_is_in_an_empty_map() -> None:
    empty: SortedMap[str, int] = SortedMap()
    assert empty.without("a") is empty
    assert empty.get("a", 7) == 7
    assert "a" not in empty
    assert list(empty.items_from("")) == []
    assert repr(empty.with_item("a", 1)) == "SortedMap({'a': 1})"
