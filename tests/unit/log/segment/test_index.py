"""The indexes of a segment: the last entries are in memory, and lookups find them like those in the file."""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from pathlib import Path
from random import Random
from typing import Final

import pytest

from octavo.log.segment.index import OffsetEntry, OffsetIndex, TimeEntry, TimeIndex
from octavo.log.storage import DISK, Storage
from tests.unit.log.failing import FailingDisk

BASE: Final = 1000
SOME: Final = 5  # few enough entries to stay in memory


def new_index(folder: Path, storage: Storage = DISK) -> OffsetIndex:
    index = OffsetIndex(storage, folder / "index", BASE)
    index.clear()
    return index


def in_file(folder: Path) -> int:
    """The number of entries in the file."""
    return (folder / "index").stat().st_size // OffsetIndex.ENTRY_SIZE


def test_entries_are_found_before_they_are_in_the_file(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    for number in range(1, 1 + SOME):
        index.append((number * 10, number * 100))
    assert in_file(tmp_path) == 0
    assert (index.count, index.last) == (SOME, OffsetEntry(BASE + SOME * 10, SOME * 100))
    assert index.lookup(BASE + 9) is None
    assert index.lookup(BASE + 29) == OffsetEntry(BASE + 20, 200)
    assert index.behind(101) == OffsetEntry(BASE + 20, 200)
    assert index.behind(SOME * 100 + 1) is None


def test_entries_are_written_together_and_in_the_end_all_of_them(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    sizes = []
    for number in range(1, 101):
        index.append((number, number))
        sizes.append(in_file(tmp_path))
    assert len(set(sizes)) < 10
    assert all(0 <= number - size < 20 for number, size in enumerate(sizes, start=1))
    index.complete()
    assert in_file(tmp_path) == 100
    again = OffsetIndex(DISK, tmp_path / "index", BASE)
    assert (again.count, again.last) == (100, index.last)


def test_an_entry_that_cannot_be_written_is_not_added(tmp_path: Path) -> None:
    disk = FailingDisk()
    index = new_index(tmp_path, disk)
    disk.fails = lambda what, _: what == "write"
    for number in range(1, 101):
        with contextlib.suppress(OSError):
            index.append((index.count + 1, number))
    count = index.count
    assert SOME < count < 100
    assert index.last == OffsetEntry(BASE + count, count)
    with pytest.raises(OSError, match="No space"):
        index.append((count + 1, count + 1))
    assert (index.count, in_file(tmp_path)) == (count, 0)
    disk.fails = None
    index.append((count + 1, count + 1))
    assert in_file(tmp_path) == index.count == count + 1


@pytest.mark.parametrize("count", [SOME, 40])
def test_removing_entries_writes_none(tmp_path: Path, count: int) -> None:
    """Because it must be possible on a full disk."""
    disk = FailingDisk()
    index = new_index(tmp_path, disk)
    for number in range(1, 1 + count):
        index.append((number, number))
    disk.fails = lambda what, _: what == "write"
    index.truncate_to(BASE + count - 1)
    assert (index.count, index.last) == (count - 2, OffsetEntry(BASE + count - 2, count - 2))
    index.truncate_to(BASE + 3)
    assert (index.count, index.last) == (2, OffsetEntry(BASE + 2, 2))
    assert in_file(tmp_path) == (0 if count == SOME else 2)


def test_the_last_entry_of_a_sealed_time_index_follows_those_in_memory(tmp_path: Path) -> None:
    index = TimeIndex(DISK, tmp_path / "index", BASE)
    index.clear()
    index.append((50, 1))
    index.add(TimeEntry(50, BASE + 2))  # no larger timestamp
    index.add(TimeEntry(60, BASE + 3))
    index.complete()
    again = TimeIndex(DISK, tmp_path / "index", BASE)
    assert (again.count, again.last) == (2, TimeEntry(60, BASE + 3))
    assert again.lookup(59) == TimeEntry(50, BASE + 1)


def test_whatever_is_done_lookups_find_what_a_list_would(tmp_path: Path) -> None:
    random = Random(5)
    index = new_index(tmp_path)
    entries: list[OffsetEntry] = []
    for _ in range(3000):
        end = entries[-1] if entries else OffsetEntry(BASE, 0)
        match random.choice(("append", "append", "append", "several", "take back", "truncate", "complete", "look")):
            case "append" | "several" as what:
                count = 1 if what == "append" else random.choice((1, 3, 40))
                added = [OffsetEntry(end.offset + 2 * n, end.position + 9 * n) for n in range(1, 1 + count)]
                for entry in added:
                    index.append((entry.offset - BASE, entry.position))
                entries += added
            case "take back":
                count = min(len(entries), random.choice((1, 2, 30)))
                index.take_back(count)
                del entries[len(entries) - count :]
            case "truncate" if not random.randrange(5):
                offset = random.randrange(BASE, end.offset + 2)
                index.truncate_to(offset)
                entries = [entry for entry in entries if entry.offset < offset]
            case "complete":
                index.complete()
            case _:
                offset = random.randrange(BASE, end.offset + 3)
                at = bisect_right(entries, offset, key=lambda entry: entry.offset)
                assert index.lookup(offset) == (entries[at - 1] if at else None)
                behind = next((entry for entry in entries if entry.position >= offset - BASE), None)
                assert index.behind(offset - BASE) == behind
        assert (index.count, index.last) == (len(entries), entries[-1] if entries else None)
    assert len(entries) > 100
