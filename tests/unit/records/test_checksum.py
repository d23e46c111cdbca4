from __future__ import annotations

import zlib
from random import Random

import pytest

from octavo.records.checksum import RangeChecksum, crc32, crc32c


def test_the_checksums_are_the_known_ones() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32(b"123456789") == zlib.crc32(b"123456789") == 0xCBF43926


@pytest.mark.parametrize(("magic", "checksum"), [(0, crc32), (1, crc32), (2, crc32c)])
def test_any_range_has_the_checksum_of_its_bytes(magic: int, checksum: type[int]) -> None:
    random = Random(magic)
    data = random.randbytes(5 * RangeChecksum.BLOCK)
    ranges = RangeChecksum(memoryview(data), 11, magic)
    for _ in range(200):
        start = random.randrange(11, len(data))
        end = random.randrange(start, len(data) + 1)
        assert ranges.of(start, end) == checksum(data[start:end])


def test_blocks_and_their_ends_make_no_difference() -> None:
    block = RangeChecksum.BLOCK
    data = bytes(range(256)) * (4 * block // 256)
    ranges = RangeChecksum(memoryview(data), 0, 2)
    for start in (0, 1, block - 1, block, block + 1):
        for end in (2 * block + start, 3 * block, 4 * block - 1, 4 * block):
            assert ranges.of(start, end) == crc32c(data[start:end])
