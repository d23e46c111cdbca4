"""Mend 1.8: opening a log cuts off nothing that is sound unless it is told to, keeps what it cuts, and says so."""

from __future__ import annotations

import errno
import logging
from pathlib import Path
from typing import Any

import pytest

from octavo.errors import InvalidInput, WouldLoseRecords
from octavo.log import DataDirectory, Log, Recover
from octavo.log.log import Log as OpenLog
from octavo.log.names import CLEAN_SHUTDOWN
from octavo.records import read_batches
from octavo.server.serving import serve
from tests.clock import Clock
from tests.unit.log.failing import FailingDisk
from tests.unit.log.logs import keys, make_batch

BATCHES = 100


def crashed(folder: Path, *, batches: int = BATCHES, segments: int = 1) -> list[Path]:
    """A directory whose process died, with one partition; its segment files."""
    with DataDirectory.open(folder, clock=Clock()) as data:
        data.create_topic("orders", 1)
        log = data.log("orders", 0)
        for number in range(batches):
            if number and number % -(-batches // segments) == 0:
                log.roll()
            log.append(make_batch(first=number))
    (folder / CLEAN_SHUTDOWN).unlink()
    (folder / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    return sorted((folder / "orders-0").glob("*.log"))


def flip(path: Path, position: int) -> bytes:
    """Flip one bit; returns the file as it is then."""
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)
    return bytes(data)


def batch_at(path: Path, number: int) -> int:
    """The position of a batch in a file."""
    return [batch.position for batch in read_batches(path.read_bytes())][number]


@pytest.mark.parametrize("number", [0, 1, 50, 98])
def test_1_8_what_is_sound_behind_damage_is_not_cut_off(tmp_path: Path, number: int) -> None:
    [path] = crashed(tmp_path)
    position = batch_at(path, number)
    damaged = flip(path, position + 70)
    for _ in range(2):
        with pytest.raises(WouldLoseRecords) as refused, DataDirectory.open(tmp_path, clock=Clock()):
            pass
        error = refused.value
        assert (error.path, error.position, error.before) == (str(path), position, number)
        assert error.behind == BATCHES - number - 1
        assert "octavo salvage SOURCE TARGET" in str(error)
        assert 'recover="as-kafka"' in str(error)
        assert f"{number:,} record(s) lie before that, and {BATCHES - number - 1:,} sound one(s) behind it" in str(
            error
        )
        assert path.read_bytes() == damaged
        assert not (tmp_path / CLEAN_SHUTDOWN).exists()
    with pytest.raises(WouldLoseRecords):
        Log.open(tmp_path / "orders-0", clock=Clock())
    assert path.read_bytes() == damaged


@pytest.mark.parametrize("recover", ["as-kafka", Recover.AS_KAFKA])
def test_1_8_kafkas_way_cuts_says_so_and_keeps_the_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, recover: Recover | str
) -> None:
    [path] = crashed(tmp_path)
    position = batch_at(path, 40)
    damaged = flip(path, position + 70)
    with (
        caplog.at_level(logging.WARNING, "octavo.log"),
        DataDirectory.open(tmp_path, clock=Clock(), recover=recover) as data,
    ):
        log = data.log("orders", 0)
        assert keys(log) == list(range(40))
        [cut] = log.recovery.cuts
        assert log.recovery.kept == [f"{path.name}.lost"]
        assert "kept in 00000000000000000000.log.lost" in str(log.recovery)
    assert (cut.position, cut.size) == (position, len(damaged) - position)
    [said] = [record.getMessage() for record in caplog.records]
    assert said.startswith(f"orders-0: cut {cut.size} bytes off {path.name} at byte {position}, from offset 40 on: ")
    assert "59 sound record(s) lay behind it" in said
    assert (path.parent / f"{path.name}.lost").read_bytes() == damaged
    with DataDirectory.open(tmp_path, clock=Clock()) as data:
        assert keys(data.log("orders", 0)) == list(range(40))


def test_1_8_segments_behind_the_damage_are_kept_too(tmp_path: Path) -> None:
    files = crashed(tmp_path, segments=4)
    held = {path.name: path.read_bytes() for path in files}
    position = batch_at(files[1], 5)
    held[files[1].name] = flip(files[1], position + 70)
    with pytest.raises(WouldLoseRecords) as refused, DataDirectory.open(tmp_path, clock=Clock()):
        pass
    assert (refused.value.before, refused.value.behind) == (30, 69)
    assert {path.name: path.read_bytes() for path in files} == held
    (files[3].parent / f"{files[3].name}.lost").write_bytes(b"of another time")
    with DataDirectory.open(tmp_path, clock=Clock(), recover="as-kafka") as data:
        assert keys(data.log("orders", 0)) == list(range(30))
    folder = files[0].parent
    assert (folder / f"{files[3].name}.lost").read_bytes() == b"of another time"
    assert (folder / f"{files[3].name}.lost.lost").read_bytes() == held[files[3].name]
    for path in files[1:3]:
        assert (folder / f"{path.name}.lost").read_bytes() == held[path.name]
    assert [path.name for path in sorted(folder.glob("*.log"))] == [path.name for path in files[:2]]


def test_1_8_the_end_that_a_crash_leaves_is_cut_and_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    [path] = crashed(tmp_path)
    position = batch_at(path, 99)
    with path.open("r+b") as file:
        file.truncate(position + 20)
    with caplog.at_level(logging.WARNING, "octavo.log"), DataDirectory.open(tmp_path, clock=Clock()) as data:
        assert keys(data.log("orders", 0)) == list(range(99))
        assert data.log("orders", 0).recovery.kept == []
    [said] = [record.getMessage() for record in caplog.records]
    assert said == (
        f"orders-0: cut 20 bytes off {path.name} at byte {position}, from offset 99 on: a batch is not all there"
    )
    assert not list(path.parent.glob("*.lost"))


def test_1_8_zeros_and_garbage_at_the_end_are_cut(tmp_path: Path) -> None:
    [path] = crashed(tmp_path)
    position = batch_at(path, 90)
    data = bytearray(path.read_bytes())
    data[position:] = bytes(len(data) - position) + bytes(range(256)) * 20
    path.write_bytes(data)
    with DataDirectory.open(tmp_path, clock=Clock()) as opened:
        assert keys(opened.log("orders", 0)) == list(range(90))


def test_1_8_where_the_copy_does_not_fit_nothing_is_cut(tmp_path: Path) -> None:
    [path] = crashed(tmp_path)
    damaged = flip(path, batch_at(path, 10) + 70)
    disk = FailingDisk()
    disk.fails = lambda what, path: what == "write" and ".lost" in path.name
    with pytest.raises(OSError, match="cannot be kept beside; nothing was cut") as full:
        DataDirectory.open(tmp_path, clock=Clock(), storage=disk, recover="as-kafka")
    assert full.value.errno == errno.ENOSPC
    assert path.read_bytes() == damaged
    assert not [found for found in path.parent.iterdir() if ".lost" in found.name]


def test_1_8_a_broker_does_as_kafka_and_tells_the_operator(tmp_path: Path) -> None:
    [path] = crashed(tmp_path)
    flip(path, batch_at(path, 40) + 70)
    said: list[str] = []
    with serve(tmp_path, say=said.append) as server:
        assert server.directory.log("orders", 0).end_offset == 40
    [line] = [sentence for sentence in said if sentence.startswith("orders-0: ")]
    assert f"off {path.name} at byte" in line
    assert f"they are kept in {path.name}.lost" in line


def test_1_8_other_ways_are_refused(tmp_path: Path) -> None:
    crashed(tmp_path)
    wrongs: list[Any] = ["nonsense", "AS_KAFKA", True, None]
    for wrong in wrongs:
        with pytest.raises(InvalidInput, match="it must be one of refuse, as-kafka"):
            DataDirectory.open(tmp_path, recover=wrong)
        with pytest.raises(InvalidInput, match="it must be one of refuse, as-kafka"):
            OpenLog.open(tmp_path / "orders-0", recover=wrong)
