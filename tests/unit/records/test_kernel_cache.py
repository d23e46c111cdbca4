"""Where compiled kernels are kept, and where they never are: what lies there is executed."""

from __future__ import annotations

import logging
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import octavo
from octavo.records.kernels import cache
from tests.permissions import run_obeying_permissions

SCRIPT = """
from octavo.records import BatchBuilder, to_arrow
builder = BatchBuilder()
builder.append(b"k", b"v", timestamp_ms=0)
print(sum(chunk.num_rows for chunk in to_arrow(builder.build())))
"""
WHERE = "from octavo.records.kernels.cache import cache_folder; print(cache_folder())"


def python(script: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Runs it as an ordinary user, with these variables."""
    return run_obeying_permissions([sys.executable, "-c", script], {**os.environ, **settings})


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that another process has left."""
    folder = tmp_path_factory.mktemp("compiled")
    told = python(SCRIPT, OCTAVO_KERNELS="compiled", OCTAVO_CACHE_DIR=str(folder))
    assert (told.stdout, told.stderr) == ("1\n", "")
    return folder


@pytest.fixture(autouse=True)
def temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where temporary folders are made; once a process, which is now once a test."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield folder
    cache._temporary.cache_clear()
    cache._copied.cache_clear()


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What OCTAVO_CACHE_DIR says."""
    folder = tmp_path / "given"
    monkeypatch.setenv("OCTAVO_CACHE_DIR", str(folder))
    return folder


def test_compiled_kernels_are_loaded_by_the_next_process(compiled: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in compiled.rglob("*.nbc")}
    assert before
    told = python(SCRIPT, OCTAVO_KERNELS="compiled", OCTAVO_CACHE_DIR=str(compiled))
    assert (told.stdout, told.stderr) == ("1\n", "")
    assert {path: path.stat().st_mtime_ns for path in compiled.rglob("*.nbc")} == before


def test_the_folder_changes_with_any_source_of_a_kernel(tmp_path: Path, given: Path) -> None:
    copied = tmp_path / "octavo"
    shutil.copytree(Path(octavo.__file__).parent, copied, ignore=shutil.ignore_patterns("__pycache__"))
    names = {python(WHERE, PYTHONPATH=str(tmp_path)).stdout}
    for changed in ("kernels/varint.py", "layout.py"):  # what kernels call, and what they take constants from
        path = copied / "records" / changed
        path.write_text(path.read_text() + "\n# changed\n")
        names.add(python(WHERE, PYTHONPATH=str(tmp_path)).stdout)
    assert len(names) == 3


def test_folders_that_are_made_are_closed_whatever_the_umask(given: Path) -> None:
    before = os.umask(0)
    try:
        folder = cache.cache_folder()
    finally:
        os.umask(before)
    assert folder.parent == given
    assert {each.stat().st_mode & 0o777 for each in (folder, given)} == {0o700}


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o707, 0o720, 0o1777])
def test_a_folder_that_others_can_write_to_is_not_used(given: Path, mode: int) -> None:
    folder = cache.cache_folder()
    assert folder.parent == given
    folder.chmod(mode)
    assert cache.cache_folder() != folder


def test_a_folder_that_others_can_only_read_is_used(given: Path) -> None:
    folder = cache.cache_folder()
    folder.chmod(0o755)
    assert cache.cache_folder() == folder


def test_a_folder_in_which_others_can_write_to_a_file_or_folder_is_not_used(given: Path) -> None:
    folder = cache.cache_folder()
    folder.chmod(0o755)
    inner = folder / "kernels_0"
    inner.mkdir(mode=0o755)
    file = inner / "scan.nbi"
    file.touch()
    for each, mode in ((inner, 0o755), (file, 0o644)):
        each.chmod(mode | 0o022)
        assert cache.cache_folder() != folder
        folder.chmod(0o700)
        assert cache.cache_folder() == folder, "nobody else gets in"
        folder.chmod(0o755)
        each.chmod(mode)
    assert cache.cache_folder() == folder


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o757])
def test_a_folder_that_others_could_replace_is_not_used(tmp_path: Path, given: Path, mode: int) -> None:
    folder = cache.cache_folder()
    tmp_path.chmod(mode)
    assert cache.cache_folder() != folder
    shutil.rmtree(given)
    assert not cache.cache_folder().is_relative_to(tmp_path)
    assert not given.exists(), "nothing is made in such a place"
    tmp_path.chmod(0o1777)  # as the temporary files have it: nobody removes what is not theirs
    assert cache.cache_folder() == folder


def test_a_folder_of_somebody_else_is_not_used(given: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = cache.cache_folder()
    lstat = Path.lstat
    for theirs, is_used in ((folder, False), (given, False), (given.parent, False), (given / "other", True)):

        def lstat_of(path: Path, theirs: Path = theirs) -> os.stat_result:
            status = lstat(path)
            return os.stat_result((*status[:4], os.geteuid() + 1, *status[5:])) if path == theirs else status

        monkeypatch.setattr(Path, "lstat", lstat_of)
        assert (cache.cache_folder() == folder) == is_used


def test_a_link_leads_to_where_it_leads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    safe, unsafe = tmp_path / "safe", tmp_path / "unsafe"
    safe.mkdir(mode=0o700)
    unsafe.mkdir()
    unsafe.chmod(0o777)
    for name, target, is_used in (("a", safe, True), ("b", unsafe, False), ("c", tmp_path / "c", False)):
        link = tmp_path / name
        link.symlink_to(target)
        monkeypatch.setenv("OCTAVO_CACHE_DIR", str(link))
        assert (cache.cache_folder().parent == target) == is_used


def test_without_a_home_the_next_place_is_taken(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(_: int) -> None:
        raise KeyError("no such user")

    for name in ("OCTAVO_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    assert cache.cache_folder().parent == temporary / f"octavo-{os.geteuid()}"


def test_the_users_cache_is_taken_before_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OCTAVO_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.cache_folder().parent == tmp_path / ".cache" / "octavo"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.cache_folder().parent == tmp_path / "xdg" / "octavo"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # which its specification says to pass over
    assert cache.cache_folder().parent == tmp_path / ".cache" / "octavo"


def test_kernels_are_loaded_from_a_folder_that_can_only_be_read(compiled: Path, given: Path) -> None:
    """As in the image of a container. Numba by itself would take to the folder of the sources."""
    shutil.copytree(compiled, given)
    everything = sorted((given, *given.rglob("*")))
    for path in everything:
        path.chmod(0o555 if path.is_dir() else 0o444)
    told = python(SCRIPT + WHERE, OCTAVO_KERNELS="compiled", NUMBA_DEBUG_CACHE="1")
    for path in everything:
        path.chmod(0o755 if path.is_dir() else 0o644)
    assert told.stderr == ""
    assert "data loaded from" in told.stdout
    assert "saved" not in told.stdout
    *_, count, used = told.stdout.splitlines()
    assert count == "1"
    assert Path(used).name.startswith("kernels-")
    assert not Path(used).parent.exists(), "the copy goes when the process does"
    assert sorted((given, *given.rglob("*"))) == everything


def test_a_folder_that_can_only_be_read_and_lacks_the_kernels_is_told(given: Path) -> None:
    given.mkdir()
    given.chmod(0o555)
    told = python(WHERE)
    given.chmod(0o755)
    assert not Path(told.stdout.strip()).parent.exists(), "it goes when the process does"
    assert str(given) in told.stderr
    assert "Set OCTAVO_CACHE_DIR" in told.stderr
    assert told.stderr.count("\n") == 1


def test_a_temporary_folder_is_made_once_and_told_once(
    temporary: Path, given: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    given.touch()  # a file
    with caplog.at_level(logging.WARNING):
        first, second = cache.cache_folder(), cache.cache_folder()
    assert first == second
    assert first.parent.parent == temporary
    assert first.parent.stat().st_mode & 0o077 == 0
    (record,) = caplog.records
    assert record.name == "octavo.records.kernels.cache"
    assert str(given) in record.getMessage()
    monkeypatch.setattr(os, "getpid", lambda: 1)
    assert cache.cache_folder() != first, "a fork may outlive it"
