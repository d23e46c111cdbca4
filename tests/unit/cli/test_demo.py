"""The demo runs, fits its terminal, and the commands that it ends with work."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from octavo.cli import main
from octavo.cli.demo import bytes_, conversion, damage, formats, logs, million
from octavo.cli.demo.stage import Stage
from octavo.cli.exits import COULD_NOT_RUN, DAMAGE_FOUND, FINE
from octavo.records import Codec, to_arrow
from tests.unit.cli.test_command import OCTAVO


@pytest.mark.parametrize("columns", [80, 120])
def test_every_chapter_fits_and_is_plain_in_a_pipe(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    stage = Stage()
    stage.welcome()
    for chapter in (formats, bytes_, conversion, damage):
        chapter.show(stage)
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= columns
    assert "\x1b" not in out
    assert not [line for line in out.splitlines() if line != line.rstrip()]
    assert "last_offset_delta" in out
    assert "ChecksumMismatch at byte 2140" in out


def test_the_whole_of_it_runs_and_its_commands_work(tmp_path: Path) -> None:
    environment = {**os.environ, "COLUMNS": "80"}
    environment["PATH"] = ":".join(["/usr/bin", "/bin"])  # no octavo there: the commands must say where it is
    done = subprocess.run(
        [*OCTAVO, "demo", "--dir", str(tmp_path)], capture_output=True, text=True, env=environment, timeout=240
    )
    assert (done.returncode, done.stderr) == (FINE, "")
    rates = [int(rate.replace(",", "")) for rate in re.findall(r"^ +(?:none|lz4|zstd) .* ([\d,]+)$", done.stdout, re.M)]
    assert len(rates) == 3
    assert "pyarrow.RecordBatch, about 8 MiB at a time" in done.stdout
    assert all(rate > 0 for rate in rates)
    commands = [line.strip() for line in done.stdout.splitlines() if line.startswith(f"  {sys.executable}")]
    assert len(commands) == 5
    outcomes = [subprocess.run(command, shell=True, capture_output=True, text=True) for command in commands]
    assert [outcome.returncode for outcome in outcomes] == [FINE] * 5
    every, transaction, stopped, resynced, _ = (outcome.stdout for outcome in outcomes)
    assert every.count("\n") == 42
    assert transaction.count('"isTransactional":true') == 3
    assert (int(stopped), int(resynced)) == (100, 200)


def test_speeds_are_those_of_the_better_round(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = iter([(b"data", 9.0, 2.0), (b"data", 3.0, 4.0)])
    monkeypatch.setattr(million, "_round_trip", lambda *_: next(rounds))
    assert million._best_round_trip(None, Codec.ZSTD) == (b"data", 3.0, 2.0)


def test_chunks_are_as_large_as_the_demo_says() -> None:
    data, _, _ = million._round_trip(million.orders_as_columns(), Codec.NONE)
    sizes = [chunk["value"].nbytes + chunk["key"].nbytes for chunk in to_arrow(data)]
    assert all(6 << 20 < size < 10 << 20 for size in sizes[:-1])


def test_nothing_of_others_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs.write(tmp_path)
    logs.write(tmp_path)  # over its own files it may
    segment = tmp_path / "notebooks-0" / "00000000000000000000.log"
    segment.write_bytes(b"precious")
    arguments = ["demo", "--dir", str(tmp_path)]
    assert main(arguments) == COULD_NOT_RUN
    assert segment.read_bytes() == b"precious"
    assert "give another --dir" in capsys.readouterr().err


def test_the_damaged_log_is_found_damaged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs.write(tmp_path)
    assert main(["dump", str(tmp_path / "broken-0" / "00000000000000000000.log")]) == DAMAGE_FOUND
