"""What each kind of soak gets of the time, and in which order they have their turns."""

from __future__ import annotations

import ast

import pytest

from tests.soak.kinds import KINDS, ROOT
from tests.soak.sharing import Claim, divide, turned


def test_everybody_gets_the_least_and_a_part_of_the_rest() -> None:
    claims = [Claim("a", 10, 1), Claim("b", 20, 3), Claim("c", 30, 0)]
    assert divide(claims, 100) == {"a": 20, "b": 50, "c": 30}


def test_whose_least_does_not_fit_gets_nothing() -> None:
    claims = [Claim("a", 50, 1), Claim("b", 60, 1), Claim("c", 40, 1)]
    assert divide(claims, 100) == {"a": 55, "c": 45}
    assert divide(claims, 0) == {}


@pytest.mark.parametrize(("count", "taken"), [(12, 3), (439, 20), (7, 1)])
def test_a_few_runs_after_each_other_have_every_turn(count: int, taken: int) -> None:
    things = range(count)
    for first in (0, 687, 20_000):
        runs = range(first, first + 3 * count // taken)
        assert {each for run in runs for each in turned(things, run)[:taken]} == set(things)


def has_soak(source: str) -> bool:
    """Whether there is the mark in a source."""
    if "mark.soak" not in source:
        return False
    return any(isinstance(node, ast.Attribute) and node.attr == "soak" for node in ast.walk(ast.parse(source)))


def test_every_file_with_a_soak_belongs_to_one_kind() -> None:
    paths = [path for kinds in KINDS.values() for kind in kinds if kind.mark == "soak" for path in kind.tests]
    assert [path for path in paths if not (ROOT / path).exists()] == []
    for file in (ROOT / "tests").rglob("test_*.py"):
        name = str(file.relative_to(ROOT))
        if has_soak(file.read_text()):
            assert len([path for path in paths if name == path or name.startswith(f"{path}/")]) == 1, name
