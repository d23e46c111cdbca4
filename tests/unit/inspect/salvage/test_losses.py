"""Losses that only names and checkpoints tell: segments that are gone, and the ends of replicas."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from octavo.inspect.salvage import PartitionReport, salvage
from octavo.inspect.salvage.order import UNCONFIRMED
from octavo.log import Log
from octavo.records import BatchBuilder
from tests.crash.storage import FastStorage
from tests.unit.inspect.salvage.damaging import Batches, batches_in, data_batch, is_filler, last_offset

LAST = "00000000000000000045"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Four segments of five batches of three records, in two leader epochs."""
    (tmp_path / "data").mkdir()
    random = Random(1)
    log = Log.open(tmp_path / "data" / "events-0", storage=FastStorage())
    for number in range(20):
        if number and number % 5 == 0:
            log.roll()
        if number == 8:
            log.become_leader(3)
        log.append(data_batch(random, 3))
    log.close()
    return tmp_path / "data" / "events-0"


def salvaged(*sources: Path) -> tuple[PartitionReport, Batches]:
    target = sources[0].parent.parent / "result"
    [report] = salvage(sources, target, storage=FastStorage()).partitions
    return report, batches_in(target)


def lost(report: PartitionReport) -> list[tuple[int, int | None]]:
    return [(each.first_offset, each.last_offset) for each in report.lost]


def empty(path: Path) -> None:
    path.write_bytes(b"")


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def link(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


GONE: list[Callable[[Path], None]] = [empty, Path.unlink, pipe, folder, link]


@pytest.mark.parametrize("lose", GONE)
def test_a_first_segment_of_which_nothing_is_left_is_lost(source: Path, lose: Callable[[Path], None]) -> None:
    before = batches_in(source)
    lose(source / "00000000000000000000.log")
    report, result = salvaged(source)
    assert result == {offset: batch for offset, batch in before.items() if offset >= 15}
    assert lost(report) == [(0, 14)]


@pytest.mark.parametrize("lose", GONE)
@pytest.mark.parametrize("kept", ["*.snapshot", "*.index", "*-checkpoint", ""])
def test_a_last_segment_of_which_nothing_is_left_is_lost(source: Path, lose: Callable[[Path], None], kept: str) -> None:
    before = batches_in(source)
    lose(source / f"{LAST}.log")
    others = [*source.glob("*.snapshot"), *source.glob("*index"), *source.parent.glob("*-checkpoint")]
    for path in others if kept else ():
        if not path.match(kept):
            path.unlink()
    report, result = salvaged(source)
    rest = {offset: batch for offset, batch in result.items() if offset < 45}
    assert rest == {offset: batch for offset, batch in before.items() if offset < 45}
    if kept == "*.index":  # it tells only that something was there
        assert lost(report) == ([] if lose is empty else [(45, None)])
        return
    assert lost(report) == [(45, 59)]
    assert is_filler(result[45])
    assert last_offset(result[45]) == 59
    assert report.end_offset == 60


def test_a_partition_without_any_segment_has_lost_everything_and_goes_on_at_its_end(source: Path) -> None:
    (source.parent / "other-0").mkdir()
    for path in source.glob("*.log"):
        path.unlink()
    reports = salvage([source.parent], source.parent.parent / "result", storage=FastStorage()).partitions
    assert [(each.partition, lost(each)) for each in reports] == [("events-0", [(0, 59)]), ("other-0", [])]
    assert (reports[0].start_offset, reports[0].end_offset) == (60, 60)


def test_checkpoints_tell_nothing_about_a_folder_that_was_set_aside(source: Path) -> None:
    (source / f"{LAST}.log").unlink()
    for path in [*source.glob(f"{LAST}.*"), source / "00000000000000000060.snapshot"]:
        path.unlink(missing_ok=True)
    report, _ = salvaged(source.rename(source.with_name("events-0.0123456789abcdef0123456789abcdef-stray")))
    assert lost(report) == []


def test_the_name_of_a_copy_is_not_believed(source: Path) -> None:
    before = batches_in(source)
    (source / "00000000000010000000.log").write_bytes((source / "00000000000000000000.log").read_bytes())
    report, result = salvaged(source)
    assert result == before
    assert not report.has_lost


def test_a_replica_that_had_more_than_the_one_that_leads_tells_a_loss(source: Path) -> None:
    batches = list(batches_in(source).values())
    replicas = [source.parent.parent / name / "events-0" for name in "ab"]
    for path in replicas:
        path.mkdir(parents=True)
    bad = bytes(each ^ 0x55 for each in b"".join(batches[12:]))
    (replicas[0] / "00000000000000000000.log").write_bytes(b"".join(batches[:12]) + bad)
    (replicas[1] / "00000000000000000000.log").write_bytes(b"".join(batches[:14]))
    report, result = salvaged(*replicas)
    assert len(result) == 14
    assert lost(report) == [(42, None)]
    assert [each.is_lost for each in report.damage] == [True]


def test_nothing_is_lost_if_a_replica_has_what_is_damaged_at_the_end(source: Path) -> None:
    batches = list(batches_in(source).values())
    replicas = [source.parent.parent / name / "events-0" for name in "ab"]
    for path in replicas:
        path.mkdir(parents=True)
    bad = bytes(each ^ 0x55 for each in b"".join(batches[12:]))
    (replicas[0] / "00000000000000000000.log").write_bytes(b"".join(batches[:12]) + bad)
    (replicas[1] / "00000000000000000000.log").write_bytes(b"".join(batches))
    report, result = salvaged(*replicas)
    assert len(result) == 20
    assert not report.has_lost


@pytest.mark.parametrize("gone", [(2,), (0,), (2, 3), (11,), (14,)])
def test_batches_that_were_cut_out_of_a_file_are_lost(source: Path, gone: tuple[int, ...]) -> None:
    before = batches_in(source)
    for path in source.glob("*.log"):
        data = path.read_bytes()
        for number in gone:
            data = data.replace(list(before.values())[number], b"")
        path.write_bytes(data)
    report, result = salvaged(source)
    assert result.keys() == before.keys() - {3 * number for number in gone}
    assert lost(report) == [(3 * gone[0], 3 * gone[-1] + 2)]


def test_batches_that_were_cut_out_in_several_places_are_lost_and_a_replica_fills_them(tmp_path: Path) -> None:
    random = Random(4)
    (tmp_path / "a").mkdir()
    log = Log.open(tmp_path / "a" / "events-0", storage=FastStorage())
    for _ in range(300):
        log.append(data_batch(random, 1))
    log.close()
    [path] = (tmp_path / "a" / "events-0").glob("*.log")
    before = batches_in(path.parent)
    (tmp_path / "b" / "events-0").mkdir(parents=True)
    other = tmp_path / "b" / "events-0" / path.name
    other.write_bytes(path.read_bytes())
    for number in (70, 150, 220):
        path.write_bytes(path.read_bytes().replace(before[number], b""))
    report, _ = salvaged(path.parent)
    assert lost(report) == [(70, 70), (150, 150), (220, 220)]
    [report] = salvage([path.parent, other.parent], tmp_path / "whole", storage=FastStorage()).partitions
    assert not report.has_lost
    assert batches_in(tmp_path / "whole") == before


def test_a_batch_whose_offset_nothing_confirms_is_lost_if_the_result_does_not_have_it(source: Path) -> None:
    before = batches_in(source)
    path = source / "00000000000000000015.log"
    data = path.read_bytes()
    builder = BatchBuilder(base_offset=1 << 40, leader_epoch=0)
    builder.append(None, b"a stranger", timestamp_ms=0)
    at = data.index(before[21])
    path.write_bytes(data[:at] + builder.build() + data[at:])
    report, result = salvaged(source)
    assert result == before
    assert [(each.reason, each.is_lost) for each in report.left_out] == [(UNCONFIRMED, True)]
    assert report.has_lost


def test_a_batch_whose_offset_nothing_confirms_is_not_lost_if_a_replica_has_it(source: Path) -> None:
    before = batches_in(source)
    shutil.copytree(source, source.parent.parent / "other" / "events-0")
    path = source / "00000000000000000015.log"
    data = path.read_bytes()
    first, second = data.index(before[21]), data.index(before[24])
    wrong = struct.pack(">q", 1 << 40) + before[21][8:]
    path.write_bytes(data[:first] + wrong + bytes(len(before[24])) + data[second + len(before[24]) :])
    report, result = salvaged(source, source.parent.parent / "other" / "events-0")
    assert result == before
    assert [(each.reason, each.is_lost) for each in report.left_out] in ([], [(UNCONFIRMED, False)])
    assert not report.has_lost
