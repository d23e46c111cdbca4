"""What may come between: power cuts, full disks, damage, and others who use the log."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from octavo.errors import ChecksumMismatch, CompactionAborted, CorruptFile, FormatError
from octavo.log import Background, DataDirectory, Log
from octavo.log.compaction import CompactionProgress
from tests.clock import Clock
from tests.crash.disk import ANY_NAMES, POWER_CUTS, PROCESS_DIED, write_image
from tests.crash.storage import CrashStorage, FastStorage
from tests.unit.log.compaction.logs import CONFIG, RETENTION_MS, TIME_MS, append, bases, held, open_log, told
from tests.unit.log.failing import FailingDisk


def last_values(log: Log) -> dict[bytes | None, bytes | None]:
    """What each key means; deleted ones mean nothing."""
    latest = {key: value for _, key, value in held(log)}
    return {key: value for key, value in latest.items() if value is not None}


def fill(log: Log) -> None:
    """Several segments, with keys written again and deleted."""
    for number in range(24):
        append(log, f"{number % 5}", f"-{number % 7}" if number % 3 == 0 else f"k{number}")
        if number % 6 == 5:
            log.roll()


@pytest.mark.exhaustive
def test_no_power_cut_loses_a_value_or_brings_back_a_key(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    clock = Clock()
    with open_log(disk, clock=clock, internal_segment_bytes="700") as log:
        fill(log)
        log.compact()
        append(log, "0", "k8")
        log.roll()
        expected = last_values(log)
    storage = CrashStorage(disk)
    clock.now_ms += RETENTION_MS  # so that tombstones go
    with open_log(disk, clock=clock, storage=storage, internal_segment_bytes="1400") as log:
        assert log.compact() is not None
        assert last_values(log) == expected
    random = Random(1)
    for number, points in storage.crash_points():
        for survival in (PROCESS_DIED, *random.sample(POWER_CUTS, 2), *random.sample(ANY_NAMES, 1)):
            image = tmp_path / "image"
            write_image(points.image(survival, random), image)
            with open_log(image, clock=clock, storage=FastStorage(), internal_segment_bytes="1400") as log:
                assert last_values(log) == expected, (number, survival)
                offsets = [record.offset for record in held(log)]
                assert offsets == sorted(set(offsets)), (number, survival)
                assert log.end_offset == 50
            shutil.rmtree(image)


def test_a_disk_that_refuses_costs_a_clean_and_nothing_else(tmp_path: Path) -> None:
    refused = 0
    number = 0
    while True:
        folder = tmp_path / str(number)
        folder.mkdir()
        disk = FailingDisk()
        asked = [0]

        def fails(what: str, path: Path, asked: list[int] = asked, number: int = number) -> bool:
            asked[0] += 1
            return asked[0] == number + 1

        log = open_log(folder, storage=disk)
        append(log, "a", "b", "a")
        log.roll()
        append(log, "a", "c")
        log.roll()
        disk.fails = fails
        try:
            log.compact()
        except OSError:
            refused += 1
            disk.fails = None
            assert [record.offset for record in log.reader().records()] in ([0, 1, 2, 3, 4], [1, 3, 4])
            if log.failure is None:
                append(log, "d")
                assert log.compact() is not None
                assert told(log) == "1b 3a 4c 5d"
        disk.fails = None
        log.close()
        with open_log(folder) as log:
            assert told(log).startswith(("0a 1b 2a 3a 4c", "1b 3a 4c"))
            log.compact()
            assert not list(log.folder.glob("*.cleaned")) + list(log.folder.glob("*.swap"))
        if asked[0] <= number:
            break
        number += 1
    assert refused > 15


# Damage


@pytest.mark.parametrize("dirty", [True, False])
def test_damaged_data_are_left_alone(tmp_path: Path, dirty: bool) -> None:
    with open_log(tmp_path) as log:
        append(log, "a", "b", "a")
        log.roll()
        if not dirty:
            log.compact()
            append(log, "a", "b", "c")
            log.roll()
        path = log.segments[0].path
        data = bytearray(path.read_bytes())
        data[-2] ^= 1
        path.write_bytes(data)
        before = {found.name: found.read_bytes() for found in log.folder.iterdir()}
        with pytest.raises(ChecksumMismatch) as raised:
            log.compact()
        assert log.uncleanable is raised.value
        assert {found.name: found.read_bytes() for found in log.folder.iterdir()} == before
        data[-2] ^= 1
        path.write_bytes(data)
        assert log.compact() is not None
        assert log.uncleanable is None


def test_a_file_that_ends_too_early_is_told(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        append(log, "a", "b", "a")
        log.roll()
        path = log.segments[0].path
        path.write_bytes(path.read_bytes()[:-1])
        with pytest.raises((FormatError, CorruptFile)):
            log.compact()
        assert not list(log.folder.glob("*.cleaned"))


# Others


def interrupted(log: Log, during: int, by: Callable[[], object]) -> None:
    """A clean, in whose middle something is done."""
    seen: list[CompactionProgress] = []

    def on_progress(progress: CompactionProgress) -> None:
        seen.append(progress)
        if len(seen) == during:
            by()

    log.compact(on_progress=on_progress)


@pytest.mark.parametrize("during", [1, 2])
@pytest.mark.parametrize("what", ["truncate", "delete", "close"])
def test_what_takes_away_breaks_a_clean_off(tmp_path: Path, what: str, during: int) -> None:
    log = open_log(tmp_path)
    append(log, "a", "b", "a")
    log.roll()
    append(log, "a")
    log.roll()
    append(log, "c", "c")
    steps = {"truncate": lambda: log.truncate_to(5), "delete": lambda: log.delete_oldest(1), "close": log.close}
    with pytest.raises(CompactionAborted):
        interrupted(log, during, steps[what])
    assert not list(log.folder.glob("*.cleaned")) + list(log.folder.glob("*.swap"))
    if what == "close":
        log = open_log(tmp_path)
    assert told(log) == {"truncate": "0a 1b 2a 3a", "delete": "3a 4c 5c", "close": "0a 1b 2a 3a 4c 5c"}[what]
    assert log.compact() is not None
    log.close()


def test_appending_goes_on(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        append(log, "a", "b", "a")
        log.roll()
        interrupted(log, 1, lambda: append(log, "a"))
        assert told(log) == "1b 2a 3a"


def test_who_has_begun_to_read_goes_on(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        append(log, "a", "b", "a")
        log.roll()
        append(log, "a")
        log.roll()
        part = log.read(0, 1 << 20)
        old = log.segments[0].path.read_bytes()
        log.compact()
        log.delete_files(TIME_MS + 10**9)
        assert part.records == old
        assert bases(log) == [0, 4]
        assert [record.offset for record in log.reader(0).records()] == [1, 3]


def test_a_swap_that_is_seen_when_opening_is_finished(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        append(log, "a", "b", "a")
        log.roll()
        append(log, "a")
        log.roll()
        old = [segment.path.read_bytes() for segment in log.segments]
        log.compact()
        paths = [log.folder / f"{base:020d}.log" for base in (0, 3)]
    (tmp_path / "topic-0" / "00000000000000000000.log").rename(paths[0].with_name(paths[0].name + ".swap"))
    for path, data in zip(paths, old, strict=False):
        path.write_bytes(data)
    with open_log(tmp_path) as log:
        assert told(log) == "1b 3a"
        assert log.recovery.renamed == ["00000000000000000000.log"]


# In the background


def test_the_filthiest_log_is_cleaned_first(tmp_path: Path) -> None:
    clock = Clock()
    with DataDirectory.open(tmp_path, clock=clock) as data:
        background = Background(data, clock=clock, map_memory=1 << 20)
        for topic, policy in (("plain", "delete"), ("one", "compact"), ("two", "compact,delete")):
            data.create_topic(topic, config=CONFIG | {"cleanup.policy": policy, "min.cleanable.dirty.ratio": "0.1"})
            log = data.log(topic, 0)
            append(log, *"abcdefgh")
            log.roll()
        cleaned = [background.run_once().cleaned for _ in range(3)]
        assert [stats.partition.topic if stats else None for stats in cleaned] == ["one", "two", None]
        append(data.log("one", 0), "a", "a")
        append(data.log("two", 0), *"aaaaaaaa")
        for topic in ("one", "two"):
            data.log(topic, 0).roll()
        cleaned = [background.run_once().cleaned for _ in range(3)]
        assert [stats.partition.topic if stats else None for stats in cleaned] == ["two", "one", None]
        assert background.last_clean == cleaned[1]


def test_a_log_that_cannot_be_cleaned_keeps_no_other(tmp_path: Path) -> None:
    clock = Clock()
    with DataDirectory.open(tmp_path, clock=clock) as data:
        background = Background(data, clock=clock, map_memory=1 << 20)
        for topic in ("bad", "good"):
            data.create_topic(topic, config=CONFIG)
            append(data.log(topic, 0), "a", "a")
            data.log(topic, 0).roll()
        path = data.log("bad", 0).segments[0].path
        path.write_bytes(path.read_bytes()[:-1] + b"?")
        first, second, third = (background.run_once() for _ in range(3))
        assert [partition for partition, _ in first.failed] == [("bad", 0)]
        assert second.cleaned is not None
        assert second.cleaned.partition.topic == "good"
        assert (third.cleaned, third.failed) == (None, [])
        assert list(background.uncleanable) == [("bad", 0)]
