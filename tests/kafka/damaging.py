"""Damage to bytes, as disks and crashes leave it: flipped bits, zeroed pages, cuts, splices and garbage."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

_EXTREMES: Final = (0, 1, 0x7F, 0x80, 0xFF)


def damaged(chance: random.Random, data: bytes) -> bytes:
    """Damage `data` in one way, once or a few times."""
    result = bytearray(data)
    damage = chance.choice(_WAYS)
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        if result:
            damage(chance, result, chance.randrange(len(result)))
    return bytes(result)


def _flip(chance: random.Random, data: bytearray, at: int) -> None:
    data[at] ^= 1 << chance.randrange(8)


def _replace(chance: random.Random, data: bytearray, at: int) -> None:
    data[at] = chance.randrange(256)


def _cut(chance: random.Random, data: bytearray, at: int) -> None:
    del data[at:]


def _zero(chance: random.Random, data: bytearray, at: int) -> None:
    end = min(at + chance.randrange(1, 64), len(data))
    data[at:end] = bytes(end - at)


def _splice(chance: random.Random, data: bytearray, at: int) -> None:
    start = chance.randrange(len(data))
    data[at:at] = data[start : start + chance.randrange(1, 200)]


def _append(chance: random.Random, data: bytearray, at: int) -> None:
    data += chance.randbytes(chance.randrange(1, 100))


def _remove(chance: random.Random, data: bytearray, at: int) -> None:
    del data[at : at + chance.randrange(1, 50)]


def _put_extreme(chance: random.Random, data: bytearray, at: int) -> None:
    data[min(chance.choice((at, chance.randrange(70))), len(data) - 1)] = chance.choice(_EXTREMES)


_WAYS: Final[tuple[Callable[[random.Random, bytearray, int], None], ...]] = (
    _flip,
    _replace,
    _cut,
    _zero,
    _splice,
    _append,
    _remove,
    _put_extreme,
)
