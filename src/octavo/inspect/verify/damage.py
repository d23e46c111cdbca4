"""Say what is wrong with bytes that are no sound batch."""

from __future__ import annotations

from typing import Final
from zlib import crc32

from crc32c import crc32c

from octavo.inspect.verify.batch_rules import FAULTS
from octavo.inspect.verify.problem import Problem
from octavo.log.storage import File
from octavo.records.kernels.verification import examine, faults
from octavo.records.layout import (
    ATTRIBUTES_AT,
    BATCH_HEADER,
    HEADER_SIZE,
    LENGTH_AT,
    MAGIC_AT,
    MESSAGE_V0,
)

_PIECE: Final = 1 << 20
_CRC_V0: Final = MESSAGE_V0.at("crc")
_CRC_V2: Final = BATCH_HEADER.at("crc")


def damage_at(file: File, name: str, position: int, next_position: int, outcome: int, detail: int) -> Problem:
    """Return what is wrong with the batch at `position`, for which the kernel gave `outcome` and `detail`.

    `next_position` is where the next sound batch begins, or the end of the file. It tells a wrong length from a wrong
    checksum: a length is in no checksum, and neither is the magic.
    """
    head = file.read_at(HEADER_SIZE, position)
    offset = int.from_bytes(head[:8], signed=True)
    length = int.from_bytes(head[LENGTH_AT : LENGTH_AT + 4], signed=True)
    size = detail if outcome == examine.MISMATCH else next_position - position
    if outcome == examine.BROKEN:
        number = length if detail == faults.LENGTH else head[MAGIC_AT]
        return FAULTS[detail].at(name, position, offset, number, 0)
    if outcome == examine.CUT or (size != next_position - position and _matches(file, position, next_position)):
        return FAULTS[faults.LENGTH].at(name, position, offset, length, 0)
    if head[MAGIC_AT] != 2 and size >= HEADER_SIZE and _checksum(file, position, size, 2) == _stored(head, 2):
        return FAULTS[faults.MAGIC].at(name, position, offset, head[MAGIC_AT], 0)
    stored, computed = _stored(head, head[MAGIC_AT]), _checksum(file, position, size, head[MAGIC_AT])
    return FAULTS[faults.CRC].at(name, position, offset, stored, computed)


def is_sound(file: File, position: int, size: int) -> bool:
    """Whether the checksum of a batch is right; it is read a piece at a time."""
    head = file.read_at(HEADER_SIZE, position)
    magic = head[MAGIC_AT]
    return _checksum(file, position, size, magic) == _stored(head, magic)


def _matches(file: File, position: int, end: int) -> bool:
    size = end - position
    return size >= HEADER_SIZE and is_sound(file, position, size)


def _stored(head: bytes, magic: int) -> int:
    at = _CRC_V2 if magic == 2 else _CRC_V0
    return int.from_bytes(head[at : at + 4])


def _checksum(file: File, position: int, size: int, magic: int) -> int:
    compute, start = (crc32c, ATTRIBUTES_AT) if magic == 2 else (crc32, MAGIC_AT)
    at, end, value = position + start, position + size, 0
    while at < end:
        data = file.read_at(min(_PIECE, end - at), at)
        if not data:
            break
        value = compute(data, value)
        at += len(data)
    return value
