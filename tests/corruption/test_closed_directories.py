"""Bits flipped in a directory that was closed cleanly: the damage belongs to its partition, and nothing is cut."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from octavo.errors import FormatError
from octavo.log import DataDirectory, Log
from octavo.records.layout import BATCH_HEADER
from octavo.records.reader import read_batches
from tests.crash.storage import FastStorage
from tests.unit.log.logs import TIME_MS, make_batch

CONFIG: Final = {"internal.segment.bytes": "1000", "index.interval.bytes": "200"}
BATCHES: Final = 24
BITS: Final = (0, 7)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        yield Path(name)


@pytest.fixture(scope="module")
def closed(folder: Path) -> Path:
    """A directory with a log of several segments, and another log."""
    path = folder / "closed"
    path.mkdir()
    with DataDirectory.open(path, storage=FastStorage()) as data:
        data.create_topic("damaged", 1, CONFIG)
        data.create_topic("other", 1)
        for number in range(BATCHES):
            data.log("damaged", 0).append(make_batch(2, first=2 * number))
        data.log("other", 0).append(make_batch())
        assert len(data.log("damaged", 0).segments) == 6
    return path


def last_batch(path: Path) -> int:
    """Where the last batch of a segment begins."""
    return list(read_batches(path.read_bytes()))[-1].position


def open_flipped(closed: Path, folder: Path, name: str, at: int, bit: int) -> tuple[DataDirectory, Path]:
    """Open a copy of the directory in which one bit of a segment is another; the segment's file."""
    flipped = folder / "flipped"
    shutil.rmtree(flipped, ignore_errors=True)
    shutil.copytree(closed, flipped)
    path = flipped / "damaged-0" / name
    data = bytearray(path.read_bytes())
    data[at] ^= 1 << bit
    path.write_bytes(data)
    return DataDirectory.open(flipped, storage=FastStorage()), path


def is_readable(log: Log, offset: int) -> bool:
    """Whether the batch of an offset can be read."""
    try:
        batch = next(iter(log.reader(offset)))
    except FormatError:
        return False
    return batch.base_offset <= offset <= batch.last_offset


@pytest.mark.parametrize("number", [0, -1])
def test_a_flipped_bit_near_the_end_of_a_segment_refuses_nothing_and_cuts_nothing(
    closed: Path, folder: Path, number: int
) -> None:
    name = sorted(path.name for path in (closed / "damaged-0").glob("*.log"))[number]
    start = last_batch(closed / "damaged-0" / name)
    for at in range(start, start + BATCH_HEADER.size):
        for bit in BITS:
            data, path = open_flipped(closed, folder, name, at, bit)
            with data:
                flipped = path.read_bytes()
                assert data.log("other", 0).append(make_batch()).base_offset == 1
                log = data.log("damaged", 0)
                assert not log.recovery.cuts
                end = log.append(make_batch()).base_offset
                assert end >= 2 * BATCHES, f"byte {at}, bit {bit}: {log.recovery}"
                assert end == 2 * BATCHES or log.recovery.damaged
            assert path.read_bytes()[: len(flipped)] == flipped
            with DataDirectory.open(path.parent.parent, storage=FastStorage()) as data:
                log = data.log("damaged", 0)
                assert log.end_offset == end + 1
                assert is_readable(log, end), f"byte {at}, bit {bit}: {log.recovery}"
                before = [offset for offset in range(0, 2 * BATCHES, 2) if is_readable(log, offset)]
                assert len(before) >= BATCHES - 1, f"byte {at}, bit {bit}: only {before} of it can be read"


@pytest.mark.parametrize("magic", [3, 6])
def test_a_batch_whose_magic_is_damaged_is_not_taken_for_a_new_format(closed: Path, folder: Path, magic: int) -> None:
    bit = {3: 0, 6: 2}[magic]
    data, _ = open_flipped(closed, folder, f"{0:020d}.log", BATCH_HEADER.at("magic"), bit)
    with data:
        assert data.log("other", 0).end_offset == 1
        assert data.log("damaged", 0).end_offset == 2 * BATCHES


def test_bytes_behind_the_recorded_end_are_cut_off(closed: Path, folder: Path) -> None:
    garbage = folder / "garbage"
    shutil.copytree(closed, garbage)
    path = max((garbage / "damaged-0").glob("*.log"))
    with path.open("ab") as file:
        file.write(b"garbage")
    with DataDirectory.open(garbage, storage=FastStorage()) as data:
        log = data.log("damaged", 0)
        assert [cut.size for cut in log.recovery.cuts] == [7]
        assert not log.recovery.damaged
        assert log.append(make_batch()).base_offset == 2 * BATCHES


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_log_with_a_batch_at_the_smallest_offset_is_closed(tmp_path: Path, number: int) -> None:
    """Such an offset does not fit into an index, wherever the batch is that has the largest timestamp."""
    with Log.open(tmp_path / "t-0", storage=FastStorage()) as log:
        for at in range(3):
            log.append(make_batch(time_ms=TIME_MS + (at == number)))
    path = tmp_path / "t-0" / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    start = list(read_batches(data))[number].position
    data[start : start + 8] = (-(1 << 63)).to_bytes(8, "big", signed=True)
    path.write_bytes(data)
    for _ in range(2):
        with Log.open(tmp_path / "t-0", storage=FastStorage()) as log:
            assert log.end_offset == 3
            assert log.recovery.damaged or number < 2


def test_a_gap_before_the_last_batch_is_no_damage_where_no_end_was_recorded(tmp_path: Path) -> None:
    """As in a compacted log that was copied without its checkpoints and snapshots."""
    last = bytearray(make_batch(first=7))
    last[:8] = (7).to_bytes(8, "big")
    last[12:16] = bytes(4)  # the leader epoch
    with DataDirectory.open(tmp_path, storage=FastStorage()) as data:
        data.create_topic("gap")
        data.log("gap", 0).append(make_batch())
        data.log("gap", 0).append_as_follower(bytes(last))
    (tmp_path / "recovery-point-offset-checkpoint").unlink()
    for snapshot in tmp_path.glob("gap-0/*.snapshot"):
        snapshot.unlink()
    with DataDirectory.open(tmp_path, storage=FastStorage()) as data:
        log = data.log("gap", 0)
        assert log.recovery.was_clean
        assert log.recovery.damaged == []
        assert len(log.segments) == 1
        assert log.end_offset == 8
