"""Bytes that lie although their checksum is right: each lie breaks the one rule that it should, or is as good as true.

What a batch of magic 2 holds is told uncompressed and in every codec, so that the kernels meet each lie in the buffer
and among decompressed bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final, NamedTuple

import pytest

from octavo.errors import FormatError
from octavo.records import Codec
from octavo.records.compression import compress
from octavo.records.kernels import rules
from tests.corruption import forge
from tests.corruption.child import Child
from tests.corruption.guard import ARENA, Guarded
from tests.corruption.outcome import Outcome, read_both
from tests.corruption.worker import Case

MAX32: Final = 2**31 - 1
MIN32: Final = -(2**31)
MAX64: Final = 2**63 - 1
MIN64: Final = -(2**63)

_FIRST: Final = forge.record(b"first", b"a sound record before the lie")
_FIELDS: Final = ("length", "timestamp_delta", "offset_delta", "key_length", "value_length", "header_count")
_OLD_CODECS: Final = (Codec.GZIP, Codec.SNAPPY, Codec.LZ4)


class Lie(NamedTuple):
    """Records of magic 2 of which the second lies, and the rule that it breaks: `OK` where it only looks odd."""

    name: str
    records: bytes
    rule: int
    stored_count: int = 2
    rows: int = 1  # that come before the error


def _headers(field: str, number: forge.Number, value: bytes | None = b"v") -> list[bytes]:
    given: dict[str, Any] = {field: number}
    return [forge.header(b"good"), forge.header(b"h", value, **given)]


def varint_lies() -> Iterator[Lie]:
    """At every place where a varint stands: one that never ends, one that is cut, some that are longer than need be."""
    given: dict[str, Any]
    for field in _FIELDS:
        given = {field: forge.UNENDING}
        yield Lie(f"{field} never ends", _FIRST + forge.record(**given), rules.VARINT_UNENDING)
        late = b"\xff" * (10 if field == "timestamp_delta" else 5) + b"\0"
        given = {field: late}
        yield Lie(f"{field} ends a byte late", _FIRST + forge.record(**given), rules.VARINT_UNENDING)
    for field in ("key_length", "value_length"):
        for name, varint in (("never ends", forge.UNENDING), ("ends a byte late", b"\xff" * 5 + b"\0")):
            lying = forge.record(headers=_headers(field, varint))
            yield Lie(f"header's {field} {name}", _FIRST + lying, rules.VARINT_UNENDING)
    sound = {
        "length": 8,
        "timestamp_delta": 0,
        "offset_delta": 0,
        "key_length": 1,
        "value_length": 1,
        "header_count": 0,
    }
    for field, number in sound.items():
        for size in (2, 3, 4, 5):
            given = {field: forge.padded_varint(number, size)}
            yield Lie(f"{field} in {size} bytes", _FIRST + forge.record(**given), rules.OK)
        excess = forge.padded_varint(number, 5)
        excess = excess[:4] + b"\x70"  # bits 32 to 34, which Kafka shifts out
        if field == "timestamp_delta":
            excess = forge.padded_varint(number, 10)[:9] + b"\x7e"  # bits 64 to 69
        given = {field: excess}
        yield Lie(f"{field} with excess bits", _FIRST + forge.record(**given), rules.OK)
    yield from _cut_varints()


def _cut_varints() -> Iterator[Lie]:
    """Records that end inside a varint: the last field is there in part only."""
    yield Lie("the batch ends inside a record's length", _FIRST + b"\xff", rules.VARINT_CUT)
    start = b"\0" + forge.padded_varint(0, 9)  # attributes and timestamp, long enough for a record
    bodies = {
        "timestamp_delta": b"\0" + b"\xff" * 9,
        "offset_delta": start + b"\xff",
        "key_length": start + b"\0\xff\xff",
        "value_length": start + b"\0\0\xff\xff\xff",
        "header_count": start + b"\0\0\0\xff\xff\xff\xff",
        "header's key_length": start + b"\0\0\0\x02\xff",
        "header's value_length": start + b"\0\0\0\x02\0\xff",
    }
    for field, body in bodies.items():
        yield Lie(f"the record ends inside {field}", _FIRST + forge.varint(len(body)) + body, rules.VARINT_CUT)
        if not field.startswith(("timestamp", "header's")):
            none = body.rstrip(b"\xff")
            yield Lie(f"the record ends before {field}", _FIRST + forge.varint(len(none)) + none, rules.VARINT_CUT)


def length_lies() -> Iterator[Lie]:
    """Lengths and counts that cannot be where they stand."""
    lengths = {
        "length": rules.RECORD_LENGTH,
        "key_length": rules.KEY_LENGTH,
        "value_length": rules.VALUE_LENGTH,
        "header_count": rules.HEADER_COUNT,
    }
    for field, rule in lengths.items():
        given: dict[str, Any] = {field: MAX32}
        yield Lie(f"{field} of 2^31-1", _FIRST + forge.record(**given), rule)
        yield Lie(f"{field} of 2^31-1, more to come", _FIRST + forge.record(**given) + _FIRST, rule, 3)
    for number in (-1, -2, MIN32):
        yield Lie(f"length of {number}", _FIRST + forge.record(length=number), rules.RECORD_LENGTH)
        yield Lie(f"header_count of {number}", _FIRST + forge.record(header_count=number), rules.HEADER_COUNT)
        null = forge.record(None, None, key_length=number, value_length=number)
        yield Lie(f"key_length and value_length of {number}, which is null", _FIRST + null, rules.OK)
    whole = forge.record(b"key", b"value", [forge.header()])
    size = len(whole) - 1
    for length, rule in (
        (size + 1, rules.RECORD_LENGTH),
        (size - 1, rules.HEADER_VALUE_LENGTH),
        (size - 2, rules.VARINT_CUT),
        (5, rules.RECORD_LENGTH),
        (0, rules.RECORD_LENGTH),
        (6, rules.KEY_LENGTH),
        (10, rules.VALUE_LENGTH),
    ):
        lying = forge.record(b"key", b"value", [forge.header()], length=length)
        yield Lie(f"length of {length} where {size} is right", _FIRST + lying, rule)
    longer = forge.record(length=len(forge.record()))
    yield Lie("a length that takes the next record's first byte", _FIRST + longer + _FIRST, rules.RECORD_NOT_FILLED, 3)
    yield Lie("a key that ends with the record", _FIRST + forge.record(key_length=4), rules.VARINT_CUT)
    yield Lie("a value one byte too long", _FIRST + forge.record(value_length=3), rules.VALUE_LENGTH)
    yield Lie("a value that ends with the record", _FIRST + forge.record(value_length=2), rules.VARINT_CUT)
    yield from _count_lies()
    yield from _header_lies()


def _count_lies() -> Iterator[Lie]:
    two = _FIRST + forge.record()
    for count in (-1, MIN32, MAX32, len(two) // 7 + 1):
        yield Lie(f"a count of {count}", two, rules.RECORD_COUNT, count, rows=0)
    yield Lie("a count of 2 and no bytes", b"", rules.RECORD_COUNT, rows=0)
    yield Lie("a count of one less", two, rules.BYTES_LEFT, 1)
    yield Lie("a count of one more", two, rules.VARINT_CUT, 3, rows=2)
    yield Lie("a count of none", two, rules.OK, 0)


def _header_lies() -> Iterator[Lie]:
    for number in (-1, -2, MIN32, MAX32):
        lying = forge.record(headers=_headers("key_length", number))
        yield Lie(f"header's key_length of {number}", _FIRST + lying, rules.HEADER_KEY_LENGTH)
    lying = forge.record(headers=_headers("value_length", MAX32))
    yield Lie("header's value_length of 2^31-1", _FIRST + lying, rules.HEADER_VALUE_LENGTH)
    for number in (-1, -2, MIN32):
        null = forge.record(headers=_headers("value_length", number, None))
        yield Lie(f"header's value_length of {number}, which is null", _FIRST + null, rules.OK)
    two = [forge.header(), forge.header()]
    yield Lie("a header more than there are", _FIRST + forge.record(headers=two, header_count=3), rules.VARINT_CUT)
    fewer = _FIRST + forge.record(headers=two, header_count=1)
    yield Lie("a header less than there are", fewer, rules.RECORD_NOT_FILLED)
    for empty in (3, 1023, 1024, 1025, 5000):  # the smallest take two bytes; a chunk begins with room for 1024
        smallest = [forge.header(b"", b"")] * empty
        yield Lie(f"{empty} headers", _FIRST + forge.record(headers=smallest), rules.OK)
        for count in (empty + 1, 2 * empty - 1, 2 * empty):
            more = forge.record(headers=smallest, header_count=count)
            yield Lie(f"{count} headers where {empty} are", _FIRST + more, rules.VARINT_CUT)
        more = forge.record(headers=smallest, header_count=2 * empty + 1)
        yield Lie(f"{2 * empty + 1} headers where {empty} are", _FIRST + more, rules.HEADER_COUNT)


def _check(buffer: memoryview, rule: int, sound_rows: int, **arguments: Any) -> Outcome:
    outcome = read_both(buffer, **arguments)
    if rule == rules.OK:
        assert outcome.failure is None, outcome
    else:
        error = rules.broken(rule, 0)
        assert outcome.failure is not None, outcome
        assert (outcome.failure.kind, outcome.failure.arguments[1]) == (type(error), error.rule), outcome
        assert 0 <= outcome.failure.position <= len(buffer)
    assert len(outcome.rows) == sound_rows, outcome
    return outcome


def lies_in_records(kind: str) -> Iterator[Case]:
    """Each lie in each codec, with and without room for all of it in one chunk."""
    memory = Guarded(1 << 16)
    told = {"varints": varint_lies, "lengths": length_lies}[kind]
    for name, records, rule, count, rows_before in told():
        rows = count if rule == rules.OK else rows_before
        for codec in Codec:
            lie = forge.batch(compress(codec, records), count=count, attributes=int(codec))
            for at_end in (True, False):
                ARENA.at_end = at_end
                buffer = memory.put(lie, at_end=at_end)
                chunks = {} if at_end else {"max_rows": 1, "max_bytes": 1}
                yield f"{name}, {codec.name}, {chunks}", partial(_check, buffer, rule, rows, **chunks)


@pytest.mark.parametrize("kind", ["varints", "lengths"])
def test_a_lying_record_breaks_the_rule_that_it_should(child: Child, kind: str) -> None:
    child.run(lies_in_records, kind)


def extremes() -> Iterator[Case]:
    """Numbers at the ends of their range: they wrap around as Java's do."""
    memory = Guarded(4096)
    numbers = (MIN64, MIN64 + 1, -1, 0, 1, MAX64 - 1, MAX64)
    deltas = (MIN32, -1, 0, 1, MAX32)
    for base in numbers:
        for delta in numbers:
            for attributes in (0, 8):
                records = forge.record(timestamp_delta=delta)
                fields = {"attributes": attributes, "base_timestamp_ms": base, "max_timestamp_ms": ~base}
                buffer = memory.put(forge.batch(records, count=1, **fields))
                right = ~base if attributes else (base + delta + 2**63) % 2**64 - 2**63
                yield f"timestamps {base} + {delta}, {attributes}", partial(_only, buffer, timestamp_ms=right)
        for delta in deltas:
            records = forge.record(offset_delta=delta)
            fields = {"base_offset": base, "last_offset_delta": delta, "leader_epoch": delta, "producer_id": base}
            buffer = memory.put(forge.batch(records, count=1, **fields))
            right = (base + delta + 2**63) % 2**64 - 2**63
            yield (
                f"offsets {base} + {delta}",
                partial(_only, buffer, offset=right, producer_id=base, leader_epoch=delta),
            )
    for base, delta, sequence in (
        (0, 0, 0),
        (MAX32, 0, MAX32),
        (MAX32, 1, 0),
        (MAX32, MAX32, MAX32 - 1),
        (5, -1, MIN32 + 4),  # Java's: MAX - -1 is negative, so the sequence is taken to pass the end
        (5, -10, MAX32 - 4),
        (0, MIN32, 0),
        (-1, 7, -1),
        (MIN32, 7, -1),
    ):
        records = forge.record(offset_delta=delta)
        buffer = memory.put(
            forge.batch(records, count=1, base_sequence=base, producer_id=1, producer_epoch=MIN32 >> 16)
        )
        yield f"sequences {base} + {delta}", partial(_only, buffer, sequence=sequence, producer_epoch=MIN32 >> 16)


def _only(buffer: memoryview, **fields: Any) -> None:
    (row,) = _check(buffer, rules.OK, 1).rows
    assert row == row._replace(**fields), f"{row}, not {fields}"


def test_numbers_that_pass_the_end_of_their_range_wrap_around_as_in_java(child: Child) -> None:
    child.run(extremes)


def lies_in_messages() -> Iterator[Case]:
    """A message of magic 0 or 1 that stands alone."""
    memory = Guarded(4096)
    for magic in (0, 1):
        told = [
            (f"key of {length}", forge.message(magic, key_length=length), rules.MESSAGE_KEY_LENGTH)
            for length in (MAX32, MAX32 - 3, 8, 100)
        ]
        told += [
            (
                f"key of {length}, no value",
                forge.message(magic, value=None, key_length=length),
                rules.MESSAGE_KEY_LENGTH,
            )
            for length in (2, 3, 4, 5, 6)
        ]
        told += [
            (f"value of {length}", forge.message(magic, value_length=length), rules.MESSAGE_VALUE_LENGTH)
            for length in (MAX32, MAX32 - 3, 2, 100)
        ]
        for length in (-1, -2, MIN32):
            null = forge.message(magic, None, None, key_length=length, value_length=length)
            told.append((f"nulls of {length}", null, rules.OK))
        told += [
            ("value one byte shorter", forge.message(magic, value=b"v", value_length=0), rules.OK),
            ("bytes behind the value", forge.message(magic, behind=b"nobody reads this"), rules.OK),
            ("codec zstd", forge.message(magic, None, attributes=4), -1),
        ]
        told += [(f"codec {codec}", forge.message(magic, None, attributes=codec), -1) for codec in (5, 6, 7)]
        if magic == 1:  # long enough for magic 0 only
            for behind in range(8):
                short = forge.message(0, None, None, behind=bytes(behind))
                short = forge.sealed(short[:16] + b"\x01" + short[17:])
                told.append((f"{len(short)} bytes", short, rules.INNER_LENGTH))
        for name, data, rule in told:
            buffer = memory.put(data)
            if rule >= 0:
                yield f"magic {magic}, {name}", partial(_check, buffer, rule, int(rule == rules.OK))
            else:
                yield f"magic {magic}, {name}", partial(_fails, buffer, "Unsupported")


def _fails(buffer: memoryview, *kinds: str, limit: int = 1 << 20) -> None:
    outcome = read_both(buffer, limit=limit)
    assert not outcome.rows
    assert outcome.failure is not None
    assert outcome.failure.kind.__name__ in kinds, outcome
    assert issubclass(outcome.failure.kind, FormatError)


def test_a_lying_message_breaks_the_rule_that_it_should(child: Child) -> None:
    child.run(lies_in_messages)


class Wrapped(NamedTuple):
    """What a wrapper holds, what its own offset is, and what must come of it."""

    name: str
    inner: bytes
    rule: int
    offsets: tuple[int, ...] = ()
    wrapper_offset: int = 1000


def _wrapped_lies(magic: int) -> Iterator[Wrapped]:
    def inner(offset: int, **given: Any) -> bytes:
        return forge.message(given.pop("magic", magic), offset=offset, **given)

    two = inner(0) + inner(1)
    sound = (999, 1000) if magic else (0, 1)
    yield Wrapped("sound", two, rules.OK, sound)
    yield Wrapped("none", b"", rules.WRAPPER_EMPTY)
    for size in range(1, len(inner(0))):
        yield Wrapped(f"one, cut to {size}", inner(0)[:size], rules.WRAPPER_EMPTY)
        yield Wrapped(f"third, cut to {size}", two + inner(2)[:size], rules.OK, sound)
    for codec in range(1, 8):
        yield Wrapped(f"nested {codec}", two + inner(2, attributes=codec), rules.WRAPPER_NESTED)
    for length in (-1, 0, 13, MIN32):
        yield Wrapped(f"length of {length}", two + inner(2, length=length), rules.INNER_LENGTH)
    yield Wrapped("length of 2^31-1, taken for a cut", two + inner(2, length=MAX32), rules.OK, sound)
    yield Wrapped("length of 2^31-1 at once", inner(2, length=MAX32) + two, rules.WRAPPER_EMPTY)
    yield Wrapped("magic 2", two + forge.batch(forge.record(), count=1), rules.INNER_MAGIC)
    yield Wrapped("key", two + inner(2, key_length=MAX32), rules.MESSAGE_KEY_LENGTH)
    yield Wrapped("value", two + inner(2, value_length=MAX32), rules.MESSAGE_VALUE_LENGTH)
    yield Wrapped("the other magic", inner(0) + inner(1, magic=1 - magic), rules.OK, sound)
    yield Wrapped("wrapper at 0", two, rules.OK, (0, 1), 0)
    if magic == 0:
        yield Wrapped("negative offsets", inner(-5) + inner(MIN64), rules.OK, (-5, MIN64), -9)
    else:
        yield Wrapped("wrapper below its last", inner(0) + inner(5), rules.WRAPPER_OFFSET, wrapper_offset=4)
        yield Wrapped("wrapper negative", inner(0) + inner(5), rules.WRAPPER_OFFSET, wrapper_offset=-1)
        yield Wrapped("wrapper at its last", inner(3) + inner(5), rules.OK, (3, 5), 5)
        yield Wrapped("falling offsets", inner(7) + inner(5), rules.OK, (1002, 1000))
        yield Wrapped("last of all", inner(0) + inner(MIN64), rules.OK, (MIN64 + 1000, 1000))


def _check_offsets(buffer: memoryview, rule: int, offsets: tuple[int, ...]) -> None:
    outcome = _check(buffer, rule, len(offsets))
    assert tuple(row.offset for row in outcome.rows) == offsets, outcome.rows


def lies_in_wrappers(magic: int) -> Iterator[Case]:
    """Each lie in each codec that old messages have."""
    memory = Guarded(4096)
    for name, inner, rule, offsets, wrapper_offset in _wrapped_lies(magic):
        for codec in _OLD_CODECS:
            value = compress(codec, inner, magic=magic)
            wrapper = forge.message(magic, None, value, offset=wrapper_offset, attributes=int(codec))
            buffer = memory.put(wrapper)
            yield f"magic {magic}, {codec.name}, {name}", partial(_check_offsets, buffer, rule, offsets)
    for codec in _OLD_CODECS:
        buffer = memory.put(forge.message(magic, b"key", None, attributes=int(codec)))
        yield f"magic {magic}, {codec.name}, null", partial(_check, buffer, rules.WRAPPER_NULL, 0)
        buffer = memory.put(forge.message(magic, None, b"", attributes=int(codec)))
        yield f"magic {magic}, {codec.name}, empty", partial(_fails, buffer, "Truncated")


@pytest.mark.parametrize("magic", [0, 1])
def test_a_lying_wrapper_breaks_the_rule_that_it_should(child: Child, magic: int) -> None:
    child.run(lies_in_wrappers, magic)


def append_times() -> Iterator[Case]:
    """The flag for append time counts in a wrapper of magic 1, and there for messages of magic 1."""
    memory = Guarded(4096)
    for magic in (0, 1):
        for inner_magic in (0, 1):
            inner = forge.message(inner_magic, timestamp_ms=5, offset=0)
            value = compress(Codec.GZIP, inner, magic=magic)
            buffer = memory.put(forge.message(magic, None, value, attributes=1 | 8, timestamp_ms=77))
            right = -1 if inner_magic == 0 else 77 if magic == 1 else 5
            kind = 1 if magic == 1 else -1
            yield (
                f"magic {inner_magic} in a wrapper of magic {magic}",
                partial(_only, buffer, timestamp_ms=right, timestamp_type=kind),
            )


def test_the_append_time_of_a_wrapper_counts_only_where_both_formats_have_it(child: Child) -> None:
    child.run(append_times)
