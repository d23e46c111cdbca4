"""Reading a file in blocks: whatever the size of a block, the same batches are met, and the same end of them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from octavo.errors import BadLength, CorruptFile, Truncated
from octavo.log.segment.block_reader import LARGE, BlockReader
from octavo.log.storage import DISK, File
from octavo.records import BatchBuilder
from octavo.records.kernels import kernels, scan
from octavo.records.layout import BATCH_HEADER

SIZES: Final = (1, 30, 200, 1, 90, 2)  # of the values
BLOCKS: Final = (BATCH_HEADER.size, 70, 100, 131, 300, 1000)
ROWS: Final = 2  # fewer than a block may hold


def batches() -> list[bytes]:
    built = []
    for number, size in enumerate(SIZES):
        builder = BatchBuilder(base_offset=number)
        builder.append(b"key", bytes(size), timestamp_ms=number)
        built.append(builder.build())
    return built


def opened(folder: Path, data: bytes) -> File:
    (folder / "file").write_bytes(data)
    return DISK.open(folder / "file")


def met(reader: BlockReader, *, grows: bool) -> tuple[list[int], int]:
    """Return the positions of all batches that are met, and how it ends."""
    positions: list[int] = []
    while True:
        what = reader.next()
        if what == LARGE and grows:
            size = len(reader.memory)
            reader.grow()
            assert len(reader.memory) > size
        elif what == LARGE:
            positions.append(reader.position)
            assert reader.check_large() is None
            reader.pass_large()
        elif what == scan.MORE:
            positions += (reader.table[:, scan.POSITION] + reader.shift).tolist()
        else:
            return positions, what


def starts(built: list[bytes]) -> list[int]:
    return [sum(map(len, built[:number])) for number in range(len(built))]


@pytest.mark.parametrize("grows", [True, False])
@pytest.mark.parametrize("block_size", BLOCKS)
def test_every_batch_is_met_once(tmp_path: Path, block_size: int, grows: bool) -> None:
    built = batches()
    file = opened(tmp_path, b"".join(built))
    reader = BlockReader(kernels(0), block_size, ROWS)
    for first in (0, 2):
        reader.begin(file, starts(built)[first], file.size())
        assert len(reader.memory) == block_size
        assert met(reader, grows=grows) == (starts(built)[first:], scan.DONE)
        assert reader.position == file.size()


@pytest.mark.parametrize("block_size", BLOCKS)
def test_a_cut_batch_is_torn_wherever_it_is_cut(tmp_path: Path, block_size: int) -> None:
    built = batches()
    last = starts(built)[-1]
    for size in range(last + 1, last + len(built[-1])):
        file = opened(tmp_path, b"".join(built)[:size])
        reader = BlockReader(kernels(0), block_size, ROWS)
        reader.begin(file, 0, size)
        assert met(reader, grows=True) == (starts(built)[:-1], scan.TORN)
        assert reader.position == last
        assert isinstance(reader.error(), Truncated)


@pytest.mark.parametrize("block_size", BLOCKS)
def test_a_file_that_was_truncated_since_is_torn(tmp_path: Path, block_size: int) -> None:
    built = batches()
    for size in (0, 5, starts(built)[3], starts(built)[3] + 20):
        file = opened(tmp_path, b"".join(built)[:size])
        reader = BlockReader(kernels(0), block_size, ROWS)
        reader.begin(file, 0, 100_000)
        assert met(reader, grows=True)[1] == scan.TORN


@pytest.mark.parametrize("block_size", BLOCKS)
def test_damage_is_met_where_it_is_and_can_be_passed(tmp_path: Path, block_size: int) -> None:
    built = batches()
    built[3] = built[3][:8] + bytes(4) + built[3][12:]
    file = opened(tmp_path, b"".join(built))
    reader = BlockReader(kernels(0), block_size, ROWS)
    reader.begin(file, 0, file.size())
    assert met(reader, grows=True) == (starts(built)[:3], scan.BROKEN)
    error = reader.error()
    assert isinstance(error, BadLength)
    assert error.position == reader.position == starts(built)[3]
    reader.go_to(starts(built)[4])
    assert met(reader, grows=True) == (starts(built)[4:], scan.DONE)


def test_the_checksum_of_a_large_batch_is_computed_in_pieces(tmp_path: Path) -> None:
    built = batches()
    damaged = bytearray(built[2])
    damaged[-1] ^= 1
    file = opened(tmp_path, bytes(damaged) + built[3])
    reader = BlockReader(kernels(0), 100, ROWS)
    reader.begin(file, 0, file.size())
    assert reader.next() == LARGE
    error = reader.check_large()
    assert isinstance(error, CorruptFile)
    assert "checksum" in error.rule
    assert len(reader.memory) == 100


def test_a_length_that_lies_does_not_cost_memory(tmp_path: Path) -> None:
    lying = bytearray(batches()[0])
    lying[8:12] = (2**30).to_bytes(4, "big")
    file = opened(tmp_path, bytes(lying) + bytes(1000))
    reader = BlockReader(kernels(0), 100, ROWS)
    reader.begin(file, 0, file.size())
    assert reader.next() == scan.TORN
