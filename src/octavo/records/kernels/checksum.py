"""Compute checksums inside kernels, as fast as a library, without a call from Python for every batch.

CRC-32C, for magic 2, uses vector instructions if the processor has them (`machine.crc32c_folded`). Otherwise, and for
the last bytes, it uses the processor's instruction for this checksum (`machine.crc32c_step`). Each such instruction has
to wait for the one before it, so three streams are computed at once and then combined. That requires advancing a
checksum over as many zeros as a stream is long, which is linear in its bits and takes four table look-ups. CRC-32, for
the old magics, processes eight bytes per step with tables. Messages are short.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from octavo.records.kernels.machine import Array, crc32, crc32c_folded, crc32c_step, prefetch
from octavo.records.kernels.scan import CRC, MAGIC, POSITION, SIZE
from octavo.records.layout import BATCH_HEADER, MAGIC_AT

IEEE: Final = 0xEDB88320  # CRC-32
CASTAGNOLI: Final = 0x82F63B78  # CRC-32C

LONG: Final = 2048  # bytes in each of the three streams
SHORT: Final = 256  # the same, for what is left after long streams
LINE: Final = 64  # bytes that a processor fetches at once
assert LONG % LINE == SHORT % LINE == 0

_COVERED_V2 = BATCH_HEADER.at("attributes")


class Tables(NamedTuple):
    """The lookup tables for checksums, as int64."""

    ieee: Array  # eight tables of 256 for CRC-32
    castagnoli: Array  # the same for CRC-32C
    after_long: Array  # four tables of 256: a byte of a CRC-32C after LONG zeros
    after_short: Array


def slicing_tables(polynomial: int) -> list[int]:
    """Return eight tables of 256 entries, one after the other, for compiled kernels."""
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (polynomial if value & 1 else 0)
        table.append(value)
    for index in range(256, 8 * 256):
        previous = table[index - 256]
        table.append((previous >> 8) ^ table[previous & 0xFF])
    return table


def zeros_tables(size: int, bytewise: list[int]) -> list[int]:
    """Return four tables of 256 entries, one for each byte of a CRC-32C: its value after `size` zeros."""
    of_bits = []
    for bit in range(32):
        value = 1 << bit
        for _ in range(size):
            value = (value >> 8) ^ bytewise[value & 0xFF]
        of_bits.append(value)
    table = []
    for place in range(4):
        for byte in range(256):
            value = 0
            for bit in range(8):
                if byte >> bit & 1:
                    value ^= of_bits[8 * place + bit]
            table.append(value)
    return table


def after_zeros(table: Array, value: int) -> int:
    """Advance a CRC-32C over the number of zeros that the table is for."""
    advanced: int = (
        table[value & 0xFF]
        ^ table[256 + (value >> 8 & 0xFF)]
        ^ table[512 + (value >> 16 & 0xFF)]
        ^ table[768 + (value >> 24)]
    )
    return advanced


def crc32c_blocks(data: Array, at: int, end: int, value: int, size: int, table: Array) -> tuple[int, int]:
    """Advance over all complete blocks of three streams of `size` bytes; returns (position after them, checksum)."""
    while at + 3 * size <= end:
        second = 0
        third = 0
        stop = at + size
        while at < stop:
            # The processor does not detect three streams by itself, so tell it what to fetch ahead.
            prefetch(data, at + 3 * size)
            prefetch(data, at + 4 * size)
            prefetch(data, at + 5 * size)
            line_end = at + LINE
            while at < line_end:
                value = crc32c_step(value, data, at)
                second = crc32c_step(second, data, at + size)
                third = crc32c_step(third, data, at + 2 * size)
                at += 8
        value = after_zeros(table, value) ^ second
        value = after_zeros(table, value) ^ third
        at += 2 * size
    return at, value


def crc32c(tables: Tables, data: Array, start: int, end: int, before: int = 0) -> int:
    """Compute the CRC-32C of `data[start:end]`, continuing from the checksum `before`; the caller checks the bounds."""
    at, value = crc32c_folded(before ^ 0xFFFFFFFF, data, start, end)
    at, value = crc32c_blocks(data, at, end, value, LONG, tables.after_long)
    at, value = crc32c_blocks(data, at, end, value, SHORT, tables.after_short)
    while at + 8 <= end:
        value = crc32c_step(value, data, at)
        at += 8
    while at < end:
        value = tables.castagnoli[(value ^ data[at]) & 0xFF] ^ (value >> 8)
        at += 1
    return value ^ 0xFFFFFFFF


def batch_checksum(tables: Tables, data: Array, position: int, size: int, magic: int) -> int:
    """Compute the checksum that the batch in `data[position : position + size]` should have stored."""
    if magic == 2:
        return crc32c(tables, data, position + _COVERED_V2, position + size)
    return crc32(tables.ieee, data, position + MAGIC_AT, position + size)


def verify(tables: Tables, data: Array, table: Array) -> int:
    """Return the first row of a batch table whose checksum is wrong, or -1."""
    for row in range(len(table)):
        computed = batch_checksum(tables, data, table[row, POSITION], table[row, SIZE], table[row, MAGIC])
        if computed != table[row, CRC]:
            return row
    return -1
