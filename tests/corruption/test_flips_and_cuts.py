"""Every byte of every sample flipped, and every sample cut at every length.

With checksums verified there is one right answer for each flip, and `expected` knows it: bytes under the checksum give
a mismatch; offset and leader epoch, which the broker assigns in place, give the same records with another offset or
epoch; a length or a magic byte breaks a rule, tears the tail or moves the checksum. Without verification a flipped byte
may be as good as the one before; then objects and Arrow have to agree on what it says, and whatever is wrong must be a
typed error.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from functools import partial
from typing import Any, Final, NamedTuple

import pytest
from crc32c import crc32c

from octavo.errors import BadLength, BadRecord, ChecksumMismatch, Unsupported
from octavo.records.kernels import rules
from tests.corruption import forge
from tests.corruption.child import Child
from tests.corruption.guard import ARENA, Guarded
from tests.corruption.outcome import Failure, Outcome, Row, difference, read_both
from tests.corruption.samples import SAMPLES
from tests.corruption.worker import Case
from tests.selection import some

_SMALL: Final[dict[str, Any]] = {"max_rows": 1, "max_bytes": 1}  # as many chunks as there can be


def flipped(byte: int, at: int, patterns: int) -> list[int]:
    """What a byte may be damaged to: all bits, the lowest, the highest, none and all but the highest.

    The first `patterns` of them, and at every place others.
    """
    damaged = sorted({byte ^ 0xFF, byte ^ 0x01, byte ^ 0x80, 0x00, 0x7F} - {byte})
    begin = at % len(damaged)
    return (damaged[begin:] + damaged[:begin])[:patterns]


# The kernels are one source: every pattern meets it compiled, and every byte is flipped in the other modes as well.
PATTERNS: Final = {"interpreted": 1, "compiled": 5, "checked": 1}


class Place(NamedTuple):
    """Where a sample lies: its neighbours, and what all of it reads as while it is sound."""

    before: bytes
    sample: bytes
    after: bytes
    sound: Outcome

    @classmethod
    def of(cls, sample: bytes, *, before: bytes = b"", after: bytes = b"") -> Place:
        sound = read_both(before + sample + after)
        assert sound.failure is None
        return cls(before, sample, after, sound)

    @property
    def rows_before(self) -> list[Row]:
        return [row for row in self.sound.rows if row.position < len(self.before)]

    @property
    def rows_after(self) -> list[Row]:
        return [row for row in self.sound.rows if row.position >= len(self.before) + len(self.sample)]

    @property
    def rows(self) -> list[Row]:
        return [row for row in self.sound.rows if row not in self.rows_before and row not in self.rows_after]


def _int(data: bytes, at: int, size: int, *, signed: bool = True) -> int:
    return int.from_bytes(data[at : at + size], "big", signed=signed)


def expected(place: Place, damaged: bytes, at: int) -> Outcome:
    """What must come out where byte `at` of the sample is another, and checksums are verified."""
    if at < 8:
        return _with_other_offset(place, _int(damaged, 0, 8))
    if place.sample[16] == 2 and 12 <= at < 16:
        epoch = _int(damaged, 12, 4)
        rows = [row._replace(leader_epoch=epoch) for row in place.rows]
        return Outcome(place.rows_before + rows + place.rows_after)
    return _expected_error(place, damaged)


def _with_other_offset(place: Place, offset: int) -> Outcome:
    """The first field is another: a base offset, a message's offset or, in a wrapper, the last offset."""
    codec = place.sample[17] & 0x07
    if place.sample[16] == 2 or not codec:
        add = offset - _int(place.sample, 0, 8)
    elif place.sample[16] == 0:
        add = 0  # offsets in the wrapper are absolute
    else:
        last = place.rows[-1].offset - place.rows[0].offset  # the samples' relative offsets begin with 0
        if offset != 0 and offset < last:
            return Outcome(place.rows_before, _broken(rules.WRAPPER_OFFSET, place, BadRecord))
        add = (offset - last if offset else 0) - place.rows[0].offset
    rows = [row._replace(offset=(row.offset + add + 2**63) % 2**64 - 2**63) for row in place.rows]
    return Outcome(place.rows_before + rows + place.rows_after)


def _expected_error(place: Place, damaged: bytes) -> Outcome:
    size = _int(damaged, 8, 4) + 12
    magic = damaged[16]
    if size < 12 + 14:
        return Outcome(place.rows_before, _broken(rules.ENTRY_LENGTH, place, BadLength))
    if magic > 2:
        return Outcome(place.rows_before, _broken(rules.ENTRY_MAGIC, place, Unsupported))
    if magic == 2 and size < 61:
        return Outcome(place.rows_before, _broken(rules.BATCH_LENGTH, place, BadLength))
    data = damaged + place.after
    if size > len(data):
        return Outcome(place.rows_before, None, torn_tail=len(place.before))
    if magic == 2:
        stored, computed = _int(data, 17, 4, signed=False), crc32c(data[21:size])
    else:
        stored, computed = _int(data, 12, 4, signed=False), zlib.crc32(data[16:size])
    assert stored != computed
    return Outcome(place.rows_before, Failure(ChecksumMismatch, (len(place.before), stored, computed)))


def _broken(rule: int, place: Place, kind: type[BadLength | BadRecord | Unsupported]) -> Failure:
    error = rules.broken(rule, len(place.before))
    assert type(error) is kind
    return Failure(kind, error.args)


def _reads_as(buffer: memoryview, right: Outcome | None, **arguments: Any) -> None:
    """Both ways of reading agree, and where there is one right answer they give that."""
    actual = read_both(buffer, **arguments)
    assert right is None or actual == right, f"not what it should be: {difference(actual, right)}"


def verified_flips(name: str, patterns: int, neighbours: bool) -> Iterator[Case]:
    """Each byte flipped, checksums verified: exactly the right answer."""
    other = SAMPLES["magic 1"], SAMPLES["magic 2, control"]
    place = Place.of(SAMPLES[name], before=other[0], after=other[1]) if neighbours else Place.of(SAMPLES[name])
    memory = Guarded(4096)
    for at, byte in enumerate(place.sample):
        for index, new in enumerate(flipped(byte, at, patterns)):
            damaged = place.sample[:at] + bytes((new,)) + place.sample[at + 1 :]
            ARENA.at_end = (at + index) % 2 == 0
            buffer = memory.put(place.before + damaged + place.after, at_end=(at + index) % 2 == 0)
            right = expected(place, damaged, at)
            yield f"{name}: byte {at} from {byte:#04x} to {new:#04x}", partial(_reads_as, buffer, right)


def unverified_flips(name: str, patterns: int) -> Iterator[Case]:
    """Each byte flipped, nobody looks at checksums: a typed error or records, and Arrow says the same in any chunks."""
    sample = SAMPLES[name]
    place = Place.of(sample)
    outside_checksum = 16 if sample[16] == 2 else 12
    crc = range(17, 21) if sample[16] == 2 else range(12, 16)
    memory = Guarded(4096)
    for at, byte in enumerate(sample):
        for index, new in enumerate(flipped(byte, at, patterns)):
            damaged = sample[:at] + bytes((new,)) + sample[at + 1 :]
            ARENA.at_end = (at + index) % 2 == 0
            buffer = memory.put(damaged, at_end=(at + index) % 2 == 0)
            right = None
            if at in crc:
                right = place.sound
            elif at < outside_checksum and not 8 <= at < 12:
                right = expected(place, damaged, at)
            chunks = _SMALL if (at + index) % 5 == 2 else {}
            check = partial(_reads_as, buffer, right, verify=False, **chunks)
            yield f"{name}: byte {at} from {byte:#04x} to {new:#04x}, not verified", check


def cuts(name: str) -> Iterator[Case]:
    """Each length: nothing at all, or a torn tail, behind a sound batch as well."""
    memory = Guarded(4096)
    place = Place.of(SAMPLES[name], before=SAMPLES["magic 1"])
    for size in range(len(place.sample)):
        alone = Outcome([], None, 0 if size else None)
        buffer = memory.put(place.sample[:size])
        yield f"{name}: cut to {size} bytes", partial(_reads_as, buffer, alone, verify=size % 2 == 0)
        if size % 4 == 1:
            behind = Outcome(place.rows_before, None, len(place.before))
            buffer = memory.put(place.before + place.sample[:size])
            yield f"{name}: cut to {size} bytes behind another", partial(_reads_as, buffer, behind)


def large() -> Iterator[Case]:
    """Batches around the sizes from which checksums are computed in another way, with a flip here and there."""
    memory = Guarded(1 << 16)
    dice = random.Random(1)
    for size in (*range(690, 790), *range(6060, 6110), 6830, 6900, 12_250, 20_000):
        value = dice.randbytes(size)
        for sound in (forge.batch(forge.record(value=value), count=1), forge.message(size % 2, value=value)):
            place = Place.of(sound)
            yield f"a value of {size} bytes", partial(_reads_as, memory.put(sound), place.sound)
            for at in (30, len(sound) - 1, dice.randrange(30, len(sound))):
                damaged = sound[:at] + bytes((sound[at] ^ 0x10,)) + sound[at + 1 :]
                buffer = memory.put(damaged, at_end=at % 2 == 0)
                yield f"a value of {size} bytes, byte {at}", partial(_reads_as, buffer, expected(place, damaged, at))


@pytest.mark.parametrize("name", SAMPLES)
def test_a_flipped_byte_gives_the_error_or_the_one_field_that_it_must(child: Child, name: str) -> None:
    child.run(verified_flips, name, PATTERNS[child.mode], False)


@pytest.mark.parametrize("child", ["compiled"], indirect=True)
@pytest.mark.parametrize("name", SAMPLES)
def test_a_flipped_byte_between_sound_batches_is_named_by_position(child: Child, name: str) -> None:
    child.run(verified_flips, name, 1, True)


@pytest.mark.parametrize("name", some(SAMPLES, 10))
def test_a_flipped_byte_that_nobody_verifies_reads_the_same_both_ways(child: Child, name: str) -> None:
    child.run(unverified_flips, name, PATTERNS[child.mode])


@pytest.mark.parametrize("name", SAMPLES)
def test_a_batch_cut_at_any_length_is_a_torn_tail(child: Child, name: str) -> None:
    child.run(cuts, name)


def test_a_flipped_byte_of_a_large_batch_is_a_wrong_checksum(child: Child) -> None:
    child.run(large)
