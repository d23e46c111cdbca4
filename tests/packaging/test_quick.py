"""`make quick` runs the unit tests of what was changed, and a run says how far it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.environment import ROOT
from tests.quick import targets_of
from tests.seconds import LIST, expected, folder_of


@pytest.mark.parametrize(
    ("changed", "targets"),
    [
        (["src/octavo/log/append/validator.py"], ["tests/unit/log/append"]),
        (["src/octavo/log/append/validator.py", "src/octavo/log/log.py"], ["tests/unit/log"]),
        (["src/octavo/errors.py", "src/octavo/cli/main.py"], ["tests/unit/cli", "tests/unit/test_errors.py"]),
        (["tests/unit/cli/test_dump_forms.py"], ["tests/unit/cli/test_dump_forms.py"]),
        (["tests/unit/cli/test_that_is_gone.py", "README.md", "docs/log.md", "tests/kafka/judge.py"], []),
    ],
)
def test_a_change_calls_for_the_tests_of_its_folder(changed: list[str], targets: list[str]) -> None:
    assert targets_of(changed, ROOT) == targets


def test_a_run_says_how_far_it_is_and_prints_failures_when_they_happen(tmp_path: Path) -> None:
    tests = "def test_good():\n    pass\n\n\ndef test_bad():\n    assert [] == [5]\n\n\ndef test_last():\n    pass\n"
    (tmp_path / "test_some.py").write_text(tests)
    plugins = ["-p", "tests.progress", "-p", "no:cacheprovider"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, "--rootdir", tmp_path, tmp_path / "test_some.py"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "OCTAVO_SECONDS": str(tmp_path / "seconds.json")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1, run.stderr
    assert "0 of 3 tests" in run.stderr
    assert run.stderr.count(">       assert [] == [5]") == 1
    assert ">       assert [] == [5]" not in run.stdout
    assert "1 failed, 2 passed" in run.stdout
    assert (tmp_path / "seconds.json").read_text().count("test_some.py::") == 3


def test_the_list_of_slow_tests_names_tests_that_there_are() -> None:
    """A file that was moved or removed would leave its tests in no order."""
    assert {ROOT / name.partition("::")[0] for name in expected()} <= set(ROOT.glob("tests/**/test_*.py")), LIST


def test_a_test_is_counted_under_its_folder() -> None:
    assert folder_of("tests/kafka/log/test_reads.py::test_by_any_time[3]") == "tests/kafka"
    assert folder_of("tests/unit/log/files/test_absurd_files.py::test_x") == "tests/unit/log"
    assert folder_of("tests/unit/test_errors.py::test_x") == "tests/unit"
