"""What reading behind damage has to keep account of, and what makes the search for the next batch work hardest."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Final

from octavo.errors import FormatError
from octavo.records import BatchReader
from tests.corruption import forge


def account(reader: BatchReader, size: int) -> list[tuple[int, bytes]]:
    """Read all; asserts that batches, damage and torn tail are the whole buffer. Returns the batches."""
    batches = [(batch.position, bytes(batch.data)) for batch in reader]
    parts = [(position, len(data)) for position, data in batches]
    parts += [(damage.position, damage.size) for damage in reader.damage]
    if reader.torn_tail is not None:
        parts.append((reader.torn_tail, size - reader.torn_tail))
    at = 0
    for position, length in sorted(parts):
        assert position == at, f"byte {at} to {position} are missing or counted twice: {sorted(parts)}"
        assert length > 0
        at += length
    assert at == size, f"the account ends at {at} of {size}"
    for damage in reader.damage:
        assert isinstance(damage.error, FormatError)
        assert damage.error.position == damage.position
    return batches


# Bytes that look like batches all over, of which none checks out or all are far apart. The cost for each byte must
# depend neither on how many there are nor on what false headers claim.


def _filled(piece: bytes, size: int) -> bytes:
    return piece * (size // len(piece))


def _wrong_batch() -> bytes:
    sound = forge.batch(forge.record(), count=1, last_offset_delta=9)
    return sound[:17] + bytes(4) + sound[21:]


def _wrong_message(magic: int, length: int | None = None) -> bytes:
    """A message, or only the beginning of one whose value should have `length` bytes."""
    whole = forge.message(magic, None, None)
    if length is not None:
        whole = forge.message(magic, None, None, length=len(whole) - 12 + length, value_length=length)
    return whole[:12] + bytes(4) + whole[16:]


def _wrong_header(length: int) -> bytes:
    return (_wrong_batch()[:8] + length.to_bytes(4, "big") + _wrong_batch()[12:])[:61]


def _sound_but_far(size: int) -> bytes:
    """Sound batches with a byte between them, whose offsets are too far apart to be sure of."""
    batches = [forge.batch(forge.record(), count=1, base_offset=10**9 + at * 10**7) + b"\xff" for at in range(2000)]
    return _filled(b"".join(batches), size) or b"".join(batches)[:size]


ADVERSARIES: Final[dict[str, Callable[[int], bytes]]] = {
    "small batches": partial(_filled, _wrong_batch()),
    **{
        f"headers of batches of {length}": partial(_filled, _wrong_header(length))
        for length in (1_000, 60_000, 300_000, 10_000_000)
    },
    **{f"small messages of magic {magic}": partial(_filled, _wrong_message(magic)) for magic in (0, 1)},
    **{
        f"beginnings of messages of magic {magic} of {length}": partial(_filled, _wrong_message(magic, length))
        for magic in (0, 1)
        for length in (1_000, 60_000, 300_000)
    },
    **{f"{byte:#04x} all over": partial(_filled, bytes((byte,))) for byte in (0x00, 0x01, 0x02, 0xFF)},
    "lengths all over": partial(_filled, bytes.fromhex("00000010000000000000")),
    "noise": random.Random(1).randbytes,
    "sound batches far apart": _sound_but_far,
}
