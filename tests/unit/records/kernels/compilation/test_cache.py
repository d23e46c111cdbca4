"""Where compiled kernels are kept, and where they never are: what lies there is executed."""

from __future__ import annotations

import errno
import logging
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import numba
import pytest

import octavo
from octavo.records.kernels.compilation import cache, keeping
from octavo.records.kernels.compilation.compiler import generate
from octavo.records.kernels.compilation.machine_code import load
from tests.permissions import run_as_user, run_obeying_permissions

# Prints how many rows were read, and how many kernels were loaded and compiled for it.
SCRIPT = """
from octavo.records import BatchBuilder, to_arrow
from octavo.records.kernels import Kernels
from octavo.records.kernels.compilation import loading
from octavo.records.kernels.compilation.loading import _machine_code
compiled, compile_here = [], loading._compiled_here
loading._compiled_here = lambda kernel: compiled.append(kernel) or compile_here(kernel)
builder = BatchBuilder()
builder.append(b"k", b"v", timestamp_ms=0)
rows = sum(chunk.num_rows for chunk in to_arrow(builder.build()))
print(f"{rows} row, {len(_machine_code) - len(compiled)} loaded, {len(compiled)} compiled")
"""
COMPILED = "1 row, 0 loaded, 2 compiled\n"
LOADED = "1 row, 2 loaded, 0 compiled\n"
WHERE = "from octavo.records.kernels.compilation.cache import folder_to_write_to; print(folder_to_write_to())"
SOMEBODY = 4321  # a user id that has no name and owns nothing
TEMPORARY = tempfile.gettempdir()
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")

pytestmark = pytest.mark.long  # kernels are compiled, which takes several seconds


def python(script: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run it as an ordinary user, with these variables."""
    environment = {**os.environ, "OCTAVO_KERNELS": "compiled", **settings}
    return run_obeying_permissions([sys.executable, "-c", script], environment)


def as_somebody(first: str, then: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run `first` as root and `then` as a user without a home, with `folder`/cache as the given cache."""
    environment = {**os.environ, "OCTAVO_CACHE_DIR": str(folder / "cache"), "TMPDIR": str(folder), "HOME": "/none"}
    return run_as_user(SOMEBODY, first, then, {**environment, "OCTAVO_KERNELS": "compiled"})


def used() -> Path:
    """The folder that kernels are written to."""
    folder = cache.folder_to_write_to()
    assert folder is not None
    return folder


def copy_package(to: Path) -> None:
    shutil.copytree(Path(octavo.__file__).parent, to / "octavo", ignore=shutil.ignore_patterns("__pycache__"))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that another process has left, whose umask let nobody else read its files."""
    folder = tmp_path_factory.mktemp("compiled")
    folder.chmod(0o755)
    before = os.umask(0o077)
    try:
        told = python(SCRIPT, OCTAVO_CACHE_DIR=str(folder))
    finally:
        os.umask(before)
    assert (told.stdout, told.stderr) == (COMPILED, "")
    return folder


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home of its own, and a folder of its own for temporary files; warnings are told once a test."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "temporary").mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(folder / "temporary"))
    cache.warn_once.cache_clear()
    yield folder
    cache.warn_once.cache_clear()


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """A folder that everybody can enter, which those of pytest are not."""
    with tempfile.TemporaryDirectory(dir=TEMPORARY) as name:
        folder = Path(name)
        folder.chmod(0o1777)
        yield folder


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What OCTAVO_CACHE_DIR says."""
    folder = tmp_path / "given"
    monkeypatch.setenv("OCTAVO_CACHE_DIR", str(folder))
    return folder


def test_compiled_kernels_are_loaded_by_the_next_process(compiled: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in compiled.rglob("*")}
    told = python(SCRIPT, OCTAVO_CACHE_DIR=str(compiled))
    assert (told.stdout, told.stderr) == (LOADED, "")
    assert {path: path.stat().st_mtime_ns for path in compiled.rglob("*")} == before


def test_a_copy_of_the_package_in_another_place_compiles_nothing(tmp_path: Path, compiled: Path) -> None:
    """As `spark.archives` unpacks one for each application, with new times."""
    copy_package(tmp_path)
    for source in tmp_path.rglob("*.py"):
        os.utime(source, (1, 1))
    told = python(
        f"import octavo; assert octavo.__file__.startswith({str(tmp_path)!r})\n" + SCRIPT,
        PYTHONPATH=str(tmp_path),
        OCTAVO_CACHE_DIR=str(compiled),
    )
    assert (told.stdout, told.stderr) == (LOADED, "")


def test_the_folder_changes_with_any_source_of_a_kernel(tmp_path: Path, given: Path) -> None:
    copy_package(tmp_path)
    names = {python(WHERE, PYTHONPATH=str(tmp_path)).stdout}
    # what kernels call, also in folders of theirs, what compiles them, and what they take constants from
    sources = ("varint.py", "compaction/hash.py", "inflation/copy.py", "compilation/compiler.py", "../layout.py")
    for changed in sources:
        path = tmp_path / "octavo" / "records" / "kernels" / changed
        path.write_text(path.read_text() + "\n# changed\n")
        names.add(python(WHERE, PYTHONPATH=str(tmp_path)).stdout)
    assert len(names) == 1 + len(sources)


@pytest.mark.parametrize("changed", ["numba", "llvmlite", "python"])
def test_the_folder_changes_with_what_compiles(given: Path, changed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = used()
    if changed == "python":
        monkeypatch.setattr(sys, "abiflags", "t")
    else:
        monkeypatch.setattr(cache, "version", lambda name: version(name) + ("x" if name == changed else ""))
    cache.sources_digest.cache_clear()
    after = used()
    cache.sources_digest.cache_clear()
    assert before != after


def small(_one: int, other: int) -> int:
    """A kernel that is compiled in no time."""
    return other + 1


def was_loaded() -> bool:
    """Whether `small` comes from the cache and not from the compiler."""
    found = keeping.kept(small, checked=False)
    code = found or generate(small, numba.int64(numba.int64, numba.int64), {}, frozenset())
    if found is None:
        keeping.keep(small, code, checked=False)
    assert load(code, small)(1, 2) == 3
    return found is not None


# Loads and compiles kernels before and after Numba is imported and used for something else.
WITH_NUMBA = (
    SCRIPT
    + """
import sys
assert "numba" not in sys.modules, "what is only loaded needs no Numba"
import numba
from octavo.records.kernels import partition, scan

@numba.njit
def twice(number):
    return 2 * number

assert twice(2) == 4
assert Kernels(compiled=True).partition
assert twice(2.5) == 5.0
assert numba.njit(lambda data: partition.murmur2(data, 0, 3))(numba.np.numpy_support.np.zeros(3, "u1")) != 0
"""
)


def test_users_of_numba_and_kernels_do_not_get_in_each_others_way(compiled: Path, given: Path) -> None:
    shutil.copytree(compiled, given)
    told = python(WITH_NUMBA)
    assert (told.stdout, told.stderr) == (LOADED, "")


def test_kernels_of_another_processor_are_kept_beside_the_others(given: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [was_loaded(), was_loaded()] == [False, True]
    with monkeypatch.context() as patched:
        patched.setattr(keeping, "processor", lambda: "a processor of tomorrow")
        assert [was_loaded(), was_loaded()] == [False, True]
    assert was_loaded()
    assert len(list(given.rglob("*.kernel"))) == 2


def test_a_folder_that_is_given_is_filled_whatever_else_has_them(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for an image that is made where Octavo has been used before."""
    assert [was_loaded(), was_loaded()] == [False, True]
    assert list(home.rglob("*.kernel"))
    given = tmp_path / "not" / "there" / "yet"
    monkeypatch.setenv("OCTAVO_CACHE_DIR", str(given))
    assert [was_loaded(), was_loaded()] == [False, True]
    assert len(list(given.rglob("*.kernel"))) == 1
    assert {each.stat().st_mode & 0o777 for each in (given, given.parent, given.parent.parent)} == {0o755}


@pytest.mark.parametrize("damage", ["cut", "zeros", "flipped", "emptied", "gone"])
def test_a_damaged_file_is_not_executed_but_written_again(given: Path, damage: str) -> None:
    was_loaded()
    (path,) = given.rglob("*.kernel")
    data = bytearray(path.read_bytes())
    flipped = bytearray(data)
    flipped[len(data) // 2] ^= 1
    changed: dict[str, bytes | bytearray] = {
        "cut": data[:-100],
        "zeros": bytes(len(data)),
        "flipped": flipped,
        "emptied": b"",
    }
    path.unlink() if damage == "gone" else path.write_bytes(changed[damage])
    assert [was_loaded(), was_loaded()] == [False, True]


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_others_can_read_the_folders_that_are_made_and_not_write(given: Path, umask: int, tmp_path: Path) -> None:
    before = os.umask(umask)
    try:
        folder = used()
    finally:
        os.umask(before)
    assert folder.parent == given
    assert {each.stat().st_mode & 0o7777 for each in (folder, given)} == {0o755}


def test_files_can_be_read_by_others_and_not_be_written(compiled: Path) -> None:
    written = [path for path in compiled.rglob("*") if path.is_file()]
    assert len(written) == 2
    assert {path.stat().st_mode & 0o7777 for path in written} == {0o644}


def test_a_cache_folder_of_all_programs_is_made_for_its_user_alone(home: Path) -> None:
    folder = used()
    assert folder.is_relative_to(home / ".cache" / "octavo")
    assert (home / ".cache").stat().st_mode & 0o777 == 0o700


@needs_root
def test_what_root_compiled_is_loaded_by_another_user(compiled: Path, open_to_all: Path) -> None:
    """As in an image that root makes and whose executors are not root."""
    shutil.copytree(compiled, open_to_all / "cache")
    use, given = f"import os; os.environ['OCTAVO_CACHE_DIR'] = {str(compiled)!r}", str(open_to_all / "cache")
    forget = f"_machine_code.clear(); os.environ['OCTAVO_CACHE_DIR'] = {given!r}"
    told = as_somebody(f"{use}\n{SCRIPT}\n{forget}", SCRIPT, open_to_all)  # first from elsewhere, which imports it all
    assert (told.stdout, told.stderr) == (LOADED + LOADED, "")


@needs_root
def test_what_another_user_compiled_is_not_executed_by_root(compiled: Path, open_to_all: Path, given: Path) -> None:
    shutil.copytree(compiled, given)
    folder = used()
    os.chown(next(folder.iterdir()), SOMEBODY, SOMEBODY)
    assert folder not in cache.folders_to_load_from()
    assert used() != folder


@needs_root
def test_a_warning_says_why_the_folder_that_was_given_is_not_used(compiled: Path, open_to_all: Path) -> None:
    folder = open_to_all / "cache"
    temporary = f"compiled kernels are kept in {open_to_all}/octavo-{SOMEBODY}/kernels-"
    folder.mkdir(mode=0o755)

    def told() -> str:
        digest = "from octavo.records.kernels.compilation import cache; cache.sources_digest()"
        warning = as_somebody(digest, WHERE, open_to_all)
        assert warning.stderr.count("\n") == 1, warning.stderr
        shutil.rmtree(open_to_all / f"octavo-{SOMEBODY}")
        text, _, reason = warning.stderr.partition(" and not in OCTAVO_CACHE_DIR: ")
        assert text.startswith(temporary)
        return reason

    nothing = rf"{folder} has no kernels of this version \(kernels-.*\), and user {SOMEBODY} cannot write to it\n"
    assert re.fullmatch(nothing, told())
    shutil.copytree(compiled, folder, dirs_exist_ok=True)
    (inner,) = folder.iterdir()
    assert told() == f"{inner} has not all kernels for this processor, and user {SOMEBODY} cannot write to it\n"
    folder.chmod(0o700)
    assert told() == f"user {SOMEBODY} cannot enter {folder}\n"
    folder.chmod(0o777)
    assert told() == f"others can write to {folder} (mode 777)\n"
    folder.chmod(0o755)
    os.chown(folder, SOMEBODY + 1, 0)
    assert told() == f"{folder} belongs to user {SOMEBODY + 1}, and neither to user {SOMEBODY} nor to root\n"


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o707, 0o720, 0o1777])
def test_a_folder_that_others_can_write_to_is_not_used(given: Path, mode: int) -> None:
    folder = used()
    assert folder.parent == given
    folder.chmod(mode)
    assert used() != folder
    assert folder not in cache.folders_to_load_from()


def test_a_folder_in_which_others_can_write_to_a_file_or_folder_is_not_used(given: Path) -> None:
    folder = used()
    inner = folder / "inner"
    inner.mkdir(mode=0o755)
    file = inner / "scan.kernel"
    file.touch()
    for each, mode in ((inner, 0o755), (file, 0o644)):
        each.chmod(mode | 0o022)
        assert used() != folder
        folder.chmod(0o700)
        assert used() == folder, "nobody else gets in"
        folder.chmod(0o755)
        each.chmod(mode)
    assert used() == folder


def test_a_folder_that_somebody_else_makes_first_is_not_used(given: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mkdir = Path.mkdir

    def too_late(path: Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        if path == given:
            mkdir(path)
            path.chmod(0o777)
        mkdir(path, mode, parents, exist_ok)

    monkeypatch.setattr(Path, "mkdir", too_late)
    assert not used().is_relative_to(given)


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o757])
def test_a_folder_that_others_could_replace_is_not_used(tmp_path: Path, given: Path, mode: int) -> None:
    folder = used()
    tmp_path.chmod(mode)
    assert used() != folder
    shutil.rmtree(given)
    assert not used().is_relative_to(tmp_path)
    assert not given.exists(), "nothing is made in such a place"
    tmp_path.chmod(0o1777)  # as the temporary files have it: nobody removes what is not theirs
    assert used() == folder


def test_a_folder_of_somebody_else_is_not_used(given: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = used()
    lstat = Path.lstat
    for theirs, is_used in ((folder, False), (given, False), (given.parent, False), (given / "other", True)):

        def lstat_of(path: Path, theirs: Path = theirs) -> os.stat_result:
            status = lstat(path)
            return os.stat_result((*status[:4], os.geteuid() + 1, *status[5:])) if path == theirs else status

        monkeypatch.setattr(Path, "lstat", lstat_of)
        assert (folder in cache.folders_to_load_from()) == is_used
        assert (cache.folder_to_write_to() == folder) == is_used


def test_a_link_leads_to_where_it_leads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    safe, unsafe = tmp_path / "safe", tmp_path / "unsafe"
    safe.mkdir(mode=0o700)
    unsafe.mkdir()
    unsafe.chmod(0o777)
    for name, target, is_used in (("a", safe, True), ("b", unsafe, False), ("c", tmp_path / "c", False)):
        link = tmp_path / name
        link.symlink_to(target)
        monkeypatch.setenv("OCTAVO_CACHE_DIR", str(link))
        assert (used().parent == target) == is_used


def test_without_a_home_the_next_place_is_taken(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(_: int) -> None:
        raise KeyError("no such user")

    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    assert used().parent == home / "temporary" / f"octavo-{os.geteuid()}"


def test_the_users_cache_is_taken_before_temporary_files(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert used().parent == home / ".cache" / "octavo"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert used().parent == tmp_path / "xdg" / "octavo"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # which its specification says to pass over
    assert used().parent == home / ".cache" / "octavo"


def test_kernels_are_loaded_from_a_folder_that_can_only_be_read(compiled: Path, given: Path, home: Path) -> None:
    """As in the image of a container."""
    shutil.copytree(compiled, given)
    everything = sorted((given, *given.rglob("*")))
    for path in everything:
        path.chmod(0o555 if path.is_dir() else 0o444)
    told = python(SCRIPT)
    for path in everything:
        path.chmod(0o755 if path.is_dir() else 0o644)
    assert (told.stdout, told.stderr) == (LOADED, "")
    assert sorted((given, *given.rglob("*"))) == everything
    assert not (home / ".cache").exists(), "what is not needed is not made"


def test_a_full_disk_ends_no_work(
    given: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fchmod", fails)
    assert [was_loaded(), was_loaded()] == [False, False]
    assert caplog.messages == [f"compiled kernels are not kept in {used()}: No space left on device"]
    assert not [path for path in given.rglob("*") if path.is_file()]


def test_where_nothing_can_be_had_it_is_told_once(given: Path, home: Path, caplog: pytest.LogCaptureFixture) -> None:
    given.touch()  # a file
    (home / ".cache").touch()
    (home / "temporary").rmdir()
    (home / "temporary").touch()
    with caplog.at_level(logging.WARNING):
        assert (cache.folder_to_write_to(), cache.folder_to_write_to()) == (None, None)
    (record,) = caplog.records
    assert record.name == "octavo.records.kernels.compilation.cache"
    assert record.getMessage().startswith("compiled kernels are not kept, so that every process compiles them again: ")
    assert str(given) in record.getMessage()
    assert not list(cache.folders_to_load_from())
    assert not was_loaded(), "compiled all the same"
