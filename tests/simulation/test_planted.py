"""The simulation finds bugs that are planted into copies of the package."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.selection import some
from tests.simulation.planted import PLANTED, Planted, find, plant
from tests.simulation.test_simulation import SCHEDULES


@pytest.mark.parametrize("bug", some(PLANTED, 2), ids=[bug.name for bug in PLANTED])
def test_a_planted_bug_is_found(bug: Planted, tmp_path: Path) -> None:
    plant(bug, tmp_path)
    found = find(tmp_path, SCHEDULES)
    assert found is not None, f"{bug.name}: nothing is wrong in {SCHEDULES} schedules"
    assert "replay: python -m tests.simulation --seed " in found
