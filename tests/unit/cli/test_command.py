"""The command itself: help, exit codes, and what it does not import."""

from __future__ import annotations

import subprocess
import sys

import pytest

from octavo import __version__
from octavo.cli import main
from octavo.cli.exits import COULD_NOT_RUN, FINE
from tests.golden import files

OCTAVO = [sys.executable, "-m", "octavo.cli"]
HEAVY = {"numba", "numpy", "pyarrow", "pyspark", "rich", "asyncio"}


def modules_after(*arguments: str) -> set[str]:
    """The top-level modules and our own that are imported when the command has run."""
    code = "import sys; from octavo.cli import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == FINE
    assert capsys.readouterr().out == f"octavo {__version__}\n"


@pytest.mark.parametrize("arguments", [["--help"], ["dump", "--help"], ["demo", "--help"], ["import", "--help"]])
def test_help_is_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == FINE
    assert capsys.readouterr().out.startswith("usage: octavo")


@pytest.mark.parametrize("arguments", [[], ["dump"], ["nonsense"], ["dump", "--format", "parquet", "file"]])
def test_a_command_line_that_says_nothing_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == COULD_NOT_RUN
    told = capsys.readouterr()
    assert "usage: octavo" in told.err
    assert told.out == ""


def test_the_formats_are_named_when_another_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", "--format", "xml", "file"]) == COULD_NOT_RUN
    assert "choose from" in (told := capsys.readouterr().err)
    assert [name for name in ("table", "kafka", "jsonl", "parquet") if name not in told] == []


def test_help_imports_nothing_but_the_command() -> None:
    imported = modules_after("--help")
    assert not imported & HEAVY
    assert not [name for name in imported if name.startswith(("octavo.records", "octavo.inspect"))]


def test_a_small_dump_imports_nothing_heavy() -> None:
    imported = modules_after("dump", str(files.FOLDER / "segment.bin"))
    assert not imported & HEAVY
    needed = ("names", "storage", "at_once", "flusher", "sync", "writeback", "disk_errors")
    assert {name for name in imported if name.startswith("octavo.log.")} <= {f"octavo.log.{each}" for each in needed}


def test_the_command_runs_as_a_module_too() -> None:
    done = subprocess.run([*OCTAVO, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"octavo {__version__}\n"
