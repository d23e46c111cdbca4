"""Batches that were exchanged or turned round inside of a file, and offsets that contradict many others."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from octavo.inspect.salvage import PartitionReport, salvage
from octavo.records import BatchBuilder
from tests.crash.storage import FastStorage

WIDTH = 50  # offsets of each batch
COUNT = 60


def batch_at(offset: int, random: Random, magic: int = 2) -> bytes:
    if magic < 2:
        builder = BatchBuilder(magic, base_offset=offset)
        builder.append(b"key", random.randbytes(30), timestamp_ms=-1 if magic == 0 else 0)
        return builder.build()
    builder = BatchBuilder(base_offset=offset, leader_epoch=0)
    for _ in range(WIDTH):
        builder.append(b"key", random.randbytes(8), timestamp_ms=0)
    return builder.build()


def batches(step: int, magic: int = 2) -> list[bytes]:
    """The batches of a log, of which each begins `step` offsets after the one before."""
    random = Random(step)
    return [batch_at(number * step, random, magic) for number in range(COUNT)]


def salvaged(folder: Path, damaged: Sequence[bytes]) -> tuple[PartitionReport, list[bytes]]:
    """Salvage a log that has one segment. Returns the report, and the bytes of the result, batch by batch."""
    source = folder / "events-0"
    source.mkdir()
    (source / f"{0:020d}.log").write_bytes(b"".join(damaged))
    [report] = salvage([source], folder / "result", storage=FastStorage()).partitions
    data = b"".join(path.read_bytes() for path in sorted((folder / "result").glob("*.log")))
    found = []
    while data:
        size = struct.unpack_from(">i", data, 8)[0] + 12
        found.append(data[:size])
        data = data[size:]
    return report, found


def reordered(original: Sequence[bytes], at: int, order: Sequence[int]) -> list[bytes]:
    result = list(original)
    result[at : at + len(order)] = [original[at + number] for number in order]
    return result


ORDERS = [
    [1, 0], [2, 1, 0], [3, 2, 1, 0], [4, 3, 2, 1, 0], [4, 1, 2, 3, 0], [1, 2, 3, 0], [3, 0, 1, 2], [2, 3, 0, 1],
    [3, 4, 5, 0, 1, 2], [5, 4, 0, 1, 2, 3], [4, 5, 2, 3, 0, 1],
]  # fmt: skip


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("step", [WIDTH, 2 * WIDTH])
@pytest.mark.parametrize("at", [0, 7, COUNT - 6])
def test_batches_in_another_order_are_put_in_order_again(tmp_path: Path, order: list[int], step: int, at: int) -> None:
    original = batches(step)
    report, result = salvaged(tmp_path, reordered(original, at, order))
    assert result == original
    assert not any((report.left_out, report.restored))
    assert not (report.has_lost and step == WIDTH)  # beside moved batches, a gap of a compacted log may be a loss


@pytest.mark.parametrize("step", [WIDTH, 2 * WIDTH])
def test_two_blocks_that_are_turned_round_are_put_in_order_again(tmp_path: Path, step: int) -> None:
    original = batches(step)
    damaged = reordered(reordered(original, 6, [4, 3, 2, 1, 0]), 32, [4, 3, 2, 1, 0])
    report, result = salvaged(tmp_path, damaged)
    assert result == original
    assert not any((report.left_out, report.restored))
    assert not (report.has_lost and step == WIDTH)  # beside moved batches, a gap of a compacted log may be a loss


@pytest.mark.parametrize("magic", [0, 2])
@pytest.mark.parametrize(("number", "offset"), [(20, 976), (20, 1744), (20, 1910), (20, 510), (40, 2976), (5, 2548)])
def test_a_wrong_offset_of_a_compacted_log_does_not_cost_batches_that_are_right(
    tmp_path: Path, magic: int, number: int, offset: int
) -> None:
    original = batches(2 * WIDTH, magic)
    if magic < 2:
        offset -= offset % (2 * WIDTH)  # another message has it
    damaged = list(original)
    damaged[number] = struct.pack(">q", offset) + original[number][8:]
    report, result = salvaged(tmp_path, damaged)
    assert result == original[:number] + original[number + 1 :]
    assert [(each.first_offset, each.batches) for each in report.left_out] == [(offset, 1)]
    assert report.has_lost


def test_of_two_batches_that_overlap_the_one_that_leaves_room_in_its_place_is_wrong(tmp_path: Path) -> None:
    original = batches(2 * WIDTH)
    damaged = list(original)
    damaged[5] = struct.pack(">q", 500 ^ 128) + original[5][8:]  # 372, between 300 and 400
    report, result = salvaged(tmp_path, damaged)
    assert result == original[:5] + original[6:]
    assert report.has_lost


@pytest.mark.parametrize("bit", [3, 9, 40])
def test_a_wrong_offset_among_moved_batches_is_restored(tmp_path: Path, bit: int) -> None:
    """The batches around it confirm each other, although nothing else does: those beside them are lost."""
    original = batches(WIDTH)
    wrong = struct.pack(">q", 31 * WIDTH ^ 1 << bit) + original[31][8:]
    moved = [original[30], wrong, original[32]]
    report, result = salvaged(
        tmp_path, [*original[:10], b"\x99" * 100, *moved, b"\x99" * 100, *original[10:29], *original[34:]]
    )
    assert result == original[:29] + original[30:33] + original[34:]
    assert [(each.was, each.now) for each in report.restored] == [(31 * WIDTH ^ 1 << bit, 31 * WIDTH)]
    assert [(each.first_offset, each.last_offset) for each in report.lost] == [(1450, 1499), (1650, 1699)]
