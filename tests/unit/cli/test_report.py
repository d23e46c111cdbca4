"""`octavo report`: what it writes, and what it refuses."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn

import pytest

from octavo.cli import main
from octavo.cli.exits import COULD_NOT_RUN, DAMAGE_FOUND, FINE
from octavo.inspect.report import gathering
from octavo.records import BatchBuilder
from tests.permissions import run_obeying_permissions


@pytest.fixture
def data(tmp_path: Path) -> Path:
    builder = BatchBuilder()
    builder.append(b"k", b"v", timestamp_ms=1_700_000_000_000)
    folder = tmp_path / "data" / "events-0"
    folder.mkdir(parents=True)
    (folder / "00000000000000000000.log").write_bytes(builder.build())
    return folder.parent


def test_a_page_is_written_and_nothing_else(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(data.rglob("*"))
    target = tmp_path / "report.html"
    assert main(["report", str(data), "--html", str(target)]) == FINE
    page = target.read_text("utf-8")
    assert "events-0" in page
    assert "no rule is broken" in page
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", f"Written: {target}\n")
    assert sorted(data.rglob("*")) == before


def test_problems_are_in_the_page_and_in_the_exit_code(data: Path, tmp_path: Path) -> None:
    segment = next(data.rglob("*.log"))
    content = bytearray(segment.read_bytes())
    content[-1] ^= 1
    segment.write_bytes(content)
    target = tmp_path / "report.html"
    assert main(["report", str(data), "--html", str(target)]) == DAMAGE_FOUND
    page = target.read_text("utf-8")
    assert "<b>batch-crc</b>" in page
    assert "1 problem" in page
    assert main(["report", str(data), "--html", str(target), "--no-verify"]) == FINE
    assert "not looked for" in target.read_text("utf-8")


def test_it_is_refused_before_anything_is_read(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    segment = next(data.rglob("*.log"))
    content = segment.read_bytes()
    for arguments in (
        [str(data), "--html", str(segment)],
        [str(data), "--html", str(tmp_path / "no" / "page.html")],
        [str(segment), "--html", str(tmp_path / "page.html")],
        [str(tmp_path / "missing"), "--html", str(tmp_path / "page.html")],
        [str(data), "--html", str(tmp_path / "page.html"), "--jobs", "0"],
        [str(data), "--html", ""],
        ["", "--html", str(tmp_path / "page.html")],
        [str(data)],
    ):
        assert main(["report", *arguments]) == COULD_NOT_RUN
        assert "Traceback" not in capsys.readouterr().err
    assert segment.read_bytes() == content
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("name", ["events-0/00000000000000000000.log", "meta.properties"])
def test_what_cannot_be_read_is_in_the_page_and_in_the_exit_code(data: Path, tmp_path: Path, name: str) -> None:
    (data / name).touch()
    (data / name).chmod(0)
    target = tmp_path / "report.html"
    command = [sys.executable, "-m", "octavo.cli", "report", str(data), "--html", str(target)]
    done = run_obeying_permissions(command)
    assert done.returncode == COULD_NOT_RUN
    assert done.stderr.splitlines()[0] == f"Written: {target}"
    assert done.stderr.splitlines()[1].startswith("octavo: not everything could be read: ")
    assert done.stderr.endswith("ermission denied\n")
    assert "Errno" not in done.stderr
    page = target.read_text("utf-8")
    assert '<div class="tile bad"><dt>problems</dt><dd>1 not read</dd></div>' in page
    assert f"{name}: " in page
    assert "no rule is broken" in page
    assert "Every byte was checked" not in page


def test_a_directory_that_cannot_be_listed_is_refused_with_one_sentence(data: Path, tmp_path: Path) -> None:
    data.chmod(0o100)
    command = [sys.executable, "-m", "octavo.cli", "report", str(data), "--html", str(tmp_path / "report.html")]
    done = run_obeying_permissions(command)
    data.chmod(0o700)
    assert (done.returncode, done.stderr) == (COULD_NOT_RUN, f"octavo: {data}: cannot be read: Permission denied\n")
    assert not (tmp_path / "report.html").exists()


def test_a_name_that_a_terminal_would_obey_is_shown(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(data), "--html", str(tmp_path / "\x1b[2Jpage.html")]) == FINE
    assert capsys.readouterr().err.endswith("\\x1b[2Jpage.html\n")


def test_nothing_is_read_if_the_page_cannot_be_written(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_partitions(path: Path) -> NoReturn:
        raise AssertionError(f"{path} is read")

    monkeypatch.setattr(gathering, "find_partitions", find_partitions)
    assert main(["report", str(data), "--html", "/proc/page.html"]) == COULD_NOT_RUN
    told = capsys.readouterr().err
    assert told.startswith("octavo: /proc/page.html cannot be written: ")
    assert "Errno" not in told
