"""Forks at random moments beside threads that write: the parent loses nothing, whatever its children do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from octavo.log import DataDirectory
from tests.crash.forking import KEYS
from tests.soak.plugin import Soak
from tests.unit.log.logs import keys


def run(folder: Path, seed: int, forks: int, end: str) -> dict[str, int]:
    """Let it write and fork; how many records it was told are in the logs."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.crash.forking", str(folder), str(seed), str(forks), end]
    # Without Numba, whose locks a child cannot free.
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=False, env=os.environ | {"OCTAVO_KERNELS": "interpreted"}
    )
    said = done.stdout.splitlines()
    assert not [line for line in said if line.startswith("a child")]
    assert (said[-1] == "closed") == (end == "close")
    return {line.split()[0]: int(line.split()[1]) for line in said if line != "closed"}


def check(folder: Path, seed: int, forks: int, end: str) -> None:
    told = run(folder, seed, forks, end)
    with DataDirectory.open(folder) as data:
        assert all(report.was_clean == (end == "close") for report in data.reports)
        assert not [cut for report in data.reports for cut in report.cuts]
        for topic in ("appended", "produced"):
            found = keys(data.log(topic, 0))
            assert found == list(range(len(found)))
            assert len(found) >= told.get(topic, 0)
        last = {record.key: record.timestamp_ms for record in data.log("compacted", 0).reader().records()}
        for number in range(max(0, told["appended"] - KEYS), told["appended"]):
            assert last[b"%d" % (number % KEYS)] >= number
    with DataDirectory.open(folder) as data:
        assert all(report.was_clean and report.is_unremarkable for report in data.reports)


@pytest.mark.parametrize("end", ["close", "kill"])
def test_children_do_not_harm_what_their_parent_writes(tmp_path: Path, end: str) -> None:
    check(tmp_path, 1, 30, end)


@pytest.mark.soak
def test_many_children_do_not_harm_what_their_parent_writes(tmp_path: Path, soak: Soak) -> None:
    for seed in soak.seeds():
        check(tmp_path / str(seed), seed, 100, "kill" if seed % 2 else "close")
        shutil.rmtree(tmp_path / str(seed))
