"""Behind damage: `read_batches(resync=True)` goes on with the next sound batch and keeps account of every byte.

A stream of many batches is damaged in its middle. Every batch that was not touched must come back, byte for byte and in
order, nothing else may, and batches, damage and torn tail together must be the whole buffer.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Final, NamedTuple

import pytest

from octavo.errors import Truncated
from octavo.records import Codec, read_batches
from tests.corruption import forge
from tests.corruption.resynced import ADVERSARIES, account
from tests.corruption.samples import build

_BATCHES: Final = 12
_VICTIM: Final = 6  # the batch in the middle that damage is done to


def _stream(kind: str) -> list[bytes]:
    """Batches whose offsets go on from one to the next."""
    kinds = {
        "magic 0": [(0, Codec.NONE), (0, Codec.GZIP), (0, Codec.LZ4)],
        "magic 1": [(1, Codec.NONE), (1, Codec.SNAPPY), (1, Codec.LZ4)],
        "magic 2": [(2, Codec.NONE), (2, Codec.ZSTD), (2, Codec.LZ4), (2, Codec.GZIP)],
        "all magics": [(0, Codec.NONE), (1, Codec.LZ4), (2, Codec.NONE), (2, Codec.SNAPPY)],
    }
    batches, offset = [], 1_000_000
    for index in range(_BATCHES):
        magic, codec = kinds[kind][index % len(kinds[kind])]
        whole = magic == 2 or codec != Codec.NONE
        batches.append(build(magic, codec, count=4 if whole else 1, base_offset=offset, headers=magic == 2))
        offset += 5
    return batches


STREAMS: Final = {kind: _stream(kind) for kind in ("magic 0", "magic 1", "magic 2", "all magics")}


class Damaged(NamedTuple):
    """Pieces of a buffer, in order, of which some are batches that nobody touched."""

    name: str
    pieces: list[tuple[bytes, bool]]

    @property
    def buffer(self) -> bytes:
        return b"".join(piece for piece, _ in self.pieces)

    @property
    def untouched(self) -> list[tuple[int, bytes]]:
        """Position and bytes of each sound batch."""
        found, at = [], 0
        for piece, sound in self.pieces:
            if sound:
                found.append((at, piece))
            at += len(piece)
        return found


def _with_victim(name: str, batches: list[bytes], victim: bytes, behind: bytes = b"") -> Damaged:
    """The stream with other bytes in the victim's place, and perhaps some between it and the next batch."""
    pieces = [(batch, True) for batch in batches]
    pieces[_VICTIM : _VICTIM + 1] = [(victim, False), (behind, False)]
    return Damaged(name, pieces)


def _garbage(size: int) -> dict[str, bytes]:
    return {
        "zeros": bytes(size),
        "ones": b"\xff" * size,
        "text": (b"a line of some other file\n" * size)[:size],
        "noise": random.Random(size).randbytes(size),
    }


def _uncovered(victim: bytes) -> range:
    """The bytes that a checksum does not cover and that nothing else gives away."""
    return range(16) if victim[16] == 2 else range(8)


def flips(batches: list[bytes]) -> Iterator[Damaged]:
    victim = batches[_VICTIM]
    for at, byte in enumerate(victim):
        if at not in _uncovered(victim) or 8 <= at < 12:
            for new in {byte ^ 0xFF, byte ^ 0x01, byte ^ 0x80, 0x00, 0x7F} - {byte}:
                flipped = victim[:at] + bytes((new,)) + victim[at + 1 :]
                yield _with_victim(f"byte {at} from {byte:#04x} to {new:#04x}", batches, flipped)


def overwritten(batches: list[bytes]) -> Iterator[Damaged]:
    victim = batches[_VICTIM]
    for start, end in (
        (0, 8),
        (0, 20),
        (0, len(victim)),
        (8, 12),
        (16, 40),
        (20, len(victim)),
        (len(victim) - 3, None),
    ):
        for kind, garbage in _garbage(len(victim[start:end])).items():
            other = victim[:start] + garbage + (victim[end:] if end is not None else b"")
            if other[12:] != victim[12:]:
                yield _with_victim(f"{start} to {end} overwritten with {kind}", batches, other)
    # Several batches, from the middle of one to the middle of another.
    for last in (_VICTIM + 1, _VICTIM + 3):
        for kind, garbage in _garbage(sum(map(len, batches[_VICTIM : last + 1])) - 60).items():
            pieces = [(batch, True) for batch in batches]
            pieces[_VICTIM : last + 1] = [(batches[_VICTIM][:30] + garbage + batches[last][-30:], False)]
            yield Damaged(f"batches {_VICTIM} to {last} overwritten with {kind}", pieces)


def inserted(batches: list[bytes]) -> Iterator[Damaged]:
    victim = batches[_VICTIM]
    for size in (1, 3, 11, 12, 17, 61, 300, 70_000):
        for kind, garbage in _garbage(size).items():
            pieces = [(batch, True) for batch in batches]
            pieces.insert(_VICTIM, (garbage, False))
            yield Damaged(f"{size} bytes of {kind} before a batch", pieces)
            for at in (
                9,
                14,
                40,
            ):  # in an offset nobody could tell: a byte, and behind it a sound batch of other offsets
                broken = victim[:at] + garbage + victim[at:]
                yield _with_victim(f"{size} bytes of {kind} at {at} of a batch", batches, broken)


def deleted(batches: list[bytes]) -> Iterator[Damaged]:
    victim = batches[_VICTIM]
    for start in (0, 5, 9, 13, 16, 20, len(victim) - 5):
        for size in (1, 2, 5, 20):
            if len(victim[start : start + size]) < len(victim):
                rest = victim[:start] + victim[start + size :]
                yield _with_victim(f"{size} bytes from {start} on deleted", batches, rest)
    pieces = [(batch, True) for batch in batches]
    pieces[_VICTIM : _VICTIM + 2] = [(victim[:-4] + batches[_VICTIM + 1][4:], False)]
    yield Damaged("bytes across a boundary deleted", pieces)
    yield Damaged("a whole batch deleted", [(batch, True) for batch in batches if batch is not victim])


def repeated(batches: list[bytes]) -> Iterator[Damaged]:
    pieces = [(batch, True) for batch in batches]
    yield Damaged("a batch twice", [*pieces[: _VICTIM + 1], *pieces[_VICTIM:]])
    half = batches[_VICTIM][: len(batches[_VICTIM]) // 2]
    yield Damaged("half a batch, then the whole", [*pieces[:_VICTIM], (half, False), *pieces[_VICTIM:]])


def several(batches: list[bytes]) -> Iterator[Damaged]:
    """More than one place, the first and the last batch among them."""
    rest = [(batch, True) for batch in batches]
    broken = [(batch[:25] + bytes((batch[25] ^ 0xFF,)) + batch[26:], False) for batch in batches]
    yield Damaged("the first", [broken[0], *rest[1:]])
    yield Damaged("the last", [*rest[:-1], broken[-1]])
    yield Damaged("every other", [broken[at] if at % 2 else rest[at] for at in range(len(rest))])
    yield Damaged("all but the last", [*broken[:-1], rest[-1]])
    yield Damaged("all", broken)
    tail = batches[0][:-1]
    yield Damaged(
        "the middle, and a torn tail", [*rest[:_VICTIM], broken[_VICTIM], *rest[_VICTIM + 1 :], (tail, False)]
    )


DAMAGE: Final = {
    "flipped": flips,
    "overwritten": overwritten,
    "inserted": inserted,
    "deleted": deleted,
    "repeated": repeated,
    "several": several,
}


def _hidden(damaged: Damaged) -> range:
    """What a damaged length may hide: it leads to the beginning of a later batch, or to the end, by sheer chance.

    Then nothing tells the batches between from the value of the damaged one, and they are told as damage.
    """
    at = sum(len(piece) for piece, _ in damaged.pieces[:_VICTIM])
    victim, sound = damaged.pieces[_VICTIM]
    if sound or len(victim) < 12:
        return range(0)
    behind = at + 12 + int.from_bytes(victim[8:12], "big", signed=True)
    ends = {position for position, _ in damaged.untouched} | {len(damaged.buffer)}
    return range(at, behind) if behind in ends else range(0)


@pytest.mark.parametrize("kind", DAMAGE)
@pytest.mark.parametrize("stream", STREAMS)
def test_every_untouched_batch_comes_back_and_every_byte_is_accounted_for(stream: str, kind: str) -> None:
    for damaged in DAMAGE[kind](STREAMS[stream]):
        buffer = damaged.buffer
        found = account(read_batches(buffer, resync=True), len(buffer))
        hidden = _hidden(damaged)
        missing = [at for at, batch in damaged.untouched if (at, batch) not in found and at not in hidden]
        wrong = [at for at, batch in found if (at, batch) not in damaged.untouched]
        assert not missing, f"{damaged.name}: the batches at {missing} did not come back"
        assert not wrong, f"{damaged.name}: what came from {wrong} is no batch"


@pytest.mark.parametrize("stream", STREAMS)
def test_a_torn_tail_is_no_damage(stream: str) -> None:
    batches = STREAMS[stream]
    whole = b"".join(batches)
    for size in range(len(whole) - len(batches[-1]) + 1, len(whole)):
        reader = read_batches(whole[:size], resync=True)
        assert len(account(reader, size)) == len(batches) - 1
        assert reader.damage == []
        assert reader.torn_tail == len(whole) - len(batches[-1])


def test_a_sound_stream_has_no_damage_and_no_torn_tail() -> None:
    for batches in STREAMS.values():
        buffer = b"".join(batches)
        reader = read_batches(buffer, resync=True)
        assert [data for _, data in account(reader, len(buffer))] == batches
        assert (reader.damage, reader.torn_tail) == ([], None)


def test_a_length_that_passes_the_end_is_damage_where_batches_follow_and_a_torn_tail_where_none_do() -> None:
    batches = STREAMS["magic 2"]
    huge = batches[_VICTIM][:8] + b"\x7f\xff\xff\xff" + batches[_VICTIM][12:]
    before = b"".join(batches[:_VICTIM])
    followed = read_batches(before + huge + batches[_VICTIM + 1], resync=True)
    assert len(account(followed, len(before + huge + batches[_VICTIM + 1]))) == _VICTIM + 1
    (damage,) = followed.damage
    assert (damage.position, damage.size, type(damage.error)) == (len(before), len(huge), Truncated)
    alone = read_batches(before + huge, resync=True)
    assert len(account(alone, len(before + huge))) == _VICTIM
    assert (alone.damage, alone.torn_tail) == ([], len(before))


def test_batches_inside_the_value_of_a_damaged_record_are_not_taken_for_the_log() -> None:
    # A copy of another topic: batches as values, whose offsets are their own.
    inner = b"".join(STREAMS["all magics"])
    for offset in (0, 10_000_000):
        batches = [
            forge.batch(forge.record(value=inner), count=1, base_offset=5_000_000 + index + (index > 3) * offset)
            for index in range(8)
        ]
        for at in (9, 17, 30, 70):
            broken = batches[3][:at] + bytes((batches[3][at] ^ 0x55,)) + batches[3][at + 1 :]
            buffer = b"".join([*batches[:3], broken, *batches[4:]])
            found = [data for _, data in account(read_batches(buffer, resync=True), len(buffer))]
            assert found == [*batches[:3], *batches[4:]], f"byte {at}"


def test_resync_without_verification_passes_over_broken_headers_only() -> None:
    batches = STREAMS["magic 2"]
    body = batches[_VICTIM][:-1] + bytes((batches[_VICTIM][-1] ^ 0xFF,))
    buffer = b"".join([*batches[:_VICTIM], body, b"\0" * 40, *batches[_VICTIM + 1 :]])
    reader = read_batches(buffer, resync=True, verify=False)
    assert len(account(reader, len(buffer))) == len(batches)
    assert [damage.size for damage in reader.damage] == [40]


@pytest.mark.parametrize("name", ADVERSARIES)
def test_the_search_takes_no_more_than_a_fixed_time_for_each_byte(name: str) -> None:
    buffer = ADVERSARIES[name](1 << 19)
    begin = time.process_time()
    account(read_batches(buffer, resync=True), len(buffer))
    spent = time.process_time() - begin
    assert spent < 3, f"{spent:.1f} seconds for half a megabyte"


@pytest.mark.long
def test_twenty_megabytes_of_plausible_headers_are_searched_in_seconds() -> None:
    buffer = ADVERSARIES["small batches"](20 << 20)
    begin = time.process_time()
    assert account(read_batches(buffer, resync=True), len(buffer)) == []
    spent = time.process_time() - begin
    assert spent < 60, f"{spent:.1f} seconds"
