"""Compute the checksums of Kafka's formats: CRC-32C for batches of magic 2, CRC-32 for messages of magic 0 and 1.

`RangeChecksum` serves the search for batches in arbitrary bytes: it computes the checksum of any range at a bounded
cost, however long the range claims to be.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Final

from crc32c import crc32c
from isal.isal_zlib import crc32

from octavo.records.kernels.checksum import CASTAGNOLI, IEEE
from octavo.records.layout import BATCH_HEADER, MAGIC_AT, MESSAGE_V0, Buffer

__all__ = ["RangeChecksum", "covered_from", "crc32", "crc32c", "crc_of", "stored_crc_at"]


_CRC_V0: Final = MESSAGE_V0.at("crc")
_CRC_V2: Final = BATCH_HEADER.at("crc")
_COVERED_V2: Final = BATCH_HEADER.at("attributes")


def stored_crc_at(magic: int) -> int:
    """Return the position of the checksum within a batch of `magic`."""
    return _CRC_V2 if magic == 2 else _CRC_V0


def covered_from(magic: int) -> int:
    """Return where the bytes that the checksum covers begin within a batch of `magic`; they reach to its end."""
    return _COVERED_V2 if magic == 2 else MAGIC_AT


def crc_of(batch: memoryview, magic: int) -> int:
    """Compute the checksum that a batch of `magic` should have stored."""
    if magic == 2:
        return crc32c(batch[_COVERED_V2:])
    return crc32(batch[MAGIC_AT:])


class RangeChecksum:
    """Computes checksums of ranges of one buffer, each at a cost that does not grow with the range.

    Otherwise, the cost of checking bytes that look like thousands of huge batches would be the number of batches
    times their size. Short ranges are computed directly. For long ones, the checksum of everything before each block is
    kept. If the checksums of A and AB are known, the checksum of B is `crc(AB) ^ crc(A) * x**(8 * len(B))` in the field
    of the polynomial.
    """

    BLOCK: Final = 1 << 16

    def __init__(self, buffer: memoryview, start: int, magic: int) -> None:
        self._buffer = buffer
        self._start = start
        self._crc: Callable[[Buffer, int], int] = crc32c if magic == 2 else crc32
        self._polynomial = CASTAGNOLI if magic == 2 else IEEE
        self._before = array("L", [0])  # the checksum of everything before each block
        self._powers: list[list[int]] = []  # for each digit of a size in base 256, x**(8 * digit * 256**place)

    def of(self, start: int, end: int) -> int:
        """Return the checksum of `buffer[start:end]`."""
        if end - start <= self.BLOCK:
            return self._crc(self._buffer[start:end], 0)
        return self._of_all_before(end) ^ self._shift(self._of_all_before(start), end - start)

    def _of_all_before(self, position: int) -> int:
        block, rest = divmod(position - self._start, self.BLOCK)
        while len(self._before) <= block:
            at = self._start + (len(self._before) - 1) * self.BLOCK
            self._before.append(self._crc(self._buffer[at : at + self.BLOCK], self._before[-1]))
        return self._crc(self._buffer[position - rest : position], self._before[block])

    def _shift(self, crc: int, size: int) -> int:
        """Return `crc * x**(8 * size)`."""
        place = 0
        while size:
            if place == len(self._powers):
                self._add_powers()
            if size & 0xFF:
                crc = self._multiply(self._powers[place][size & 0xFF], crc)
            size >>= 8
            place += 1
        return crc

    def _add_powers(self) -> None:
        one = 1 << 31
        step = one >> 8  # x**8, one byte
        if self._powers:
            step = self._multiply(self._powers[-1][-1], self._powers[-1][1])
        powers = [one]
        for _ in range(255):
            powers.append(self._multiply(powers[-1], step))
        self._powers.append(powers)

    def _multiply(self, a: int, b: int) -> int:
        """Return the product of two polynomials modulo the generator."""
        product = 0
        bit = 1 << 31
        while a:
            if a & bit:
                product ^= b
                a ^= bit
            bit >>= 1
            b = (b >> 1) ^ self._polynomial if b & 1 else b >> 1
        return product
