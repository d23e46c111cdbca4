"""The hash XXH3 with 64 bits, without a seed: `xxh3_64`.

Kafka keeps it of the topics of a group. It is for a few kilobytes: every lane is a Python integer.
"""

from __future__ import annotations

from struct import unpack_from
from typing import Final

_SECRET: Final = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
assert len(_SECRET) == 192

_PRIME32: Final = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
_PRIME64: Final = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_MIX: Final = 0x165667919E3779F9
_MIX_SHORT: Final = 0x9FB21C651E98DF25
_MASK: Final = (1 << 64) - 1
_MASK32: Final = (1 << 32) - 1

_STRIPE: Final = 64
_STRIPES: Final = (len(_SECRET) - _STRIPE) // 8  # of a block
_BLOCK: Final = _STRIPE * _STRIPES
_FIRST: Final = (_PRIME32[2], *_PRIME64[:4], _PRIME32[1], _PRIME64[4], _PRIME32[0])  # what lanes begin with


def xxh3_64(data: bytes) -> int:
    """Return the hash of some bytes, from 0 to 2**64 - 1."""
    size = len(data)
    if size <= 16:
        return _up_to_16(data)
    if size <= 128:
        return _up_to_128(data)
    if size <= 240:
        return _up_to_240(data)
    return _long(data)


def _up_to_16(data: bytes) -> int:
    size = len(data)
    if size > 8:
        low = _at(data, 0) ^ _at(_SECRET, 24) ^ _at(_SECRET, 32)
        high = _at(data, size - 8) ^ _at(_SECRET, 40) ^ _at(_SECRET, 48)
        swapped = int.from_bytes(low.to_bytes(8), "little")
        return _avalanche(size + swapped + high + _fold(low, high))
    if size > 3:
        first, last = int.from_bytes(data[:4], "little"), int.from_bytes(data[-4:], "little")
        value = (last + (first << 32)) ^ _at(_SECRET, 8) ^ _at(_SECRET, 16)
        value ^= _rotated(value, 49) ^ _rotated(value, 24)
        value = value * _MIX_SHORT & _MASK
        value = (value ^ ((value >> 35) + size)) * _MIX_SHORT & _MASK
        return value ^ (value >> 28)
    if size:
        whole = data[0] << 16 | data[size >> 1] << 24 | data[-1] | size << 8
        keys = _at(_SECRET, 0)
        return _old_avalanche(whole ^ (keys & _MASK32) ^ (keys >> 32))
    return _old_avalanche(_at(_SECRET, 56) ^ _at(_SECRET, 64))


def _up_to_128(data: bytes) -> int:
    size = len(data)
    total = size * _PRIME64[0]
    for number in range((size - 1) // 32 + 1):  # from both ends
        total += _mixed(data, 16 * number, 32 * number)
        total += _mixed(data, size - 16 * (number + 1), 32 * number + 16)
    return _avalanche(total)


def _up_to_240(data: bytes) -> int:
    size = len(data)
    total = size * _PRIME64[0]
    for number in range(8):
        total += _mixed(data, 16 * number, 16 * number)
    total = _avalanche(total)
    for number in range(8, size // 16):
        total += _mixed(data, 16 * number, 16 * (number - 8) + 3)
    return _avalanche(total + _mixed(data, size - 16, 119))


def _long(data: bytes) -> int:
    size = len(data)
    lanes = list(_FIRST)
    last_block = (size - 1) // _BLOCK * _BLOCK
    for begin in range(0, last_block, _BLOCK):
        for number in range(_STRIPES):
            _accumulate(lanes, data, begin + _STRIPE * number, 8 * number)
        keys = unpack_from("<8Q", _SECRET, len(_SECRET) - _STRIPE)
        lanes = [(lane ^ (lane >> 47) ^ key) * _PRIME32[0] & _MASK for lane, key in zip(lanes, keys, strict=True)]
    for number in range((size - 1 - last_block) // _STRIPE):
        _accumulate(lanes, data, last_block + _STRIPE * number, 8 * number)
    _accumulate(lanes, data, size - _STRIPE, len(_SECRET) - _STRIPE - 7)
    total = size * _PRIME64[0]
    for number in range(0, 8, 2):
        keys = unpack_from("<2Q", _SECRET, 11 + 8 * number)
        total += _fold(lanes[number] ^ keys[0], lanes[number + 1] ^ keys[1])
    return _avalanche(total)


def _accumulate(lanes: list[int], data: bytes, at: int, secret_at: int) -> None:
    values, keys = unpack_from("<8Q", data, at), unpack_from("<8Q", _SECRET, secret_at)
    for number in range(8):
        key = values[number] ^ keys[number]
        lanes[number] = (lanes[number] + (key & _MASK32) * (key >> 32) + values[number ^ 1]) & _MASK


def _mixed(data: bytes, at: int, secret_at: int) -> int:
    (low, high), keys = unpack_from("<2Q", data, at), unpack_from("<2Q", _SECRET, secret_at)
    return _fold(low ^ keys[0], high ^ keys[1])


def _at(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _MASK


def _fold(one: int, other: int) -> int:
    product = one * other
    return (product & _MASK) ^ (product >> 64)


def _avalanche(value: int) -> int:
    value &= _MASK
    value = (value ^ (value >> 37)) * _MIX & _MASK
    return value ^ (value >> 32)


def _old_avalanche(value: int) -> int:
    """Mix the bits as XXH64 does."""
    value = (value ^ (value >> 33)) * _PRIME64[1] & _MASK
    value = (value ^ (value >> 29)) * _PRIME64[2] & _MASK
    return value ^ (value >> 32)
