"""What the README says of Spark can be pasted: run as a program, it prints what stands below it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark import sessions
from tests.unit.test_documents import blocks

pytestmark = pytest.mark.timeout(600)


def test_the_example_of_the_readme_runs_and_prints_what_it_says(tmp_path: Path) -> None:
    found = blocks("README.md")
    number, example = next((at, block) for at, block in enumerate(found) if block.kind == "python spark")
    writes = next(block for block in found if block.kind == "python")
    program = tmp_path / "example.py"
    program.write_text(writes.content + example.content)
    done = subprocess.run(
        [sys.executable, program.name],
        cwd=tmp_path,
        env=sessions.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.endswith(found[number + 1].content)
