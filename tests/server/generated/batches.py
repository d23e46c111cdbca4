"""Batches of records of every magic, codec and kind, sound and broken."""

from __future__ import annotations

import random
import struct
from typing import Any, Final

from octavo.records import BatchBuilder, Codec, TimestampType
from octavo.records.checksum import crc32c
from tests.server.generated.symbols import Records

TIMES: Final = (1_700_000_000_000, 1_700_000_000_001, 1_700_000_060_000, 1_500_000_000_000, 0, 1)
_ODD_TIMES: Final = (-1, 9_000_000_000_000, (1 << 62))
_KEYS: Final = (None, b"", b"k", b"key-1", b"\xff\x00")
_HEADERS: Final[tuple[tuple[Any, ...], ...]] = ((), (), (("h", b"v"),), (("h", None), ("h", b"")))
_CRC_AT, _CRC_FROM = 17, 21

# What is done to a sound batch.
DAMAGES: Final = (
    "cut",
    "flip",
    "flip and mend",
    "twice",
    "garbage",
    "empty",
    "longer",
    "magic",
    "count",
    "delta",
    "max timestamp",
    "attributes",
    "producer",
    "base offset",
)


def some_records(rng: random.Random, odds: float, *, idempotent: bool = False, keyed: bool = False) -> Records:
    """Return records for one partition; with `odds` something about them is odd."""
    seed = rng.getrandbits(32)
    odd = rng.random() < odds
    magic = rng.choice((0, 1)) if odd and rng.random() < 0.15 else 2
    damage = rng.choice(DAMAGES) if odd and rng.random() < 0.8 else None
    sequence = rng.choice((0, 0, 0, 1, 5)) if odd else 0
    epoch = rng.choice((0, 1)) if odd else 0
    codec = rng.choice([*Codec]) if magic == 2 else rng.choice((Codec.NONE, Codec.GZIP))

    def build(producer_id: int) -> bytes:
        producer = (
            {"producer_id": producer_id, "producer_epoch": epoch, "base_sequence": sequence} if idempotent else {}
        )
        return _build(random.Random(seed), odd, magic, codec, producer, damage, keyed)

    text = f"magic {magic}, {codec.name}, {damage or 'sound'}, seed {seed}{', idempotent' if idempotent else ''}"
    return Records(text, build)


def _build(
    rng: random.Random, odd: bool, magic: int, codec: Codec, producer: dict[str, int], damage: str | None, keyed: bool
) -> bytes:
    settings: dict[str, Any] = dict(producer) if magic == 2 else {}
    if odd and magic == 2 and rng.random() < 0.1:
        settings |= {"timestamp_type": TimestampType.LOG_APPEND_TIME, "log_append_time_ms": TIMES[0]}
    if magic == 0:
        settings["timestamp_type"] = TimestampType.NONE
    builder = BatchBuilder(magic, codec=codec, **settings)
    for _ in range(rng.randint(1, 5)):
        key = rng.choice(_KEYS[1:] if keyed and not odd else _KEYS)
        value = rng.choice((None, b"", b"value", rng.randbytes(rng.randint(1, 60)), b"x" * 300))
        if odd and rng.random() < 0.05:
            value = rng.randbytes(3000)
        time = rng.choice(_ODD_TIMES) if odd and rng.random() < 0.1 else rng.choice(TIMES)
        headers = rng.choice(_HEADERS) if magic == 2 else ()
        builder.append(key, value, timestamp_ms=-1 if magic == 0 else time, headers=headers)
    return _damaged(rng, bytes(builder.build()), damage)


def _damaged(rng: random.Random, sound: bytes, damage: str | None) -> bytes:
    match damage:
        case None:
            return sound
        case "cut":
            return sound[: rng.randrange(1, len(sound))]
        case "flip":
            return _flipped(rng, sound)
        case "flip and mend":
            return _mended(_flipped(rng, sound))
        case "twice":
            return sound + sound
        case "garbage":
            return rng.randbytes(rng.randint(1, 100))
        case "empty":
            return b""
        case "longer":
            return sound + b"\0" * rng.randint(1, 20)
        case "magic":
            return sound[:16] + bytes((rng.choice((0, 1, 3, 127, 255)),)) + sound[17:]
    return _with_header(rng, sound, damage)


# Where a field of the header of magic 2 is, its layout, and odd values of it.
_FIELDS: Final[dict[str, tuple[int, str, tuple[int, ...]]]] = {
    "count": (57, ">i", (0, -1, 1, 1000, 0x7FFFFFFF)),
    "delta": (23, ">i", (0, -1, 100, 0x7FFFFFFF)),
    "max timestamp": (35, ">q", (0, -1, 9_000_000_000_000)),
    "attributes": (21, ">h", (0x10, 0x20, 0x40, 5, 7, 8, 0x80, -1, 0x30)),
    "producer": (43, ">q", (5, -1, -2, 1 << 62)),
    "base offset": (0, ">q", (1, 5, -1, 1 << 40)),
}


def _with_header(rng: random.Random, sound: bytes, damage: str) -> bytes:
    if len(sound) < 61:
        return sound
    at, layout, values = _FIELDS[damage]
    changed = bytearray(sound)
    struct.pack_into(layout, changed, at, rng.choice(values))
    return _mended(bytes(changed))


def _flipped(rng: random.Random, sound: bytes) -> bytes:
    changed = bytearray(sound)
    changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _mended(batch: bytes) -> bytes:
    """Return a batch with the right checksum."""
    if len(batch) < 61 or batch[16] != 2:
        return batch
    return batch[:_CRC_AT] + struct.pack(">I", crc32c(batch[_CRC_FROM:])) + batch[_CRC_FROM:]
