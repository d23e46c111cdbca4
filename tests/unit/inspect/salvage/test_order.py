"""Batches out of place: moved, doubled, with wrong offsets and epochs, in files with wrong names."""

from __future__ import annotations

import errno
import os
import shutil
import struct
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from octavo.errors import OctavoError
from octavo.inspect.salvage import PartitionReport, salvage
from octavo.inspect.salvage.order import CONTRARY, DOUBLED, UNCONFIRMED, heaviest
from octavo.log import Log
from octavo.records import BatchBuilder, Codec
from tests.crash.storage import FastStorage
from tests.unit.inspect.salvage.damaging import Batches, batches_in, check_salvaged, data_batch, is_filler, last_offset

RECORDS = 3  # in each batch


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Four segments of five batches, in two leader epochs."""
    random = Random(1)
    log = Log.open(tmp_path / "events-0", storage=FastStorage())
    for number in range(20):
        if number and number % 5 == 0:
            log.roll()
        if number == 8:
            log.become_leader(3)
        log.append(data_batch(random, RECORDS))
    log.close()
    return tmp_path / "events-0"


def salvaged(*sources: Path) -> tuple[PartitionReport, Batches]:
    target = sources[0].parent / "result"
    [report] = salvage(sources, target, storage=FastStorage()).partitions
    return report, batches_in(target)


def segment(source: Path, number: int) -> Path:
    return sorted(source.glob("*.log"))[number]


def put(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def test_a_sound_log_comes_out_as_it_is(source: Path) -> None:
    before = batches_in(source)
    report, result = salvaged(source)
    assert result == before
    assert not report.has_lost
    assert not any((report.damage, report.left_out, report.restored, report.lost, report.gaps))
    names = sorted(path.name for path in source.glob("*.log"))
    assert sorted(path.name for path in (source.parent / "result").glob("*.log")) == names
    assert (report.start_offset, report.end_offset, report.batches, report.segments) == (0, 60, 20, 4)
    epochs = (source / "leader-epoch-checkpoint").read_bytes()
    assert (source.parent / "result" / "leader-epoch-checkpoint").read_bytes() == epochs


def test_batches_of_exchanged_files_are_put_where_their_offsets_belong(source: Path) -> None:
    before = batches_in(source)
    one, other = segment(source, 1), segment(source, 2)
    data = one.read_bytes(), other.read_bytes()
    one.write_bytes(data[1])
    other.write_bytes(data[0])
    report, result = salvaged(source)
    assert result == before
    assert not report.has_lost


@pytest.mark.parametrize("name", ["00000000000000000099.log", "00000000000000000003.log"])
def test_the_name_of_a_segment_is_not_believed(source: Path, name: str) -> None:
    before = batches_in(source)
    segment(source, 2).rename(source / name)
    report, result = salvaged(source)
    assert result == before
    assert [lost for lost in report.lost if lost.last_offset is not None] == []
    assert (source.parent / "result" / "00000000000000000030.log").exists()


def test_a_batch_that_is_there_twice_is_kept_once_and_not_lost(source: Path) -> None:
    before = batches_in(source)
    path = segment(source, 3)
    path.write_bytes(path.read_bytes() + before[6] + before[9])
    report, result = salvaged(source)
    assert result == before
    assert [(each.batches, each.reason, each.is_lost) for each in report.left_out] == [(2, DOUBLED, False)]
    assert not report.has_lost


def test_other_batches_with_offsets_that_are_taken_are_left_out_and_told(source: Path) -> None:
    before = batches_in(source)
    builder = BatchBuilder(base_offset=6, leader_epoch=0)
    builder.append(None, b"a stranger", timestamp_ms=0)
    path = segment(source, 3)
    path.write_bytes(path.read_bytes() + builder.build())
    report, result = salvaged(source)
    assert result == before
    assert [(each.batches, each.reason, each.is_lost) for each in report.left_out] == [(1, CONTRARY, True)]
    assert report.has_lost


@pytest.mark.parametrize("number", [0, 7, 9, 10, 19])
@pytest.mark.parametrize("bit", [1, 9, 40, 62])
def test_a_damaged_offset_is_restored_if_there_is_room_for_exactly_that_batch(
    source: Path, number: int, bit: int
) -> None:
    before = batches_in(source)
    offset = list(before)[number]
    path = segment(source, number // 5)
    at = path.read_bytes().index(before[offset])
    put(path, at, struct.pack(">q", offset ^ 1 << bit))
    report, result = salvaged(source)
    if number == 19 and offset < offset ^ 1 << bit < 1 << 30:
        assert result.keys() == before.keys() - {offset} | {offset ^ 1 << bit}
        return  # nothing comes after the last batch, so that nothing contradicts it
    if number == 19:
        assert is_filler(result[offset]) if offset in result else bit < 20
        assert [(each.reason, each.is_lost) for each in report.left_out] in ([(UNCONFIRMED, True)], [(CONTRARY, True)])
        assert report.lost[-1].first_offset == offset
        return
    assert result == before
    assert [(each.field, each.was, each.now) for each in report.restored] == [
        ("base offset", offset ^ 1 << bit, offset)
    ]
    assert not report.has_lost


def test_a_damaged_leader_epoch_is_restored(source: Path) -> None:
    before = batches_in(source)
    for offset, epoch in [(6, 7), (33, 1 << 24), (48, -5), (57, 4)]:
        path = segment(source, offset // 15)
        put(path, path.read_bytes().index(before[offset]) + 12, struct.pack(">i", epoch))
    report, result = salvaged(source)
    assert result == before
    assert [(each.offset, each.field, each.was, each.now) for each in report.restored] == [
        (6, "leader epoch", 7, 0),
        (33, "leader epoch", 1 << 24, 3),
        (48, "leader epoch", -5, 3),
        (57, "leader epoch", 4, 3),
    ]


def test_a_missing_segment_is_lost(source: Path) -> None:
    before = batches_in(source)
    segment(source, 1).unlink()
    report, result = salvaged(source)
    assert result.keys() == before.keys() - range(15, 30)
    assert [(each.first_offset, each.last_offset) for each in report.lost] == [(15, 29)]
    assert report.damage == []


def test_gaps_of_a_compacted_log_are_no_loss(tmp_path: Path) -> None:
    log = Log.open(tmp_path / "events-0", storage=FastStorage())
    for offset in (0, 1, 5, 6, 20, 30, 31, 40, 50):
        builder = BatchBuilder(base_offset=offset, leader_epoch=0)
        builder.append(b"key", b"value", timestamp_ms=0)
        if offset in (20, 40):
            log.roll()
        log.append_as_follower(builder.build())
    log.close()
    before = batches_in(tmp_path / "events-0")
    report, result = salvaged(tmp_path / "events-0")
    assert result == before
    assert not report.has_lost
    shutil.rmtree(tmp_path / "result")
    path = segment(tmp_path / "events-0", 0)
    put(path, path.read_bytes().index(before[5]) + 70, b"\xff")
    report, result = salvaged(tmp_path / "events-0")
    assert result.keys() == before.keys() - {5}
    assert [(each.first_offset, each.last_offset) for each in report.lost] == [(2, 5)]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_old_messages_are_salvaged(tmp_path: Path, magic: int, codec: Codec) -> None:
    (tmp_path / "old-0").mkdir()
    random = Random(3)
    batches = {}
    offset = 0
    for number in range(30):
        builder = BatchBuilder(magic, codec=codec, base_offset=offset)
        for _ in range(3 if codec else 1):
            builder.append(b"key", random.randbytes(40), timestamp_ms=5 if magic else -1)
        if number % 10 == 0:
            path = tmp_path / "old-0" / f"{offset:020d}.log"
        with path.open("ab") as file:
            file.write(builder.build())
        offset += 3 if codec else 1
        batches[offset - 1] = builder.build()
    second = sorted(batches)[14]
    data = path.with_name(f"{10 * (offset // 30):020d}.log").read_bytes()
    at = data.index(batches[second])
    put(path.with_name(f"{10 * (offset // 30):020d}.log"), at + 30, b"\x99\x99")
    report, _ = salvaged(tmp_path / "old-0")
    kept = b"".join(each.read_bytes() for each in sorted((tmp_path / "result").glob("*.log")))
    assert kept == b"".join(batch for last, batch in batches.items() if last != second)
    width = 3 if codec else 1
    assert [(each.first_offset, each.last_offset) for each in report.lost] == [(second - width + 1, second)]
    assert (report.end_offset, report.batches) == (offset, 29)


def test_output_of_an_interrupted_compaction_fills_what_its_input_lacks(source: Path) -> None:
    before = batches_in(source)
    path = segment(source, 1)
    path.rename(path.with_name(path.name + ".swap"))
    shutil.copy(segment(source, 0), source / "00000000000000000000.log.deleted")
    (source / "00000000000000000000.log.cleaned").write_bytes(b"half of it")
    report, result = salvaged(source)
    assert result == before
    assert not report.has_lost
    assert report.sources[0].ignored_files == ["00000000000000000000.log.cleaned", "00000000000000000000.log.deleted"]


def test_offsets_that_are_lost_at_the_end_are_not_used_again(source: Path) -> None:
    before = batches_in(source)
    (source / "00000000000000000070.log").write_bytes(b"")
    report, result = salvaged(source)
    filler = result.pop(60)
    assert result == before
    assert is_filler(filler)
    assert last_offset(filler) == 69
    assert (report.end_offset, report.batches) == (70, 20)
    assert [(each.first_offset, each.last_offset) for each in report.lost] == [(60, 69)]


def test_a_log_of_nothing_but_damage_becomes_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "events-0").mkdir()
    (tmp_path / "events-0" / "00000000000000000042.log").write_bytes(b"no batches at all" * 100)
    (tmp_path / "events-0" / "00000000000000000050.log").write_bytes(bytes(5000))
    report, result = salvaged(tmp_path / "events-0")
    assert result == {}
    assert (report.start_offset, report.end_offset, report.batches) == (50, 50, 0)
    assert [(each.first_offset, each.last_offset) for each in report.lost] == [(42, None)]


def test_pages_that_the_disk_cannot_read_are_damage(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(5)
    log = Log.open(source, storage=FastStorage())
    for _ in range(100):
        log.append(data_batch(random, RECORDS))
    log.close()
    before = batches_in(source)
    path = max(source.glob("*.log"))
    real, bad = os.preadv, path.stat().st_ino
    page = path.stat().st_size // 4096 // 2

    def failing(descriptor: int, buffers: list[memoryview], position: int) -> int:
        size = sum(map(len, buffers))
        if os.fstat(descriptor).st_ino == bad and position < (page + 1) * 4096 and position + size > page * 4096:
            raise OSError(errno.EIO, "the disk is failing")
        return real(descriptor, buffers, position)

    monkeypatch.setattr(os, "preadv", failing)
    report, result = salvaged(source)
    monkeypatch.undo()
    data = path.read_bytes()
    unreadable = {
        offset for offset, batch in before.items()
        if batch in data and data.index(batch) < (page + 1) * 4096 and data.index(batch) + len(batch) > page * 4096
    }  # fmt: skip
    assert unreadable
    assert result == {offset: batch for offset, batch in before.items() if offset not in unreadable}
    assert {each.rule for each in report.damage} == {"the disk cannot read these bytes"}
    path.write_bytes(data[: page * 4096] + bytes(4096) + data[(page + 1) * 4096 :])
    check_salvaged(before, [source], source.parent / "result", report)


def test_the_heaviest_sequence_that_increases_is_found() -> None:
    random = Random(9)
    for _ in range(300):
        items = []
        for _ in range(random.randint(0, 8)):
            first = random.randint(0, 12)
            items.append((first, first + random.randint(0, 4), random.randint(1, 5)))
        best = 0
        for mask in range(1 << len(items)):
            chosen = [item for at, item in enumerate(items) if mask >> at & 1]
            if all(a[1] < b[0] for a, b in pairwise(chosen)):
                best = max(best, sum(item[2] for item in chosen))
        found = [items[at] for at in heaviest(items)]
        assert all(a[1] < b[0] for a, b in pairwise(found))
        assert sum(item[2] for item in found) == best


def test_what_is_raised_is_a_sentence(source: Path) -> None:
    with pytest.raises(OctavoError, match="there is no such folder"):
        salvage([source.parent / "nothing-0"], source.parent / "result")
