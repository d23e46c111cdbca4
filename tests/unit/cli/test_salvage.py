"""`octavo salvage`: exit codes, what it prints, what it refuses, and what an interruption leaves."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from octavo.cli import main
from octavo.cli import salvage as command
from octavo.cli.exits import COULD_NOT_RUN, DAMAGE_FOUND, FINE, INTERRUPTED
from octavo.errors import BadDirectory
from octavo.inspect.salvage import salvage
from octavo.log import Log
from octavo.log.storage import File, Storage
from tests.crash.storage import FastStorage
from tests.permissions import run_obeying_permissions
from tests.unit.cli.test_command import OCTAVO
from tests.unit.inspect.salvage.damaging import batches_in, data_batch, is_filler


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "source").mkdir()
    log = Log.open(tmp_path / "source" / "events-0", storage=FastStorage())
    random = Random(2)
    for _ in range(10):
        log.append(data_batch(random, 2))
    log.close()
    return tmp_path / "source" / "events-0"


def damage(source: Path) -> None:
    [path] = source.glob("*.log")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def test_a_sound_partition_is_copied_and_nothing_is_lost(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["salvage", str(source), str(tmp_path / "safe-0")]) == FINE
    out, err = capsys.readouterr()
    size = sum(map(len, batches_in(source).values()))
    assert out.splitlines() == [
        f"events-0 -> {tmp_path / 'safe-0'}",
        f"  kept      10 batches, {size:,} bytes, 1 segment(s), offsets 0 to 19",
        "  lost      nothing",
    ]
    assert err == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["safe-0", "source"]


def test_what_is_lost_is_printed_and_the_exit_code_is_1(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(source)
    assert main(["salvage", str(source), str(tmp_path / "safe-0")]) == DAMAGE_FOUND
    out, _ = capsys.readouterr()
    assert "  lost      offsets 8 to 9 (2)\n" in out or "  lost      offsets 10 to 11 (2)\n" in out
    assert f"  damaged   {source / '00000000000000000000.log'} at byte " in out
    assert "(lost): checksum is 0x" in out
    assert main(["salvage", str(source), str(tmp_path / "again-0"), "--json"]) == DAMAGE_FOUND
    report = json.loads(capsys.readouterr().out)
    [partition] = report["partitions"]
    assert report["hasLost"] is partition["hasLost"] is True
    assert partition["lost"][0]["lastOffset"] == partition["lost"][0]["firstOffset"] + 1
    [damaged] = partition["damage"]
    assert damaged["file"] == str(source / "00000000000000000000.log")
    assert damaged["offsetBehind"] == damaged["offsetBefore"] + 3
    assert batches_in(tmp_path / "safe-0") == batches_in(tmp_path / "again-0")


def test_what_cannot_be_used_is_refused_in_one_sentence(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [segment] = source.glob("*.log")
    other = tmp_path / "other-1"
    other.mkdir()
    (other / segment.name).write_bytes(segment.read_bytes())
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "something").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    target = tmp_path / "safe-0"
    (tmp_path / "__cluster_metadata-0").mkdir()
    (tmp_path / "__cluster_metadata-0" / segment.name).write_bytes(segment.read_bytes())
    cases: list[tuple[list[Path], str]] = [
        ([tmp_path / "nothing", target], "there is no such folder"),
        ([segment, target], "this is no folder"),
        ([tmp_path / "pipe", target], "this is no folder"),
        ([Path("/dev/null"), target], "this is no folder"),
        ([tmp_path / "empty", target], "neither a segment"),
        ([source, source, target], "twice"),
        ([source, other, target], "different partitions"),
        ([source, source.parent, target], "and not both"),
        ([tmp_path / "__cluster_metadata-0", target], "must not have gaps"),
        ([source, tmp_path / "full"], "something in it"),
        ([source, segment], "neither in the source"),
        ([source, source], "neither in the source"),
        ([source, source / "inside"], "neither in the source"),
        ([source, source.parent], "neither in the source"),
        ([source, tmp_path / "pipe"], "there is a file of this name"),
        ([source, tmp_path / "link"], "there is a file of this name"),
        ([source, Path("/dev")], "something in it"),
        ([source, tmp_path / "no" / "folder"], "no folder in which to make it"),
    ]
    for arguments, words in cases:
        assert main(["salvage", *map(str, arguments)]) == COULD_NOT_RUN, words
        out, err = capsys.readouterr()
        assert out == ""
        assert words in err
        assert err.count("\n") == 1
    assert not target.exists()
    assert sorted(path.name for path in (tmp_path / "full").iterdir()) == ["something"]


def test_a_folder_without_permission_is_refused(source: Path, tmp_path: Path) -> None:
    source.chmod(0)
    done = run_obeying_permissions([*OCTAVO, "salvage", str(source), str(tmp_path / "safe-0")])
    source.chmod(0o755)
    assert done.returncode == COULD_NOT_RUN
    assert done.stderr.count("\n") == 1
    assert "permission" in done.stderr
    [segment] = source.glob("*.log")
    segment.chmod(0)
    done = run_obeying_permissions([*OCTAVO, "salvage", str(source), str(tmp_path / "safe-0")])
    assert (done.returncode, done.stderr.count("\n")) == (COULD_NOT_RUN, 1)
    assert not (tmp_path / "safe-0").exists()


def test_pipes_and_folders_among_the_segments_are_ignored_and_what_was_there_is_lost(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(source / "00000000000000000100.log")
    (source / "00000000000000000200.log").mkdir()
    assert main(["salvage", str(source), str(tmp_path / "safe-0")]) == DAMAGE_FOUND
    out = capsys.readouterr().out
    assert "00000000000000000100.log: not part of the log" in out
    assert "  lost      offsets 20 to 199 (180)\n" in out
    result = batches_in(tmp_path / "safe-0")
    assert is_filler(result.pop(20))
    assert result.keys() == set(range(0, 20, 2))


def test_the_current_folder_may_be_the_target(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert main(["salvage", "../source/events-0", "."]) == FINE
    assert capsys.readouterr().err == ""
    assert batches_in(tmp_path / "here") == batches_in(source)


def test_a_folder_that_was_set_aside_is_a_source(source: Path, tmp_path: Path) -> None:
    aside = source.rename(tmp_path / "events-0.0123456789abcdef0123456789abcdef-stray")
    assert main(["salvage", str(aside), str(tmp_path / "safe")]) == FINE
    assert batches_in(tmp_path / "safe") == batches_in(aside)


class Interrupting(FastStorage):
    """A disk at which Ctrl+C is pressed before the operation of a number."""

    def __init__(self, number: int) -> None:
        self.left = number

    def _count(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt

    def open_to_write(self, path: Path, *, create: bool = False) -> File:
        self._count()
        return super().open_to_write(path, create=create)

    def rename(self, source: Path, target: Path) -> None:
        self._count()
        super().rename(source, target)

    def sync_folder(self, path: Path) -> None:
        self._count()


def test_an_interruption_at_any_point_leaves_no_target_or_a_whole_one(source: Path, tmp_path: Path) -> None:
    damage(source)
    whole = salvage([source], tmp_path / "whole", storage=FastStorage())
    expected = batches_in(tmp_path / "whole")
    interrupted = 0
    for number in range(1, 1000):
        storage: Storage = Interrupting(number)
        try:
            done = salvage([source], tmp_path / "safe-0", storage=storage)
        except KeyboardInterrupt:
            interrupted += 1
            left = sorted(path.name for path in tmp_path.iterdir())
            if left == ["safe-0", "source", "whole"]:  # in the sync after the last step
                assert batches_in(tmp_path / "safe-0") == expected
                break
            assert left == ["source", "whole"], number
        else:
            assert done.has_lost is whole.has_lost
            break
    assert interrupted > 10


def run_with(program: str, source: Path, target: Path) -> subprocess.CompletedProcess[str]:
    """Run a salvage after some lines of Python."""
    whole = (
        "import os, resource, signal, sys\n"
        "from octavo.inspect.salvage import salvaging\n"
        f"{program}\n"
        "from octavo.cli import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    return subprocess.run(
        [sys.executable, "-c", whole, "salvage", str(source), str(target)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_to_end_leaves_nothing(source: Path, tmp_path: Path, name: str) -> None:
    program = (
        f"signal.signal(signal.{name}, signal.SIG_DFL)\n"  # the tests may run under nohup
        "def stop(*arguments):\n"
        f"    os.kill(os.getpid(), signal.{name})\n"
        "    raise AssertionError('it goes on')\n"
        "salvaging.write_segments = stop\n"
    )
    done = run_with(program, source, tmp_path / "safe-0")
    assert (done.returncode, done.stderr) == (INTERRUPTED, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source"]


def test_under_nohup_a_salvage_outlives_its_terminal(source: Path, tmp_path: Path) -> None:
    program = (
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "write = salvaging.write_segments\n"
        "def hang_up(*arguments):\n"
        "    os.kill(os.getpid(), signal.SIGHUP)\n"
        "    write(*arguments)\n"
        "salvaging.write_segments = hang_up\n"
    )
    assert run_with(program, source, tmp_path / "safe-0").returncode == FINE
    assert batches_in(tmp_path / "safe-0") == batches_in(source)


def test_a_file_that_must_not_become_so_large_is_one_sentence(source: Path, tmp_path: Path) -> None:
    program = "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))"
    done = run_with(program, source, tmp_path / "safe-0")
    assert (done.returncode, done.stderr.count("\n")) == (COULD_NOT_RUN, 1)
    assert f"{tmp_path / 'safe-0'}: a file of the result would be larger" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source"]


class Full(FastStorage):
    """A disk without room."""

    def open_to_write(self, path: Path, *, create: bool = False) -> File:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Racing(FastStorage):
    """A disk on which another salvage finishes first."""

    def rename(self, source: Path, target: Path) -> None:
        if target.name == "safe-0":
            target.mkdir()
            (target / "mine").write_text("this")
        super().rename(source, target)


@pytest.mark.parametrize(("storage", "words"), [(Full(), "not enough room"), (Racing(), "put there meanwhile")])
def test_a_full_disk_and_another_salvage_are_one_sentence(
    source: Path, tmp_path: Path, storage: Storage, words: str
) -> None:
    with pytest.raises(BadDirectory, match=words):
        salvage([source], tmp_path / "safe-0", storage=storage)
    assert [path.name for path in tmp_path.glob(".*")] == []
    assert [path.name for path in tmp_path.glob("safe-0/*")] == (["mine"] if isinstance(storage, Racing) else [])


@pytest.mark.parametrize(("is_damaged", "code"), [(False, FINE), (True, DAMAGE_FOUND)])
def test_a_report_that_cannot_be_written_does_not_hide_the_target(
    source: Path, tmp_path: Path, is_damaged: bool, code: int
) -> None:
    if is_damaged:
        damage(source)
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*OCTAVO, "salvage", str(source), str(tmp_path / "safe-0")],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    assert (done.returncode, done.stderr.count("\n")) == (code, 1)
    assert f"{tmp_path / 'safe-0'} is there, and {'something' if is_damaged else 'nothing'} is lost" in done.stderr
    assert (tmp_path / "safe-0").is_dir()


def test_long_lists_are_shortened(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = Log.open(source, storage=FastStorage())
    for _ in range(60):
        log.append(data_batch(Random(1), 1))
    log.close()
    [path] = source.glob("*.log")
    data = bytearray(path.read_bytes())
    for number, batch in enumerate(batches_in(source).values()):
        if number % 2:
            data[data.index(batch) + 64] ^= 255
    path.write_bytes(data)
    assert main(["salvage", str(source), str(tmp_path / "safe-0")]) == DAMAGE_FOUND
    out = capsys.readouterr().out
    assert out.count("  lost      offsets") == command._SHOWN
    assert "  lost      and 15 more (--json lists all)" in out
