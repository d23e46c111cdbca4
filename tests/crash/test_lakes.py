"""An export to a Delta or Iceberg table is killed or interrupted anywhere: no row is lost, and none is there twice."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.crash.lakes import CHANGES
from tests.selection import some
from tests.soak.plugin import Soak
from tests.unit.spark.tables.lakes import FORMATS

A_FEW: Final = 3


def stop(kind: str, folder: Path, at_most: int, first: int = 0) -> dict[str, int]:
    """Stop all changes at so many lines each; return at how many it was."""
    numbers = [str(at_most), str(first)]
    command = [sys.executable, "-W", "ignore", "-m", "tests.crash.lakes", kind, *numbers, str(folder), *CHANGES]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {change: int(tried) for change, tried, _ in map(str.split, done.stdout.splitlines())}


@pytest.mark.long
@pytest.mark.parametrize("kind", some(FORMATS))
def test_a_process_that_is_stopped_leaves_each_row_once(kind: str, tmp_path: Path) -> None:
    tried = stop(kind, tmp_path, A_FEW)
    assert tried.keys() == CHANGES.keys()
    assert min(tried.values()) > 1


@pytest.mark.soak
@pytest.mark.parametrize("kind", FORMATS)
def test_a_process_that_is_stopped_at_many_lines_leaves_each_row_once(kind: str, tmp_path: Path, soak: Soak) -> None:
    for seed in soak.seeds():
        folder = tmp_path / "lake"
        folder.mkdir()
        stop(kind, folder, A_FEW, seed)
        shutil.rmtree(folder)
