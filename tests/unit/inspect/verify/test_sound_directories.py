"""Nothing is wrong with directories that brokers of Apache Kafka left, whole or in the middle of something."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from octavo.inspect.verify import Problem, looks
from octavo.inspect.verify.tasks import check, find_tasks
from tests.golden.directories import Name, unpack


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "_PAUSE_S", 0.0)


def problems(directory: Path) -> list[Problem]:
    found = []
    for task in find_tasks(directory):
        checked = check(task)
        assert checked.error is None
        found += checked.problems
    return found


@pytest.mark.parametrize("name", get_args(Name))
def test_what_a_broker_left(name: Name, tmp_path: Path) -> None:
    assert problems(unpack(name, tmp_path)) == []
