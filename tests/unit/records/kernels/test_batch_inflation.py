"""Batches of a table are decompressed in order, whatever their codecs, a bounded number of bytes at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Final

import numpy as np
import pytest

from octavo.errors import FormatError
from octavo.records.compression import Inflater, compress
from octavo.records.kernels import Kernels, scan
from octavo.records.kernels.batch_inflation import BatchInflation, Int64s
from octavo.records.layout import BATCH_HEADER, Codec
from tests.unit.records.compression.cases import text

BOTH: Final = [
    pytest.param(Kernels(compiled=False), id="interpreted"),
    pytest.param(Kernels(compiled=True), id="compiled"),
]
CODECS: Final = (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD)
Stream = tuple[Codec, bytes]


class Batches:
    """Some streams with room for headers between them, and the table that says where they are."""

    def __init__(self, kernels: Kernels, streams: Sequence[Stream]) -> None:
        self.table: Final[Int64s] = np.zeros((len(streams), scan.COLUMNS), np.int64)
        data = bytearray()
        for row, (codec, stream) in enumerate(streams):
            size = BATCH_HEADER.size + len(stream)
            columns = [scan.POSITION, scan.SIZE, scan.MAGIC, scan.ATTRIBUTES, scan.COUNT]
            self.table[row, columns] = len(data), size, 2, int(codec), 1
            data += bytes(BATCH_HEADER.size) + stream
        self.inflater: Final = Inflater(limit=1 << 20)
        rows = np.arange(len(streams))
        self.inflation: Final = BatchInflation(
            kernels, self.inflater, np.frombuffer(bytes(data), np.uint8), self.table, rows
        )

    def pieces(self, size: int) -> Iterator[list[bytes]]:
        """The contents of batches, `size` bytes at a time, until all are done or there is an error."""
        done: int | None = 0
        while done is not None and self.inflation.error is None:
            self.inflater.clear()
            self.inflation.go_on(size)
            rows = self.table[done : self.inflation.next_row]
            done = self.inflation.next_row
            yield [bytes(self.inflater.buffer[row[scan.START] : row[scan.END]]) for row in rows]


def contents(count: int, seed: int) -> list[tuple[Codec, bytes]]:
    """Codecs in runs of various lengths, and various sizes."""
    random = Random(seed)
    found: list[tuple[Codec, bytes]] = []
    while len(found) < count:
        codec = random.choice(CODECS)
        found += [(codec, text(random.randrange(1, 3000), seed + turn)) for turn in range(random.choice((1, 1, 2, 20)))]
    return found[:count]


@pytest.mark.parametrize("kernels", BOTH)
@pytest.mark.parametrize("size", [1, 5000, 100_000, 1 << 30])
@pytest.mark.parametrize("seed", range(5))
def test_batches_come_back_in_order_whatever_their_codecs(kernels: Kernels, size: int, seed: int) -> None:
    given = contents(150, seed)
    batches = Batches(kernels, [(codec, compress(codec, data)) for codec, data in given])
    pieces = list(batches.pieces(size))
    assert [data for piece in pieces for data in piece] == [data for _, data in given]
    assert batches.inflation.error is None
    assert all(pieces)  # each call advances
    largest = max(len(data) for _, data in given)
    assert all(sum(map(len, piece)) <= 2 * (size + largest) for piece in pieces)
    assert size < 1 << 30 or len(pieces) == 1


@pytest.mark.parametrize("kernels", BOTH)
@pytest.mark.parametrize("seed", range(20))
def test_the_first_damaged_batch_ends_it(kernels: Kernels, seed: int) -> None:
    random = Random(seed)
    given = contents(40, seed)
    streams = [(codec, compress(codec, data)) for codec, data in given]
    damaged = sorted(random.sample(range(40), 2))
    for row in damaged:
        codec, stream = streams[row]
        # A header of snappy that is cut would be raw snappy, and a block that is cut is no block.
        streams[row] = codec, stream[: max(len(stream) // 2, 17)]
    batches = Batches(kernels, streams)
    found = [data for piece in batches.pieces(random.choice((1, 3000, 1 << 30))) for data in piece]
    assert found == [data for _, data in given[: damaged[0]]]
    assert batches.inflation.next_row == damaged[0]
    assert isinstance(batches.inflation.error, FormatError)
    assert batches.inflation.error.position == batches.table[damaged[0], scan.POSITION]


@pytest.mark.parametrize("kernels", BOTH)
def test_bombs_by_turns_fill_no_more_than_was_asked_for(kernels: Kernels) -> None:
    zeros = bytes(1 << 19)
    given = [(CODECS[turn % 4], zeros) for turn in range(64)]
    batches = Batches(kernels, [(codec, compress(codec, data)) for codec, data in given])
    most = 0
    for piece in batches.pieces(1 << 16):
        assert set(piece) == {zeros}
        most = max(most, batches.inflater.end)
    assert batches.inflation.error is None
    assert most <= 2 * (1 << 16) + 2 * len(zeros)
