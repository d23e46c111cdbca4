"""Hash keys for compaction with SipHash-2-4 and 128 bits of output.

Keys are compared by their hash alone, as in Kafka. So two keys with the same hash would count as one key, and the older
value would be lost. Kafka uses MD5, for which anybody can construct such pairs. Here the hash has a secret key, drawn
anew for every cleaning, and nobody can construct pairs without knowing it. SipHash is also faster: a short key takes a
dozen rounds and not a whole block of 64 bytes.
"""

from __future__ import annotations

from octavo.records.kernels.machine import Array, read_le64, rotate_left, wrap64

State = tuple[int, int, int, int]


def sip_round(a: int, b: int, c: int, d: int) -> State:
    """Perform one round of SipHash on the four words of its state."""
    a = wrap64(a + b)
    c = wrap64(c + d)
    b = rotate_left(b, 13) ^ a
    d = rotate_left(d, 16) ^ c
    a = wrap64(rotate_left(a, 32) + d)
    c = wrap64(c + b)
    b = rotate_left(b, 17) ^ c
    d = rotate_left(d, 21) ^ a
    return a, b, rotate_left(c, 32), d


def last_word(data: Array, end: int, length: int) -> int:
    """Return the bytes of a key after its last whole word, with the key's length in the top byte."""
    left = length & 7
    word = wrap64((length & 0xFF) << 56)
    if left == 0:
        return word
    if end >= 8:
        return word | read_le64(data, end - 8) >> 8 * (8 - left) & ((1 << 8 * left) - 1)
    for at in range(left):
        word |= (data[end - left + at] & 0xFF) << 8 * at
    return word


def sip_hash(seed: Array, data: Array, at: int, length: int) -> tuple[int, int]:
    """Return both halves of the hash of `data[at : at + length]`, which must be in range; `seed` is the secret key."""
    a = seed[0] ^ 0x736F6D6570736575
    b = seed[1] ^ 0x646F72616E646F6D ^ 0xEE
    c = seed[0] ^ 0x6C7967656E657261
    d = seed[1] ^ 0x7465646279746573
    end = at + length
    while at + 8 <= end:
        word = read_le64(data, at)
        d ^= word
        a, b, c, d = sip_round(a, b, c, d)
        a, b, c, d = sip_round(a, b, c, d)
        a ^= word
        at += 8
    word = last_word(data, end, length)
    d ^= word
    a, b, c, d = sip_round(a, b, c, d)
    a, b, c, d = sip_round(a, b, c, d)
    a ^= word
    c ^= 0xEE
    for _ in range(4):
        a, b, c, d = sip_round(a, b, c, d)
    first = a ^ b ^ c ^ d
    b ^= 0xDD
    for _ in range(4):
        a, b, c, d = sip_round(a, b, c, d)
    return first, a ^ b ^ c ^ d
