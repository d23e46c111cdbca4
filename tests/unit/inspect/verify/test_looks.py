"""Damage is told from the unfinished work of a running broker by looking again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from octavo.inspect.verify import looks
from octavo.inspect.verify.folder import Folder, Gone
from octavo.inspect.verify.looks import Look, certain
from octavo.inspect.verify.problem import Problem, Rule

WRONG = Rule("wrong", "segment", "it is wrong", "make it right")
ODD = Rule("odd", "segment", "it is odd", "make it even")
NAME = "00000000000000000000.log"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "_PAUSE_S", 0.0)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / NAME
    path.write_bytes(b"data")
    return path


def looker(
    folder: Path, *finds: list[Problem], change: Callable[[int], object] = lambda number: None
) -> tuple[list[int], Callable[[int], Look]]:
    """Return the list of calls of a look, and that look. It finds one of `finds` after the other, the last for ever."""
    calls: list[int] = []

    def look(number: int) -> Look:
        calls.append(number)
        listing = Folder(folder)
        change(number)
        return Look(listing, finds[min(number, len(finds) - 1)])

    return calls, look


def test_what_is_found_in_files_that_do_not_change_is_certain_at_once(tmp_path: Path, file: Path) -> None:
    problem = WRONG.broken(NAME, position=3)
    calls, look = looker(tmp_path, [problem])
    assert certain(look, ()) == [problem]
    assert calls == [0]


def test_nothing_is_looked_at_twice_if_nothing_seems_wrong(tmp_path: Path, file: Path) -> None:
    calls, look = looker(tmp_path, [], change=lambda number: file.write_bytes(b"more data"))
    assert certain(look, ()) == []
    assert calls == [0]


def test_what_a_second_look_does_not_find_is_no_problem(tmp_path: Path, file: Path) -> None:
    stays, goes = WRONG.broken(NAME, position=3), WRONG.broken(NAME, position=4)
    calls, look = looker(tmp_path, [goes, stays], [stays], change=lambda number: file.write_bytes(bytes(9 - number)))
    assert certain(look, ()) == [stays]
    assert len(calls) > 2


def test_a_change_of_another_file_of_the_segment_makes_one_look_again(tmp_path: Path, file: Path) -> None:
    index = file.with_suffix(".index")
    index.touch()
    calls, look = looker(tmp_path, [WRONG.broken(NAME)], [], change=lambda number: index.write_bytes(b"new"))
    assert certain(look, ()) == []
    assert calls == [0, 1]


def test_a_change_of_another_segment_does_not(tmp_path: Path, file: Path) -> None:
    other = tmp_path / "00000000000000000007.log"
    calls, look = looker(tmp_path, [WRONG.broken(NAME)], [], change=lambda number: other.write_bytes(b"new"))
    assert certain(look, ()) == [WRONG.broken(NAME)]
    assert calls == [0]


def test_a_file_that_is_gone_makes_one_look_again(tmp_path: Path, file: Path) -> None:
    def gone(number: int) -> None:
        if number == 0:
            raise Gone(NAME)

    calls, look = looker(tmp_path, [WRONG.broken(NAME)], change=gone)
    assert certain(look, ()) == [WRONG.broken(NAME)]
    assert calls == [0, 1]


def test_rules_can_be_switched_off(tmp_path: Path, file: Path) -> None:
    _, look = looker(tmp_path, [WRONG.broken(NAME), ODD.broken(NAME)])
    assert certain(look, {"wrong"}) == [ODD.broken(NAME)]


def test_what_changed_between_two_listings_is_looked_at_again(tmp_path: Path, file: Path) -> None:
    finds = [[WRONG.broken(NAME)], []]

    def look(number: int) -> Look:
        listing = Folder(tmp_path)
        file.write_bytes(b"other data")
        listing.list_again()
        return Look(listing, finds[number])

    assert certain(look, ()) == []
