"""Text is copied as Java decodes it: what is no UTF-8 is replaced, by as many characters."""

from __future__ import annotations

import itertools
import random

from octavo.records.kernels.printing.text import ROOM_A_BYTE, put_utf8, sequence_of
from octavo.records.sequence import record_sequence
from octavo.records.text import read_text


def copied(data: bytes) -> str:
    out = memoryview(bytearray(len(data) * ROOM_A_BYTE))  # the room that callers make
    end = put_utf8(out, 0, memoryview(data), 0, len(data))
    return bytes(out[:end]).decode()


def test_every_sequence_of_bytes_that_decide_is_decoded_as_in_java() -> None:
    deciding = [
        0x41,
        0x7F,
        0x80,
        0x8F,
        0x90,
        0x9F,
        0xA0,
        0xBF,
        0xC0,
        0xC2,
        0xDF,
        0xE0,
        0xE1,
        0xED,
        0xEF,
        0xF0,
        0xF4,
        0xF5,
    ]
    for size in range(4):
        for data in map(bytes, itertools.product(deciding, repeat=size)):
            assert copied(data) == read_text(data), data.hex()


def test_random_bytes_are_decoded_as_in_java() -> None:
    chance = random.Random(3)
    for _ in range(2000):
        data = bytes(chance.choice((0xF0, 0xED, 0xE2, 0x80, 0xA0, 0x90, chance.randrange(256))) for _ in range(12))
        assert copied(data) == read_text(data), data.hex()


def test_sequences_wrap_as_in_java() -> None:
    for base in (-1, 0, 5, 2**31 - 2, 2**31 - 1):
        for delta in (0, 1, 2, 100, 2**31 - 1):
            assert sequence_of(base, delta) == record_sequence(base, delta)
