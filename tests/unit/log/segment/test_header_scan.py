"""Headers of whole files: what damage does to a walk through them."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.errors import CorruptFile, FormatError
from octavo.log.segment.damage import BatchSearch, refuse
from octavo.log.segment.header_scan import BlockFile, scan_headers
from octavo.log.storage import DISK, File
from octavo.records.kernels import scan
from octavo.records.layout import LENGTH_AT
from tests.unit.log.logs import make_batch

COUNT = 10


def write_batches(path: Path, size: int = 60) -> tuple[File, int]:
    """A file of ten batches with the offsets 0 to 9, and what each of them takes."""
    batches = []
    for offset in range(COUNT):
        batch = bytearray(make_batch(size=size))
        batch[:8] = offset.to_bytes(8, "big")
        batches.append(bytes(batch))
    path.write_bytes(b"".join(batches))
    return DISK.open(path), len(batches[0])


def change(path: Path, position: int, value: bytes) -> None:
    data = bytearray(path.read_bytes())
    data[position : position + len(value)] = value
    path.write_bytes(data)


class Damage:
    """Goes on behind damage, and has been told of it."""

    def __init__(self) -> None:
        self.positions: list[int] = []

    def __call__(self, file: File, error: FormatError, end: int) -> int:
        self.positions.append(error.position)
        return BatchSearch().next_batch(file, error.position, end)


def offsets(file: File, damage: Damage | None = None) -> list[int]:
    tables = scan_headers(file, 0, file.size(), damage)
    return [offset for table, _ in tables for offset in table[:, scan.BASE_OFFSET].tolist()]


WRONG_LENGTHS = {"negative": b"\xff\0\0\0", "over the end": b"\x7f\0\0\0", "into the next": b"\0\0\0\xff"}


@pytest.mark.parametrize("length", WRONG_LENGTHS.values(), ids=WRONG_LENGTHS)
@pytest.mark.parametrize("size", [60, 300_000], ids=["small", "larger than a block"])
def test_a_walk_tells_where_a_length_is_wrong_and_goes_on_with_the_next_batch(
    tmp_path: Path, length: bytes, size: int
) -> None:
    path = tmp_path / "x.log"
    file, batch_size = write_batches(path, size)
    change(path, 3 * batch_size + LENGTH_AT, length)
    with pytest.raises(CorruptFile) as failed:
        list(scan_headers(file, 0, file.size(), refuse))
    assert (failed.value.path, failed.value.position) == (path, 3 * batch_size)
    damage = Damage()
    assert [offset for offset in offsets(file, damage) if offset != 3] == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert damage.positions == [3 * batch_size]
    assert max(offsets(file)) <= 3  # without anybody to tell, the walk ends


def test_a_batch_that_is_not_all_there_is_damage_to_who_wants_all(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    file, batch_size = write_batches(path)
    assert offsets(file, damage := Damage()) == list(range(COUNT))
    assert damage.positions == []
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorruptFile, match="the file ends inside a batch"):
        list(scan_headers(file, 0, file.size(), refuse))
    with pytest.raises(CorruptFile, match="inside a batch"):  # it was cut after it had been measured
        list(scan_headers(file, 0, 2 * COUNT * batch_size, refuse))
    assert offsets(file, damage) == list(range(COUNT - 1))
    assert damage.positions == [(COUNT - 1) * batch_size]


def test_what_was_read_last_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    whole, batch_size = write_batches(path)
    file = BlockFile(whole)
    data = path.read_bytes()
    for table, shift in scan_headers(file, batch_size, file.size()):
        path.write_bytes(bytes(len(data)))
        at = shift + int(table[0, scan.POSITION])
        assert file.read_at(batch_size, at) == data[batch_size : 2 * batch_size]
        assert file.read_at(batch_size, 0) == bytes(batch_size)
