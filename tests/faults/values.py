"""Values of records, each with a number of its own and bytes that follow from the number."""

from __future__ import annotations

import itertools
from random import Random
from typing import Final

_BLOCK: Final = Random(16).randbytes(1 << 14)
_SIZES: Final = (0, 10, 100, 100, 100, 1000, 5000)


class Numbers:
    """Numbers that are given out once. Threads may share it."""

    def __init__(self) -> None:
        self._count = itertools.count(1)

    def take(self) -> int:
        """Return the next number."""
        return next(self._count)


def encode(number: int) -> bytes:
    """Return the value with this number."""
    at = number % (len(_BLOCK) >> 1)
    return b"%d:" % number + _BLOCK[at : at + _SIZES[number % len(_SIZES)]]


def decode(data: bytes | None) -> int | bytes | None:
    """Return the number of a value, or the bytes if they are not what `encode` made: nobody has sent those."""
    if data is None:
        return None
    digits, _, _ = data.partition(b":")
    if not digits.isdigit() or encode(int(digits)) != data:
        return data
    return int(digits)
