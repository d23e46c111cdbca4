"""`octavo explain`: in a terminal, in a pipe, and on what is no log."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from octavo.cli import main
from octavo.cli.exits import BROKEN_PIPE, COULD_NOT_RUN, DAMAGE_FOUND, FINE
from octavo.records import BatchBuilder, Codec, Header
from tests.golden import files
from tests.unit.cli.test_command import modules_after
from tests.unit.records.test_documents import worked

EXPLAIN = [sys.executable, "-m", "octavo.cli", "explain"]
COLOR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    builder = BatchBuilder(codec=Codec.ZSTD, producer_id=7, producer_epoch=0, base_sequence=0)
    for number in range(20):
        value = b"\x1b[31mnot red" * 40
        builder.append(b"key-%d" % number, value, timestamp_ms=1_700_000_000_000, headers=[Header("h\x1b[2J", b"\x07")])
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(builder.build())
    return path


def in_terminal(*arguments: str | Path, width: int = 80, **environment: str) -> str:
    """What the command prints in a terminal of 80 columns, or of other ones."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    known = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "FORCE_COLOR")}
    process = subprocess.Popen(
        [*EXPLAIN, *map(str, arguments)],
        stdin=its,
        stdout=its,
        stderr=its,
        env={**known, "TERM": "xterm-256color", **environment},
    )
    os.close(its)
    shown = b""
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:  # the terminal was closed at the other end
            break
        if not data:
            break
        shown += data
    os.close(ours)
    assert process.wait() == FINE
    return shown.decode().replace("\r\n", "\n")


def test_in_a_terminal_the_bytes_are_coloured_and_fit_80_columns(segment: Path) -> None:
    shown = in_terminal(segment)
    _, *lines = shown.split("\n")  # the first is the path, which is not broken
    assert max(len(COLOR.sub("", line)) for line in lines) <= 80
    assert len(set(COLOR.findall(shown))) > 8
    plain = COLOR.sub("", shown)
    assert "\x1b" not in plain  # the bytes of the data are not obeyed
    assert "base_timestamp_ms" in plain
    assert "Decompressed: " in plain


def test_in_a_narrow_terminal_rows_have_half_the_bytes(segment: Path) -> None:
    lines = COLOR.sub("", in_terminal(segment, width=60)).split("\n")[1:]
    assert max(map(len, lines)) <= 60
    assert "     +0 +1 +2 +3 +4 +5 +6 +7  text" in lines
    assert "  8  00 00 00" in "\n".join(lines)


def test_no_color_leaves_out_the_colours_and_nothing_else(segment: Path) -> None:
    plain = in_terminal(segment, NO_COLOR="1")
    assert not re.findall(r"\x1b\[[0-9;]*(3[0-7]|9[0-7])[0-9;]*m", plain)
    assert COLOR.sub("", plain) == COLOR.sub("", in_terminal(segment))


def test_in_a_pipe_there_are_80_columns_and_no_escapes(segment: Path) -> None:
    done = subprocess.run([*EXPLAIN, segment], capture_output=True, text=True, check=True)
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines()[1:])) <= 80
    assert done.stderr == ""


def test_a_locale_without_our_signs_gets_question_marks(segment: Path) -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*EXPLAIN, segment], capture_output=True, env=environment, check=True)
    assert b"?" in done.stdout
    assert done.stderr == b""


def test_each_field_is_told_with_bytes_name_value_and_meaning(
    segment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", str(segment)]) == FINE
    said = capsys.readouterr().out
    assert "43  0000000000000007    producer_id       7\n" in said
    assert said.count("Who sent the batch") == 1
    assert said.count("Milliseconds after the batch's base timestamp.") == 1  # and not for each record
    assert "12 not shown one by one" in said
    assert "more bytes of value" in said


def test_everything_is_shown_if_asked_for(segment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(segment), "--all"]) == FINE
    said = capsys.readouterr().out
    assert "record 19" in said
    assert "not shown" not in said
    assert "more bytes" not in said


@pytest.mark.parametrize("name", files.names())
def test_every_kind_of_batch_is_explained(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(files.FOLDER / f"{name}.bin")]) == FINE
    assert max(map(len, capsys.readouterr().out.splitlines()[1:])) <= 80


def test_damage_is_said_first_and_in_its_place(segment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = bytearray(segment.read_bytes())
    data[17] ^= 1
    segment.write_bytes(data)
    assert main(["explain", str(segment)]) == DAMAGE_FOUND
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith("wrong: crc at byte 17 of the file: wrong: the bytes give")
    assert [line for line in lines if "← wrong: the bytes give" in line]


def test_a_page_is_written(segment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "page.html"
    assert main(["explain", str(segment), "--html", str(target)]) == FINE
    assert "base_timestamp_ms" in target.read_text("utf-8")
    assert capsys.readouterr().out == ""
    assert main(["explain", str(segment), "--html", str(segment)]) == COULD_NOT_RUN
    assert "is not overwritten" in capsys.readouterr().err


def test_a_name_that_a_terminal_would_obey_is_shown(
    segment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", str(segment), "--html", str(tmp_path / "\x1b[2Jpage.html")]) == FINE
    assert capsys.readouterr().err.endswith("\\x1b[2Jpage.html\n")


def test_bad_input_is_refused_with_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "fifo.log")
    (tmp_path / "notes.txt").write_text("this is no segment, and says so\n" * 10)
    (tmp_path / "empty.txt").write_bytes(b"")
    bad = ("missing.log", "fifo.log", "notes.txt", "empty.txt", "/dev/zero", "/proc/version", "/proc/self/mem", "")
    for path in [tmp_path / name for name in bad]:
        assert main(["explain", str(path)]) == COULD_NOT_RUN
        told = capsys.readouterr()
        assert told.out == ""
        assert len(told.err.splitlines()) == 1
    (tmp_path / "empty.log").write_bytes(b"")
    assert main(["explain", str(tmp_path / "empty.log")]) == FINE
    assert "which is empty" in capsys.readouterr().out
    for arguments in (["--offset", "-1"], ["--offset", "1", "--position", "1"], ["--records", "many"]):
        assert main(["explain", "file", *arguments]) == COULD_NOT_RUN


@pytest.mark.parametrize("colours", [{}, {"FORCE_COLOR": "1"}])
def test_a_closed_pipe_ends_it_quietly(segment: Path, colours: dict[str, str]) -> None:
    with subprocess.Popen(
        [*EXPLAIN, "--all", segment], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | colours
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == BROKEN_PIPE


def test_it_starts_without_heavy_libraries(segment: Path) -> None:
    assert not modules_after("explain", str(segment)) & {"numba", "numpy", "pyarrow", "pyspark"}


def test_the_page_for_users_shows_what_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (Path(__file__).resolve().parents[3] / "docs" / "explain.md").read_text("utf-8")
    command, shown = re.findall(r"```console\n\$ octavo (.*?)\n(.*?)```", text, re.DOTALL)[0]
    path = tmp_path / command.split()[1]
    path.parent.mkdir()
    path.write_bytes(worked("batch-v2")[0])
    monkeypatch.chdir(tmp_path)
    assert main(command.split()) == FINE
    assert capsys.readouterr().out == shown
