"""`octavo dump`: exit codes, and what goes where."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from octavo.cli import main
from octavo.cli.exits import BROKEN_PIPE, COULD_NOT_RUN, DAMAGE_FOUND, FINE, INTERRUPTED
from octavo.cli.progress import WORTH_A_BAR, progress
from octavo.records import BatchBuilder
from tests.golden import files
from tests.permissions import run_obeying_permissions
from tests.unit.cli.test_command import OCTAVO

SEGMENT = str(files.FOLDER / "segment.bin")


def batch(offset: int, *, value: bytes = b"value") -> bytes:
    builder = BatchBuilder(base_offset=offset)
    builder.append(b"key", value, timestamp_ms=0)
    return builder.build()


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """Three batches, of which the second is damaged."""
    data = bytearray(batch(0) + batch(1) + batch(2))
    data[data.rindex(b"value", 0, -1 - len(batch(2)))] ^= 1
    path = tmp_path / "damaged.log"
    path.write_bytes(data)
    return path


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """More than a pipe holds."""
    path = tmp_path / "large.log"
    path.write_bytes(b"".join(batch(offset, value=bytes(500)) for offset in range(2000)))
    return path


def offsets(out: str) -> list[int]:
    return [json.loads(line)["offset"] for line in out.splitlines()]


def test_a_good_file_is_printed_without_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", SEGMENT]) == FINE
    out, err = capsys.readouterr()
    assert offsets(out) == [record.offset for record in files.load("segment").records]
    assert err == ""


def test_several_files_come_one_after_another(capsys: pytest.CaptureFixture[str]) -> None:
    commit = str(files.FOLDER / "commit.bin")
    assert main(["dump", commit, SEGMENT, "--format", "jsonl", "--binary", "base64"]) == FINE
    found = [json.loads(line)["file"] for line in capsys.readouterr().out.splitlines()]
    assert found == [commit] + [SEGMENT] * len(files.load("segment").records)


def test_offsets_are_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    for text, wanted in (("1002:1004", [1002, 1003]), (":1001", [1000]), ("1051:", [1051])):
        assert main(["dump", SEGMENT, "--offsets", text]) == FINE
        assert offsets(capsys.readouterr().out) == wanted


@pytest.mark.parametrize("text", ["5", "a:b", "1:2:3"])
def test_a_range_that_is_none_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", SEGMENT, "--offsets", text]) == COULD_NOT_RUN
    assert "is not A:B" in capsys.readouterr().err


def test_a_range_that_ends_before_it_begins_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", SEGMENT, "--offsets", "5:4"]) == COULD_NOT_RUN
    assert capsys.readouterr().err == "octavo: the range of offsets ends at 4, before it begins at 5\n"


def test_damage_is_one_sentence_after_everything_before_it(damaged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", str(damaged)]) == DAMAGE_FOUND
    out, err = capsys.readouterr()
    assert offsets(out) == [0]
    assert err.startswith(f"octavo: {damaged}: damaged at byte {len(batch(0))}: checksum is 0x")
    assert err.count("\n") == 1


def test_resync_prints_what_is_behind_damage_and_says_what_is_not_there(
    damaged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dump", str(damaged), "--resync"]) == DAMAGE_FOUND
    out, err = capsys.readouterr()
    assert offsets(out) == [0, 2]
    size = len(batch(0))
    assert err.startswith(f"octavo: {damaged}: damaged at byte {size}, {size} bytes passed over: checksum is 0x")
    assert err.count("\n") == 1


def test_checksums_are_not_compared_if_not_wanted(damaged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", str(damaged), "--no-verify"]) == FINE
    assert offsets(capsys.readouterr().out) == [0, 1, 2]


def test_a_torn_tail_is_told_and_fine(capsys: pytest.CaptureFixture[str]) -> None:
    path = files.FOLDER / "segment-torn.bin"
    assert main(["dump", str(path)]) == FINE
    out, err = capsys.readouterr()
    assert offsets(out)
    assert err == f"octavo: {path}: the last batch, at byte 2531, is not all there: its 160 bytes are left out\n"


def test_a_file_that_cannot_be_read_is_told_and_the_others_are_printed(
    tmp_path: Path, damaged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing, folder = tmp_path / "missing.log", tmp_path / "folder"
    folder.mkdir()
    assert main(["dump", str(missing), str(folder), str(damaged)]) == COULD_NOT_RUN
    out, err = capsys.readouterr()
    assert offsets(out) == [0]
    lines = sorted(err.splitlines(), reverse=True)
    assert lines[0] == f"octavo: {missing}: cannot be read: No such file or directory"
    assert lines[1] == f"octavo: {folder}: there are no files of Kafka in this directory"
    assert lines[2].startswith(f"octavo: {damaged}: damaged")


def test_a_file_that_may_not_be_read_is_told(damaged: Path) -> None:
    damaged.chmod(0)
    done = run_obeying_permissions([*OCTAVO, "dump", str(damaged)])
    told = f"octavo: {damaged}: cannot be read: Permission denied\n"
    assert (done.returncode, done.stdout, done.stderr) == (COULD_NOT_RUN, "", told)


def test_output_is_utf_8_whatever_the_locale(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(batch(0, value="Käfig".encode()))
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run([*OCTAVO, "dump", str(path), "--binary", "text"], capture_output=True, env=environment)
    assert json.loads(done.stdout)["value"] == "Käfig"
    assert (done.returncode, done.stderr) == (FINE, b"")


def test_a_reader_that_goes_away_is_no_reason_to_complain(large: Path) -> None:
    with subprocess.Popen([*OCTAVO, "dump", str(large)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b"{")
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == BROKEN_PIPE


def test_help_into_a_closed_pipe_is_quiet() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([*OCTAVO, "--help"], stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    # Where Python's output is unbuffered, argparse itself passes over the error.
    assert done.returncode in (BROKEN_PIPE, FINE)
    assert done.stderr == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full disk to be had")
def test_a_full_disk_is_told_once() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*OCTAVO, "dump", SEGMENT], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == COULD_NOT_RUN
    assert done.stderr == "octavo: [Errno 28] No space left on device\n"


def test_an_interrupt_ends_it_quietly(large: Path) -> None:
    command = [*OCTAVO, "dump", str(large)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()  # it is running, and will soon wait for us to read on
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == INTERRUPTED


class Terminal(io.StringIO):
    """What takes itself for a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_bar_is_drawn_only_where_output_goes_elsewhere_and_takes_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for size, out, err, is_drawn in (
        (WORTH_A_BAR, io.StringIO(), Terminal(), True),
        (WORTH_A_BAR - 1, io.StringIO(), Terminal(), False),
        (WORTH_A_BAR, Terminal(), Terminal(), False),
        (WORTH_A_BAR, io.StringIO(), io.StringIO(), False),
    ):
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        with progress(size) as advance:
            advance(size // 2)
        assert bool(err.getvalue()) == is_drawn


def test_a_closed_standard_output_is_told() -> None:
    done = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *OCTAVO, "dump", SEGMENT], stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (COULD_NOT_RUN, b"octavo: standard output is closed\n")
