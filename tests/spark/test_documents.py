"""What the README and the pages on Spark and tables say can be pasted: it prints what stands below it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.spark import sessions
from tests.unit.test_documents import blocks, run

pytestmark = pytest.mark.timeout(600)


@pytest.mark.exhaustive
def test_the_examples_run_from_a_file_and_print_what_they_say(
    java: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment is not activated: the `python3` of the PATH is one that does not have Octavo."""
    monkeypatch.chdir(tmp_path)
    run("README.md", next(block for block in blocks("README.md") if block.kind == "python"), {})
    program, expected = "", ""
    for page in ("README.md", "docs/spark.md", "docs/tables.md"):
        for example, told in pairwise(blocks(page)):
            if example.kind == "python spark":
                program += example.content
                expected += told.content
    (tmp_path / "orders.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "orders.py"],
        cwd=tmp_path,
        env=environment(java, tmp_path / "bin"),
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert lines(done.stdout) == lines(expected)


def lines(text: str) -> list[str]:
    """All lines but empty ones: Spark prints one after each table."""
    return [line for line in text.splitlines() if line]


def environment(java: str, folder: Path) -> dict[str, str]:
    """What a shell has in which no environment is active, and where Spark is to be small."""
    folder.mkdir()
    python = folder / "python3"
    python.write_text(f'#!/bin/sh\nexec env -u PYTHONPATH {shlex.quote(str(bare_python()))} -S "$@"\n')
    python.chmod(0o755)
    settings = shlex.join(f"--conf={name}={value}" for name, value in sessions.settings().items())
    taken = ("PYSPARK_", "VIRTUAL_ENV", "SPARK_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(taken)}
    return {
        **kept,
        "PATH": f"{folder}:{Path(java).parent}:/usr/bin:/bin",
        "PYSPARK_SUBMIT_ARGS": f"{settings} pyspark-shell",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "TZ": "UTC",
    }


def bare_python() -> Path:
    """The Python that the environment of these tests was made with."""
    return Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
