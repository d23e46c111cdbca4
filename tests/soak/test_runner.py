"""The soak ends by itself, whatever its tests do, and says what came of them."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.soak.__main__ import next_run, run_kinds
from tests.soak.kinds import ROOT, Kind
from tests.soak.plugin import SEEDS_OF_A_RUN

RUN: Final = 5
TESTS: Final = """
import subprocess, sys, time
from pathlib import Path
import pytest

HERE = Path(__file__).parent

@pytest.mark.soak
def test_seeds(soak):
    seeds = []
    for seed in soak.seeds():
        seeds.append(str(seed))
        time.sleep(0.01)
    (HERE / "seeds").write_text(" ".join(seeds))

@pytest.mark.soak
def test_fails(soak):
    for seed in soak.seeds():
        assert seed % 3

@pytest.mark.soak(1000)
def test_takes_long():
    raise AssertionError("there is no time for this")

@pytest.mark.soak
def test_hangs(soak):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], start_new_session=True)
    (HERE / "child").write_text(str(child.pid))
    for seed in soak.seeds():
        time.sleep(1000)
"""


@pytest.fixture
def tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file of tests, of which the soak knows that they are some."""
    monkeypatch.setenv("PYTEST_PLUGINS", "tests.soak.plugin")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = soak\n")
    path = tmp_path / "test_soaked.py"
    path.write_text(TESTS)
    return str(path)


def is_running(pid: int) -> bool:
    state = Path(f"/proc/{pid}/stat")
    return state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.exhaustive
@pytest.mark.long
def test_a_soak_ends_and_tells_of_each_kind(tests: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kinds = {
        "first": (Kind("well", (f"{tests}::test_seeds",), 1), Kind("large", (tests,), 1000)),
        "second": (Kind("hanging", (f"{tests}::test_hangs",), 1),),
        "third": (Kind("failing", (f"{tests}::test_fails", f"{tests}::test_takes_long"), 1),),
    }
    assert run_kinds(kinds, RUN, 6, tmp_path / "logs", grace_s=20) == 1
    said = capsys.readouterr().out
    results = {line.split()[0]: line.split()[-1] for line in said.splitlines() if line.count(":") >= 2 or "-  " in line}
    assert results["well"] == "well", said
    assert results["hanging"] == results["failing"] == "failed", said
    assert results["large"] == "time", said

    seeds = list(map(int, (tmp_path / "seeds").read_text().split()))
    assert seeds == list(range(RUN * SEEDS_OF_A_RUN, RUN * SEEDS_OF_A_RUN + len(seeds)))
    assert not is_running(int((tmp_path / "child").read_text()))
    assert "in test_hangs" in (tmp_path / "logs" / "hanging.log").read_text()  # where it was

    [again] = [line.removeprefix("failing: ") for line in said.splitlines() if line.startswith("failing: ")]
    assert f"--soak-seed {next(seed for seed in seeds if seed % 3 == 0)} " in again
    program, *arguments = shlex.split(again)
    done = subprocess.run([ROOT / program, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "1 failed" in done.stdout) == (1, True), done.stdout


@pytest.mark.long
def test_an_interrupt_prints_the_table_so_far(tests: str, tmp_path: Path) -> None:
    kind = f"Kind('hanging', ({tests + '::test_hangs'!r},), 1)"
    program = (
        "import sys; from pathlib import Path;"
        "from tests.soak.__main__ import run_kinds; from tests.soak.kinds import Kind;"
        f"sys.exit(run_kinds({{'light': ({kind},)}}, {RUN}, 600, Path({str(tmp_path / 'logs')!r})))"
    )
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "hanging begins" in process.stdout.readline()
        while not (tmp_path / "child").exists():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate()
    assert process.returncode == 130
    assert "hanging: it was interrupted in " in said
    assert "1 failed in 0 tests" in said
    assert not is_running(int((tmp_path / "child").read_text()))


def test_each_run_has_the_number_after_the_last_one(tmp_path: Path) -> None:
    first = next_run(tmp_path / "soak")
    assert [next_run(tmp_path / "soak") for _ in range(3)] == [first + 1, first + 2, first + 3]
