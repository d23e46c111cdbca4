"""Inputs for the fuzzer: sound batches of all kinds, made and then damaged with a knowledge of how they are built.

Everything follows from a seed and a number, so that an input can be made again.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import cramjam
import zstandard

from octavo.errors import OctavoError
from octavo.records import BatchBuilder, Codec, TimestampType
from octavo.records.compression import compress, decompress
from octavo.records.layout import BATCH_HEADER, LOG_OVERHEAD, MAGIC_AT, MAX_SIZE, MESSAGE_V0, MESSAGE_V1
from tests.corruption import forge

_NOW: Final = 1_700_000_000_000
_POOL: Final = 150  # sound batches that a seed makes
_HEADER: Final = BATCH_HEADER.size

_INTERESTING: Final = (
    *(-(2**63), 2**63 - 1, -(2**31), 2**31 - 1, 2**31, 2**32 - 1, -1, -2, 0, 1, 2, 13, 14, 49, 61, 63, 64, 127, 128),
    *(255, 256, 1023, 1024, 1025, 65535, 65536, 2**20),
)

# Where the numbers of a header stand, and how wide they are.
_FIELDS_V2: Final = {
    "base_offset": 8,
    "length": 4,
    "leader_epoch": 4,
    "magic": 1,
    "crc": 4,
    "attributes": 2,
    "last_offset_delta": 4,
    "base_timestamp_ms": 8,
    "max_timestamp_ms": 8,
    "producer_id": 8,
    "producer_epoch": 2,
    "base_sequence": 4,
    "record_count": 4,
}


class Input(NamedTuple):
    """Bytes to read, and whether they are what a writer wrote."""

    data: bytes
    sound: bool
    random: random.Random  # for whatever else the case has to choose


class Inputs:
    """All inputs of one seed."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        dice = random.Random(f"{seed} pool")
        self._pool = [_sound_batch(dice) for _ in range(_POOL)]

    def make(self, number: int) -> Input:
        dice = random.Random(f"{self._seed} {number}")
        kind = dice.random()
        if kind < 0.05:
            return Input(b"".join(self._batches(dice, 6)), True, dice)
        if kind < 0.1:
            return Input(_garbage(dice), False, dice)
        batches = self._batches(dice, 4)
        for _ in range(dice.choice((1, 1, 1, 2, 3))):
            at = dice.randrange(len(batches))
            batches[at] = self._damaged(dice, batches[at])
        data = b"".join(batches)
        if dice.random() < 0.15:
            data = _splice(dice, data, dice.choice(self._pool))
        if dice.random() < 0.1:
            data = data[: dice.randrange(len(data) + 1)]
        return Input(data, False, dice)

    def _batches(self, dice: random.Random, most: int) -> list[bytes]:
        return [dice.choice(self._pool) for _ in range(dice.randint(1, most))]

    def _damaged(self, dice: random.Random, batch: bytes) -> bytes:
        """One batch, damaged; most often it is sealed again, because a wrong checksum hides everything else."""
        damage: Callable[[random.Random, bytes], bytes] = dice.choice(_DAMAGE)
        batch = damage(dice, batch)
        if dice.random() < 0.2:
            batch = _splice(dice, batch, dice.choice(self._pool))
        return _sealed(batch, fix_length=dice.random() < 0.9) if dice.random() < 0.85 else batch


# What a writer writes.


def _bytes(dice: random.Random, most: int) -> bytes | None:
    kind = dice.random()
    if kind < 0.1:
        return None
    if kind < 0.2:
        return b""
    size = dice.randint(1, most)
    return dice.randbytes(size) if kind < 0.5 else (b"abc %d " % dice.randrange(99) * size)[:size]


def _headers(dice: random.Random) -> list[tuple[str, bytes | None]]:
    count = dice.choice((0, 0, 0, 1, 2, 5)) if dice.random() < 0.98 else 1100
    return [(dice.choice(("", "h", "key \N{GREEK SMALL LETTER KAPPA}")), _bytes(dice, 9)) for _ in range(count)]


def _sound_batch(dice: random.Random) -> bytes:
    magic = dice.choice((0, 1, 2, 2, 2))
    codec = dice.choice([codec for codec in Codec if magic == 2 or codec != Codec.ZSTD])
    given: dict[str, Any] = {"base_offset": dice.choice((0, 5, 10**6, 2**40, 2**63 - 10_000))}
    if magic and dice.random() < 0.2:
        given |= {"timestamp_type": TimestampType.LOG_APPEND_TIME, "log_append_time_ms": _NOW}
    if magic == 2:
        given["leader_epoch"] = dice.choice((-1, 0, 7))
        if dice.random() < 0.4:
            given |= {"producer_id": 9, "producer_epoch": 1, "base_sequence": dice.choice((0, 5, 2**31 - 3))}
            given["transactional"] = dice.random() < 0.5
        if dice.random() < 0.1:
            given["delete_horizon_ms"] = _NOW
    builder = BatchBuilder(magic, codec=codec, **given)
    size = dice.choice((10, 100, 100, 3000))
    for _ in range(dice.choice((1, 1, 2, 5, 20))):
        builder.append(
            _bytes(dice, size // 2),
            _bytes(dice, size),
            timestamp_ms=_NOW + dice.choice((0, 1, -500, 10**6)),
            headers=_headers(dice) if magic == 2 else [],
            offset=builder.next_offset + dice.choice((0, 0, 0, 1, 100)),
        )
    batch = builder.build()
    return _foreign(dice, batch) if magic == 2 and codec != Codec.NONE and dice.random() < 0.3 else batch


def _foreign(dice: random.Random, batch: bytes) -> bytes:
    """The same records as another writer frames them."""
    codec = Codec(batch[22] & 7)
    records = bytes(decompress(codec, batch[_HEADER:]))
    cut = dice.randrange(len(records) + 1)
    match codec:
        case Codec.GZIP:
            stream = zlib.compress(records[:cut], wbits=31) + zlib.compress(records[cut:], wbits=31)
        case Codec.SNAPPY:
            stream = bytes(cramjam.snappy.compress_raw(records))
        case Codec.ZSTD:
            packer = zstandard.ZstdCompressor(write_content_size=False, write_checksum=True)
            stream = packer.compress(records[:cut]) + packer.compress(records[cut:])
        case _:
            stream = compress(codec, records, level=3)
    return _sealed(batch[:_HEADER] + stream, fix_length=True)


# What damage does.


def _sealed(batch: bytes, *, fix_length: bool) -> bytes:
    """The batch with its own length and checksum, if there is enough of it."""
    if len(batch) <= _HEADER or batch[MAGIC_AT] > 2:
        return batch
    if fix_length:
        batch = batch[:8] + (len(batch) - LOG_OVERHEAD).to_bytes(4, "big") + batch[12:]
    return forge.sealed(batch)


def _garbage(dice: random.Random) -> bytes:
    size = dice.choice((0, 1, 11, 12, 16, 17, 26, 61, 100, 2000))
    return dice.choice((dice.randbytes(size), bytes(size), bytes((dice.randrange(256),)) * size))


def _splice(dice: random.Random, one: bytes, other: bytes) -> bytes:
    """Bytes of one are replaced by bytes of the other, of the same or of another length."""
    at, size = dice.randrange(len(one) + 1), dice.choice((1, 4, 20, 200))
    start = dice.randrange(len(other) + 1)
    removed = size if dice.random() < 0.7 else dice.randrange(2 * size)
    return one[:at] + other[start : start + size] + one[at + removed :]


def _bytes_changed(dice: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(dice.choice((1, 1, 2, 4))):
        if changed:
            at = dice.randrange(len(changed))
            flip = dice.choice((0x01, 0x80, 0xFF, 1 << dice.randrange(8)))
            changed[at] = dice.choice((changed[at] ^ flip, 0x00, 0x7F, 0x80, 0xFF, dice.randrange(256)))
    return bytes(changed)


def _range_changed(dice: random.Random, data: bytes) -> bytes:
    """A range is deleted, repeated, moved or overwritten."""
    at, size = dice.randrange(len(data) + 1), dice.choice((1, 2, 7, 30, 300))
    piece = data[at : at + size]
    return dice.choice(
        (
            data[:at] + data[at + size :],
            data[:at] + piece * dice.randint(2, 5) + data[at + size :],
            data[:at] + bytes(len(piece)) + data[at + size :],
            data[:at] + dice.randbytes(size) + data[at:],
            piece + data[:at] + data[at + size :],
        )
    )


def _field_changed(dice: random.Random, batch: bytes) -> bytes:
    """A number of the header is another."""
    if len(batch) < _HEADER:
        return _bytes_changed(dice, batch)
    if batch[MAGIC_AT] == 2:
        name = dice.choice(list(_FIELDS_V2))
        at, size = BATCH_HEADER.at(name), _FIELDS_V2[name]
    else:
        at, size = dice.choice(((0, 8), (8, 4), (12, 4), (16, 1), (17, 1), (18, 4), (18, 8), (22, 4), (26, 4), (30, 4)))
    number = dice.choice((*_INTERESTING, dice.randrange(-(2**63), 2**63), dice.randrange(300)))
    if dice.random() < 0.3:
        number = int.from_bytes(batch[at : at + size], "big") + dice.choice((-2, -1, 1, 2))
    return batch[:at] + (number & (1 << 8 * size) - 1).to_bytes(size, "big") + batch[at + size :]


def _varint_changed(dice: random.Random, data: bytes) -> bytes:
    """Some byte becomes the beginning of another varint: longer, larger, negative, endless."""
    at = dice.randrange(len(data) + 1)
    number = forge.varint(dice.choice((*_INTERESTING, dice.randrange(-200, 200), len(data), len(data) - at)))
    varint = dice.choice((number, number, forge.UNENDING, forge.UNENDING[:4] + b"\x7f", b"\x80\x80\x00", b"\xff"))
    keep = at + dice.choice((1, 1, 1, 0, len(varint)))
    return data[:at] + varint + data[keep:]


def _number_changed(dice: random.Random, data: bytes) -> bytes:
    """Four bytes somewhere become an interesting number: lengths of messages, sizes of blocks."""
    at = dice.randrange(len(data) + 1)
    number = dice.choice((*_INTERESTING, len(data), dice.randrange(100))) & 0xFFFFFFFF
    return data[:at] + number.to_bytes(4, dice.choice(("big", "little"))) + data[at + 4 :]


_PLAIN_DAMAGE: Final = (
    _bytes_changed,
    _bytes_changed,
    _range_changed,
    _varint_changed,
    _varint_changed,
    _number_changed,
)


def _inside_changed(dice: random.Random, batch: bytes) -> bytes:
    """What the batch holds is damaged, then compressed again: with its codec or with another."""
    if len(batch) <= _HEADER or batch[MAGIC_AT] > 2:
        return _bytes_changed(dice, batch)
    magic = batch[MAGIC_AT]
    attributes = batch[22] if magic == 2 else batch[17]
    head = _HEADER if magic == 2 else (MESSAGE_V1 if magic else MESSAGE_V0).size + 8
    try:
        inside = bytes(decompress(attributes & 7, batch[head:], magic=magic, limit=1 << 20))
    except OctavoError:
        return _bytes_changed(dice, batch)
    for _ in range(dice.choice((1, 1, 2))):
        inside = dice.choice(_PLAIN_DAMAGE)(dice, inside)
    codec = attributes & 7
    if dice.random() < 0.2 and (magic == 2 or codec):
        codec = dice.choice((0, 1, 2, 3, 4) if magic == 2 else (1, 2, 3))
    stream = compress(codec, inside, magic=magic)
    if magic == 2:
        return batch[:22] + bytes((attributes & ~7 | codec,)) + batch[23:head] + stream
    size = len(stream) if codec else int.from_bytes(batch[head - 4 : head], "big")
    start = batch[:17] + bytes((attributes & ~7 | codec,)) + batch[18 : head - 4]
    return start + (size & MAX_SIZE).to_bytes(4, "big") + stream


def _stream_changed(dice: random.Random, batch: bytes) -> bytes:
    """What follows the header is damaged as it stands."""
    return batch[:_HEADER] + dice.choice(_PLAIN_DAMAGE)(dice, batch[_HEADER:])


_DAMAGE: Final = (
    _field_changed,
    _field_changed,
    _inside_changed,
    _inside_changed,
    _inside_changed,
    _inside_changed,
    _stream_changed,
    _bytes_changed,
    _range_changed,
)
