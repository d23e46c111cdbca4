"""The command `octavo verify`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from octavo.cli import main
from octavo.inspect.verify import looks, tasks
from tests.golden.directories import unpack
from tests.golden.files import load
from tests.permissions import run_obeying_permissions
from tests.unit.inspect.verify.planted_batches import BEFORE, at_offset, write_log

NAME = f"{100:020d}.log"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "_PAUSE_S", 0.0)


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A data directory with two partitions, of which one is damaged."""
    directory = tmp_path / "data"
    write_log(directory / "bad-0", BEFORE[:-1] + b"\1" + at_offset(200, BEFORE), 100)
    write_log(directory / "good-0", BEFORE, 100)
    return directory


def test_a_sound_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(unpack("closed", tmp_path))]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("octavo: no problems; ")


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_each_problem_is_a_line(damaged: Path, jobs: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(damaged), "--jobs", jobs]) == 1
    said = capsys.readouterr()
    (line,) = said.out.splitlines()
    assert line.startswith(f"{damaged}/bad-0/{NAME}, position 0, offset 100: batch-crc (stored ")
    assert "consumers refuse the batch" in line
    assert "1 problem in 1 file; 2 partitions" in said.err


def test_json(damaged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(damaged), "--json"]) == 1
    (problem,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert problem.keys() == {"file", "position", "offset", "rule", "found", "means", "repair"}
    assert (problem["file"], problem["position"], problem["offset"]) == (str(damaged / "bad-0" / NAME), 0, 100)


def test_a_rule_can_be_ignored(damaged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(damaged), "--ignore", "batch-crc"]) == 0
    assert main(["verify", str(damaged), "--ignore", "batch-crx"]) == 2
    assert "there is no rule batch-crx" in capsys.readouterr().err


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_partition_and_a_file(damaged: Path, jobs: str, capsys: pytest.CaptureFixture[str]) -> None:
    partition, file = damaged / "bad-0", damaged / "bad-0" / NAME
    assert main(["verify", str(partition), str(file), "--jobs", jobs]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(",")[0] for line in lines] == [str(file), str(file)]


def test_a_data_directory_may_be_named_like_a_partition(damaged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    renamed = damaged.rename(damaged.with_name("kafka-logs-1"))
    assert main(["verify", str(renamed)]) == 1
    assert "bad-0" in capsys.readouterr().out


def test_what_cannot_be_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / NAME)
    (tmp_path / "notes.txt").write_text("some text")
    (tmp_path / "empty").mkdir()
    for path in ("nowhere", "empty", "notes.txt", NAME, "/dev/zero", "a\0b"):
        assert main(["verify", str(tmp_path / path)]) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.startswith("octavo: ")
        assert len(said.err.splitlines()) == 1


def test_text_in_place_of_a_segment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_log(tmp_path / "text-0", b"some text that is no batch\n" * 40) / f"{0:020d}.log"
    assert main(["verify", str(file)]) == 1
    assert capsys.readouterr().out.startswith(f"{file}, position 0")


def test_an_empty_file_is_a_new_segment(tmp_path: Path) -> None:
    assert main(["verify", str(write_log(tmp_path / "new-0", b"") / f"{0:020d}.log")]) == 0


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_the_rest_is_checked_if_a_file_cannot_be_read(damaged: Path, jobs: str) -> None:
    (damaged / "good-0" / NAME).chmod(0)
    done = run_obeying_permissions([sys.executable, "-m", "octavo.cli", "verify", str(damaged), "--jobs", jobs])
    assert done.returncode == 2
    assert len(done.stdout.splitlines()) == 1
    assert "Permission denied" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_closed_pipe_ends_it_without_a_word(damaged: Path) -> None:
    command = [sys.executable, "-m", "octavo.cli", "verify", str(damaged), "--jobs", "2"]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False, timeout=60)
    os.close(writer)
    assert done.returncode == 141
    assert b"Traceback" not in done.stderr


def test_a_file_of_the_directory_is_named_without_dots(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "recovery-point-offset-checkpoint"
    directory = unpack("closed", tmp_path, "events-0")
    checkpoint = directory / name
    checkpoint.write_text(checkpoint.read_text().replace("events 0 21", "events 0 22"))
    monkeypatch.chdir(directory)
    for folder, file in ((str(directory / "events-0"), str(checkpoint)), ("events-0", name)):
        assert main(["verify", folder]) == 1
        assert capsys.readouterr().out.startswith(f"{file}, position ")


def test_names_of_files_cannot_break_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_log(tmp_path / "in\nside" / "bad-0", BEFORE[:-1] + b"\1" + at_offset(200, BEFORE), 100)
    assert main(["verify", str(tmp_path / "in\nside")]) == 1
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_replicas_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for node, after in (("one", BEFORE), ("two", load("v2-idempotent").data)):
        write_log(tmp_path / node / "events-0", BEFORE + at_offset(106, after), 100)
    paths = [str(tmp_path / "one"), str(tmp_path / "two")]
    assert main(["verify", *paths]) == 0
    assert main(["verify", "--replicas", *paths]) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert "offset 106: replica-diverged" in line
    assert main(["verify", "--replicas", *paths, "--ignore", "replica-diverged"]) == 0
    assert main(["verify", "--replicas", paths[0]]) == 2
    capsys.readouterr()
    assert main(["verify", "--replicas", paths[0], str(tmp_path / "none")]) == 2
    said = [line for line in capsys.readouterr().err.splitlines() if "no problems" not in line]
    assert said == [f"octavo: {tmp_path}/none: No such file or directory"]
    assert main(["verify", "--replicas", *paths, str(tmp_path / "none")]) == 2
    assert "offset 106: replica-diverged" in capsys.readouterr().out


def test_workers_that_are_not_forks_find_the_same(
    damaged: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(damaged), "--jobs", "2"]) == 1
    found = capsys.readouterr().out
    monkeypatch.setattr(tasks, "_METHOD", "spawn")
    assert main(["verify", str(damaged), "--jobs", "2"]) == 1
    assert capsys.readouterr().out == found


@pytest.mark.skipif(tasks._METHOD != "fork", reason="elsewhere, workers do not inherit what is replaced here")
def test_a_worker_that_is_killed_is_noticed(
    damaged: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tasks, "check", lambda *arguments: os.kill(os.getpid(), signal.SIGKILL))
    assert main(["verify", str(damaged), "--jobs", "2"]) == 2
    assert "ended before it was done" in capsys.readouterr().err
