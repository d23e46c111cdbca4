"""A process that crashes in a test says where it was, and a core that it leaves is named at the end of the run."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.cores import PATTERN

ROOT: Final = Path(__file__).parents[2]
IS_POSSIBLE: Final = (
    PATTERN.exists() and PATTERN.read_text().strip() == "core" and resource.getrlimit(resource.RLIMIT_CORE)[1] != 0
)
CRASHES: Final = """
import os, signal, subprocess, sys

def test_a_child(tmp_path):
    child = [sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"]
    done = subprocess.run(child, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert "Fatal Python error: Segmentation fault" in done.stderr

def test_itself():
    if "PYTEST_XDIST_WORKER" in os.environ:
        os.chdir(os.environ["CRASHING"])
        os.kill(os.getpid(), signal.SIGSEGV)
"""


@pytest.mark.parametrize("workers", [0, 1])
def test_a_crash_is_told(tmp_path: Path, workers: int) -> None:
    (tmp_path / "test_crashes.py").write_text(CRASHES)
    command = [sys.executable, "-m", "pytest", "-p", "tests.cores", "-p", "no:cacheprovider", "-n", str(workers)]
    command += [f"--basetemp={tmp_path / 'base'}", str(tmp_path)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    environment |= {"PYTHONPATH": str(ROOT), "CRASHING": str(tmp_path), "PYTHONFAULTHANDLER": ""}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    cores = list(tmp_path.rglob("core*"))
    for core in cores:
        core.unlink()  # which would be found at the end of this run, too
    assert bool(cores) == IS_POSSIBLE
    assert done.returncode == int(bool(workers) or IS_POSSIBLE), said
    assert ("Fatal Python error: Segmentation fault" in said) == bool(workers), said
    assert ("1 failed, 1 passed" if workers else "2 passed") in said
    assert said.count("A process has crashed, and its core is ") == len(cores)
