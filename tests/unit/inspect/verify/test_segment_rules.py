"""Faults of whole segments and of their indexes are found where they are, in files that Kafka wrote."""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from octavo.inspect.verify import check_file, check_partition, looks, partition
from octavo.inspect.verify.problem import Problem
from octavo.inspect.verify.surroundings import surroundings
from tests.golden.cases import TIME_MS
from tests.golden.directories import unpack
from tests.golden.files import load
from tests.unit.inspect.verify.planted_batches import BEFORE, at_offset, write_log
from tests.unit.inspect.verify.planting import Fault, rewrite

DEALS: Final = "deals-0"
INDEX: Final = f"{DEALS}/00000000000000000006.index"
TIMES: Final = f"{DEALS}/00000000000000000006.timeindex"
ENTRY: Final = struct.Struct(">ii")
TIME_ENTRY: Final = struct.Struct(">qi")


def entry(number: int, offset: int = 0, position: int = 0) -> Callable[[Path], object]:
    """Return a plant that adds numbers to an entry of the offset index."""

    def change(data: bytes) -> bytes:
        at = number * ENTRY.size
        old_offset, old_position = ENTRY.unpack_from(data, at)
        return data[:at] + ENTRY.pack(old_offset + offset, old_position + position) + data[at + ENTRY.size :]

    return rewrite(INDEX, change)


def time_entry(number: int, timestamp: int = 0, offset: int = 0) -> Callable[[Path], object]:
    """Return a plant that adds numbers to an entry of the time index."""

    def change(data: bytes) -> bytes:
        at = number * TIME_ENTRY.size
        old_timestamp, old_offset = TIME_ENTRY.unpack_from(data, at)
        return data[:at] + TIME_ENTRY.pack(old_timestamp + timestamp, old_offset + offset) + data[at + 12 :]

    return rewrite(TIMES, change)


INDEXES: Final = [
    Fault("index-size", rewrite(INDEX, lambda data: data + b"\1\2\3"), INDEX, 16),
    Fault("index-zero-tail", rewrite(INDEX, lambda data: data + bytes(24)), INDEX, 16),
    Fault("index-missing", lambda directory: (directory / INDEX).unlink(), INDEX, None, 6),
    Fault("index-order", rewrite(INDEX, lambda data: data[8:] + data[:8]), INDEX, 8, 7),
    Fault("index-position", entry(0, position=1), INDEX, 0, 7),
    Fault("index-position", entry(1, position=4711), INDEX, 8, 10),
    Fault("index-offset", entry(0, offset=-1), INDEX, 0, 6),
    Fault("index-offset", entry(1, offset=1), INDEX, 8, 11),
    Fault("timeindex-size", rewrite(TIMES, lambda data: data + b"\1"), TIMES, 24),
    Fault("timeindex-zero-tail", rewrite(TIMES, lambda data: data + bytes(12)), TIMES, 24),
    Fault("timeindex-order", rewrite(TIMES, lambda data: data[12:] + data[:12]), TIMES, 12, 7),
    Fault("timeindex-offset", time_entry(1, offset=50), TIMES, 12, 60),
    Fault("timeindex-timestamp", time_entry(1, timestamp=1), TIMES, 12, 10),
]


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "_PAUSE_S", 0.0)


@pytest.mark.parametrize("fault", INDEXES, ids=str)
def test_a_fault_in_an_index_is_found_where_it_is(fault: Fault, tmp_path: Path) -> None:
    fault.check(unpack("closed", tmp_path), DEALS)


def write_clean(tmp_path: Path, data: bytes, base_offset: int = 0) -> Path:
    (tmp_path / ".kafka_cleanshutdown").touch()
    return write_log(tmp_path / "planted-0", data, base_offset)


def first_offset(tmp_path: Path) -> Path:
    return write_log(tmp_path / "planted-0", at_offset(100, BEFORE), 101)


def overlap(tmp_path: Path) -> Path:
    write_log(tmp_path / "planted-0", at_offset(100, BEFORE) + at_offset(106, BEFORE), 100)
    return write_log(tmp_path / "planted-0", at_offset(112, BEFORE), 110)


def offset_range(tmp_path: Path) -> Path:
    return write_log(tmp_path / "planted-0", BEFORE + at_offset(2**31, BEFORE))


def size(tmp_path: Path) -> Path:
    folder = write_log(tmp_path / "planted-0", BEFORE, 100)
    with (folder / f"{100:020d}.log").open("ab") as file:
        file.truncate(2**31)  # takes no space on the disk
    return folder


def torn_tail(tmp_path: Path) -> Path:
    return write_clean(tmp_path, BEFORE + at_offset(106, BEFORE)[:-1], 100)


def zero_tail(tmp_path: Path) -> Path:
    return write_clean(tmp_path, BEFORE + bytes(100), 100)


def largest_timestamp(tmp_path: Path) -> Path:
    """Return a log whose first batch has the largest timestamp, and an index that says so of the second."""
    folder = write_log(tmp_path / "planted-0", BEFORE + at_offset(200, load("commit").data), 100)
    (folder / f"{100:020d}.timeindex").write_bytes(TIME_ENTRY.pack(TIME_MS, 100))
    return folder


def emptied(directory: Path, *, indexes: tuple[str, ...] = (".index", ".timeindex")) -> Path:
    folder = write_log(directory / "events-0", b"", 100)
    entries = {".index": (8, 4), ".timeindex": (12, 8)}
    for index in indexes:
        size, at = entries[index]
        rows = (number.to_bytes(at) + (number * 100).to_bytes(size - at) for number in range(1, 88))
        (folder / f"{100:020d}{index}").write_bytes(b"".join(rows))
    return write_log(folder, at_offset(40_000, BEFORE), 40_000)


SEGMENTS: Final[list[tuple[str, Callable[[Path], Path], str, int, int | None]]] = [
    ("segment-base-offset", first_offset, f"{101:020d}.log", 0, 100),
    ("segment-overlap", overlap, f"{100:020d}.log", len(BEFORE), 106),
    ("segment-offset-range", offset_range, f"{0:020d}.log", len(BEFORE), 2**31),
    ("segment-size", size, f"{100:020d}.log", 2**31 - 1, None),
    ("segment-emptied", emptied, f"{100:020d}.log", 0, 100),
    ("segment-emptied", lambda at: emptied(at, indexes=(".timeindex",)), f"{100:020d}.log", 0, 100),
    ("segment-torn-tail", torn_tail, f"{100:020d}.log", len(BEFORE), 106),
    ("segment-zero-tail", zero_tail, f"{100:020d}.log", len(BEFORE), 106),
    ("timeindex-maximum", largest_timestamp, f"{100:020d}.timeindex", 0, 200),
]


@pytest.mark.parametrize(("rule", "plant", "file", "position", "offset"), SEGMENTS)
def test_a_fault_of_a_segment_is_found_where_it_is(
    rule: str, plant: Callable[[Path], Path], file: str, position: int, offset: int | None, tmp_path: Path
) -> None:
    folder = plant(tmp_path)
    found = [problem for problem in check_partition(folder) if problem.rule.name != "index-missing"]
    places = [(each.rule.name, each.file, each.position, each.offset) for each in found]
    assert places == [(rule, file, position, offset)]
    assert rule not in rules(check_partition(folder, ignore={rule}))


def rules(problems: Iterable[Problem]) -> list[str]:
    return [problem.rule.name for problem in problems]


def test_a_tail_is_no_problem_where_a_broker_may_be_writing_it(tmp_path: Path) -> None:
    folder = write_log(tmp_path / "events-0", BEFORE + at_offset(106, BEFORE)[:-1], 100)
    assert rules(check_partition(folder)) == []  # a copy of a partition
    (tmp_path / "meta.properties").write_text("version=1\n")
    assert rules(check_partition(folder)) == []  # a broker is running, or has crashed
    write_log(folder, at_offset(112, BEFORE), 112)
    assert rules(check_partition(folder)) == ["segment-torn-tail"]  # nobody writes to a segment that is not the last


def test_a_tail_of_a_single_file_is_reported(tmp_path: Path) -> None:
    folder = write_log(tmp_path / "events-0", BEFORE + at_offset(106, BEFORE)[:-1], 100)
    assert rules(check_file(folder / f"{100:020d}.log")) == ["segment-torn-tail"]


def test_a_preallocated_segment_that_is_being_written_is_sound(tmp_path: Path) -> None:
    folder = write_log(tmp_path / "events-0", BEFORE + bytes(1 << 16), 100)
    (tmp_path / "meta.properties").write_text("version=1\n")
    for index in (".index", ".timeindex"):
        (folder / f"{100:020d}{index}").write_bytes(bytes(960))
    assert rules(check_partition(folder)) == []


def test_messages_that_lost_their_timestamps_to_an_old_format_keep_them_in_the_index(tmp_path: Path) -> None:
    """As brokers write them with `message.format.version` 0.9.0; entries for newer messages have to be right."""
    old, new = load("v0-none").data, load("v1-none").data
    (offset,) = struct.unpack_from(">q", old)
    folder = write_clean(tmp_path, old, offset)
    (folder / f"{offset:020d}.index").touch()
    times = folder / f"{offset:020d}.timeindex"
    times.write_bytes(TIME_ENTRY.pack(TIME_MS - 1, 0))
    assert rules(check_partition(folder)) == []
    (folder / f"{offset:020d}.log").write_bytes(new)
    assert rules(check_partition(folder)) == ["timeindex-timestamp"]


def test_zeros_inside_a_segment_are_no_tail(tmp_path: Path) -> None:
    folder = write_log(tmp_path / "events-0", BEFORE + bytes(5000) + at_offset(106, BEFORE), 100)
    assert rules(check_partition(folder)) == ["batch-length"]


def test_the_indexes_that_recovery_will_rebuild_are_not_checked(tmp_path: Path) -> None:
    directory = unpack("crashed", tmp_path)
    last = max((directory / DEALS).glob("*.index"))
    last.write_bytes(b"\1" * 16)
    assert rules(check_partition(directory / DEALS)) == []
    (directory / ".kafka_cleanshutdown").touch()
    assert set(rules(check_partition(directory / DEALS))) & {"index-position", "index-order"}


def test_damage_does_not_blame_the_indexes(tmp_path: Path) -> None:
    directory = unpack("closed", tmp_path)
    log = directory / DEALS / f"{6:020d}.log"
    data = bytearray(log.read_bytes())
    data[100] ^= 1
    log.write_bytes(data)
    assert rules(check_file(log)) == ["batch-crc"]


def test_damage_at_the_end_that_recovery_will_cut_is_no_problem_until_a_broker_runs(tmp_path: Path) -> None:
    folder = write_log(tmp_path / "events-0", BEFORE + at_offset(106, BEFORE)[:-9] + b"\1garbage\1", 100)
    assert rules(check_partition(folder)) == ["batch-crc"]
    (tmp_path / "meta.properties").write_text("version=1\n")
    assert rules(check_partition(folder)) == []
    with locked(tmp_path):
        assert rules(check_partition(folder)) == ["batch-crc"]


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Have another process hold the lock of a directory, as a broker does."""
    take = "import fcntl, sys; file = open(sys.argv[1], 'w'); fcntl.lockf(file, 2); print('held', flush=True); input()"
    command = [sys.executable, "-c", take, str(directory / ".lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        yield
        holder.communicate(b"\n")


def preallocate_indexes(folder: Path) -> None:
    for suffix in (".index", ".timeindex"):
        with (folder / f"{100:020d}{suffix}").open("ab") as file:
            file.truncate(240)


def test_the_indexes_of_a_broker_that_is_starting_are_preallocated_before_it_removes_the_mark(tmp_path: Path) -> None:
    folder = write_clean(tmp_path, BEFORE, 100)
    preallocate_indexes(folder)
    assert rules(check_partition(folder)) == ["index-zero-tail", "timeindex-zero-tail"]
    with locked(tmp_path):
        assert rules(check_partition(folder)) == []


def test_a_broker_may_start_after_the_directory_was_read_and_before_a_partition_is(tmp_path: Path) -> None:
    folder = write_clean(tmp_path, BEFORE, 100)
    before = surroundings(folder)
    (tmp_path / ".kafka_cleanshutdown").unlink()
    (tmp_path / "meta.properties").touch()
    preallocate_indexes(folder)
    assert rules(check_partition(folder, beside=before)) == []


def test_segments_that_the_cleaner_replaces_during_a_look_are_no_overlap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_log(tmp_path / "events-0", BEFORE, 100)
    write_log(folder, at_offset(106, BEFORE), 106)
    write_log(folder, at_offset(112, BEFORE), 112)
    merged = write_log(tmp_path / "merged-0", BEFORE + at_offset(106, BEFORE), 100)
    listed = partition.PartitionFolder.__init__

    def list_and_swap(self: partition.PartitionFolder, *arguments: Any) -> None:
        listed(self, *arguments)
        if (merged / f"{100:020d}.log").exists():  # swapped in after the listing, as the cleaner does
            (folder / f"{106:020d}.log").unlink()
            (merged / f"{100:020d}.log").rename(folder / f"{100:020d}.log")

    monkeypatch.setattr(partition.PartitionFolder, "__init__", list_and_swap)
    assert rules(check_partition(folder)) == []
    assert sorted(path.name for path in folder.iterdir()) == [f"{100:020d}.log", f"{112:020d}.log"]
