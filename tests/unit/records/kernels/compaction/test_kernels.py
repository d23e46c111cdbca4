"""The hash of keys, and the map from hashes to offsets."""

from __future__ import annotations

import struct
from collections.abc import Callable
from random import Random

import numpy as np
import pytest

from octavo.records.kernels.compaction.hash import sip_hash
from octavo.records.kernels.compaction.map import WORDS, find_offset, put_offset
from octavo.records.kernels.compaction.read import any_keyed
from octavo.records.kernels.skim import quick_record
from octavo.records.v2 import write_headers, write_record

# Of the reference implementation: the key 00 to 0f, and the bytes 00, 01 and so on, as many as there are before.
VECTORS = {
    0: "a3817f04ba25a8e66df67214c7550293",
    1: "da87c1d86b99af44347659119b22fc45",
    2: "8177228da4a45dc7fca38bdef60affe4",
    3: "9c70b60c5267a94e5f33b6b02985ed51",
    4: "f88164c12d9c8faf7d0f6e7c7bcd5579",
    7: "a1f1ebbed8dbc153c0b84aa61ff08239",
    8: "3b62a9ba6258f5610f83e264f31497b4",
    15: "5493e99933b0a8117e08ec0f97cfc3d9",
}


@pytest.mark.parametrize("before", [0, 3, 8])
@pytest.mark.parametrize(("length", "expected"), VECTORS.items())
def test_keys_are_hashed_by_siphash(length: int, expected: str, before: int) -> None:
    seed = struct.unpack("<2q", bytes(range(16)))
    data = b"?" * before + bytes(range(length)) + b"!" * 8
    assert struct.pack("<2q", *sip_hash(seed, data, before, length)).hex() == expected


def test_a_map_finds_what_was_put_last() -> None:
    random = Random(1)
    slots = np.zeros(WORDS * 100, np.int64).data
    known: dict[tuple[int, int], int] = {}
    hashes = [(random.getrandbits(64) - 2**63, random.getrandbits(64) - 2**63) for _ in range(90)]
    hashes[0] = (0, 0)  # as an empty slot has
    for offset in range(300):
        key = random.choice(hashes)
        assert put_offset(slots, *key, offset) == (key not in known)
        known[key] = offset
    assert all(find_offset(slots, *key) == known.get(key, -1) for key in hashes)


def record(draw: Callable[[int], int], headers: int) -> bytes:
    """A record of any sizes that matter to how it is read."""
    out = bytearray()
    sizes = (0, 1, 10, 63, 64, 127, 128, 8000)
    key = None if draw(5) == 0 else bytes(sizes[draw(len(sizes))])
    value = None if draw(5) == 0 else bytes(sizes[draw(len(sizes))])
    deltas = (0, -1, 1, 63, 64, -65, 8191, 8192, 1 << 20, 1 << 30)
    written = write_headers([("h", b"v")] * headers)
    write_record(out, deltas[draw(10)], abs(deltas[draw(10)]), key, value, headers, written)
    return bytes(out)


def test_what_is_read_quickly_is_what_is_read_slowly() -> None:
    random = Random(2)
    quick_ones = 0
    for number in range(2000):
        data = record(random.randrange, headers=number % 10 == 0) + bytes(random.choice((0, 20)))
        quick, thorough = quick_record(data, 0, len(data)), any_keyed(data, 0, len(data))
        if quick[0]:
            quick_ones += 1
            assert quick == thorough
    assert quick_ones > 500


def test_a_record_that_lies_is_never_read_quickly() -> None:
    random = Random(3)
    for _ in range(3000):
        data = bytearray(record(random.randrange, headers=0)[:60] + bytes(20))
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
        quick = quick_record(data, 0, len(data))
        if quick[0]:
            assert quick == any_keyed(data, 0, len(data))
