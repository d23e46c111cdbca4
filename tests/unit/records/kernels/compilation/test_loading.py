"""Kernels that are compiled by another process, while this one goes on."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from octavo.records.kernels import partition
from octavo.records.kernels.compilation import cache, elsewhere, loading
from octavo.records.kernels.compilation.elsewhere import start  # as it is outside of tests
from octavo.records.kernels.compilation.loading import as_machine_code, has_arrived, with_swap
from octavo.records.kernels.compilation.signatures import SIGNATURES
from tests.selection import some

KERNEL = partition.partition


class FakeCompilation:
    def __init__(self) -> None:
        self.ended = False

    def is_over(self) -> bool:
        return self.ended


@pytest.fixture
def compilation(monkeypatch: pytest.MonkeyPatch) -> FakeCompilation:
    """The process that compiles; the cache is empty, and nothing is loaded."""
    made = FakeCompilation()
    for name, empty in (("_machine_code", {}), ("_compilations", {}), ("_over", set()), ("_looked", {})):
        monkeypatch.setattr(loading, name, empty)
    monkeypatch.setattr(loading, "_LOOK_AGAIN_S", -1.0)
    monkeypatch.setattr(loading, "_loaded", lambda _: None)
    monkeypatch.setattr(loading, "_compiled_here", not_here)
    monkeypatch.setattr(loading, "interpreted", lambda _: lambda *_: "interpreted")
    monkeypatch.setattr(elsewhere, "start", lambda _: made)
    loading._until_ready.cache_clear()
    return made


def not_here(_: Any) -> Any:
    raise AssertionError("another process compiles it")


def machine_code(*_: Any) -> str:
    return "machine code"


def test_a_kernel_is_interpreted_until_it_is_compiled(
    compilation: FakeCompilation, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept_by_somebody = with_swap(KERNEL)
    assert kept_by_somebody() == "interpreted"
    assert not has_arrived()
    monkeypatch.setattr(loading, "_loaded", lambda _: machine_code)
    assert kept_by_somebody() == "machine code"
    assert with_swap(KERNEL) is machine_code
    assert not has_arrived(), "others of its group are being compiled"
    compilation.ended = True
    assert has_arrived()


@pytest.mark.parametrize("is_started", [True, False])
def test_what_no_other_process_compiles_is_compiled_here(
    compilation: FakeCompilation, is_started: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be killed, and it may have nowhere to leave what it compiles."""
    if not is_started:
        monkeypatch.setattr(elsewhere, "start", lambda _: None)
        monkeypatch.setattr(loading, "_compiled_here", lambda _: machine_code)
    else:
        assert with_swap(KERNEL)() == "interpreted"
        monkeypatch.setattr(loading, "_compiled_here", lambda _: machine_code)
        assert with_swap(KERNEL)() == "interpreted"
        compilation.ended = True
    assert with_swap(KERNEL) is machine_code


def test_what_cannot_be_compiled_is_interpreted(
    compilation: FakeCompilation, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cache.warn_once.cache_clear()
    monkeypatch.setattr(elsewhere, "start", lambda _: None)
    with caplog.at_level(logging.WARNING):
        assert with_swap(KERNEL)() == "interpreted"
    assert caplog.messages[0].startswith("kernels cannot be compiled, so that all work takes a hundred times as long")
    assert as_machine_code(partition.murmur2)() == "interpreted"
    monkeypatch.setenv("OCTAVO_KERNELS", "compiled")
    loading._machine_code.clear()
    with pytest.raises(AssertionError):
        as_machine_code(partition.murmur2)  # who asks for compiled ones is told


def test_a_forked_process_does_not_wait_for_its_parents_compilation(compilation: FakeCompilation) -> None:
    with_swap(KERNEL)
    assert loading._compilations
    loading._start_anew()
    assert not loading._compilations


def test_every_kernel_is_in_a_group() -> None:
    assert set(loading.all_kernels()) == set(SIGNATURES)


@pytest.mark.parametrize("program", ["", "/usr/sbin/uwsgi", "frozen"])
def test_no_process_is_started_where_the_program_may_not_be_a_plain_python(
    program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def starts(*_: Any, **__: Any) -> Any:
        raise AssertionError("started")

    monkeypatch.setattr(elsewhere, "Compilation", starts)
    if program == "frozen":
        monkeypatch.setattr(sys, "frozen", True, raising=False)
    else:
        monkeypatch.setattr(sys, "executable", program)
    assert start(["scan.scan"]) is None


def test_no_process_is_started_where_it_could_not_leave_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elsewhere, "folder_to_write_to", lambda: None)
    assert start(["scan.scan"]) is None


# Reads three megabytes with an empty cache, in each of these ways to go on while kernels are compiled.
BEGIN = """
import os, signal, sys, time
from octavo.records import BatchBuilder, to_arrow
from octavo.records.kernels import kernels
from octavo.records.kernels.compilation import loading
data = b""
for number in range(3):
    builder = BatchBuilder(base_offset=number)
    builder.append(b"k", bytes(1 << 20), timestamp_ms=0)
    data += builder.build()
def read():
    return sum(chunk.num_rows for chunk in to_arrow(data))
assert read() == 3
(compilation,) = loading._compilations.values()
assert not loading._machine_code
"""
EXITS = ""
FORKS = """
process = os.fork()
if process == 0:
    assert not loading._compilations
    assert read() == 3
    assert loading._compilations, "it waits for one of its own"
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 7
compilation.wait()
time.sleep(2 * loading._LOOK_AGAIN_S)
assert read() == 3
assert kernels(1).compiled and loading._machine_code
assert "numba" not in sys.modules
"""
IS_KILLED = """
compilation.kill()
compilation.wait()
assert read() == 3
assert loading._machine_code
assert "numba" in sys.modules, "compiled here"
"""


@pytest.mark.long
@pytest.mark.parametrize("then", some([EXITS, FORKS, IS_KILLED]), ids=["exits", "forks", "is killed"])
def test_a_process_goes_on_while_its_kernels_are_compiled(tmp_path: Path, then: str) -> None:
    told = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-X", "dev", "-c", BEGIN + then],
        env={**python_environment(), "OCTAVO_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (told.returncode, told.stderr) == (0, "")


def python_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "OCTAVO_KERNELS"}


def test_the_process_that_compiles_runs_nothing_that_lies_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("open('executed', 'w').close()")
    monkeypatch.chdir(tmp_path)
    entries: list[Any] = [*sys.path, tmp_path]  # Python ignores what is not a text
    monkeypatch.setattr(sys, "path", entries)
    process = start([])
    assert process is not None
    assert process.wait(60) == 0
    assert not (tmp_path / "executed").exists()
