"""`quick_record` says of a record what `any_record` says, or nothing; and both say it compiled and interpreted."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from octavo.records.kernels import rules
from octavo.records.kernels.record import walk_headers, walk_record
from octavo.records.kernels.skim import any_record, quick_record, skim_records, skip_record
from tests.corruption import forge


def records(seed: int, count: int) -> Iterator[bytes]:
    """Records of every shape; most then say something else in a byte or two."""
    random = Random(seed)
    sizes = (0, 1, 62, 63, 64, 65, 200, 8100, 8191, 8192, 9000)
    for _ in range(count):
        key, value = (random.choice((None, bytes(random.choice(sizes)))) for _ in range(2))
        data = bytearray(
            forge.record(
                key,
                value,
                [forge.header()] * random.choice((0, 0, 0, 1, 2)),
                timestamp_delta=random.choice(
                    (0, 1, -1, 63, -64, 64, 8191, -8192, 8192, 2**20 - 1, -(2**20), 2**20, 2**40, -(2**62))
                ),
                offset_delta=random.choice((0, 1, 63, 64, 8191, 8192, 2**20 - 1, 2**20, -1, 2**31 - 1)),
            )
        )
        for _ in range(random.choice((0, 0, 1, 2))):
            data[random.randrange(min(len(data), 20))] = random.randrange(256)
        yield bytes(data) + bytes(random.choice((0, 0, 1, 30)))


def test_a_quick_look_sees_what_a_full_one_sees_or_nothing() -> None:
    seen = 0
    for data in records(seed=1, count=20_000):
        for end in {len(data), len(data) - 1, min(len(data), 9)}:
            quick = quick_record(data, 0, end)
            if quick[0]:
                assert (*quick[:3], quick[5]) == any_record(data, 0, end, True)
                seen += 1
    assert seen > 3000


def test_what_fills_its_length_is_passed_alike_whether_lengths_matter_or_not() -> None:
    sound = 0
    for data in records(seed=2, count=5000):
        strict, lenient = any_record(data, 0, len(data), True), any_record(data, 0, len(data), False)
        end, timestamp_delta, offset_delta, _, key_length, *_, headers_at, count = walk_record(data, 0, len(data))
        if end > 0 and (not count or walk_headers(data, headers_at, end, count) == rules.OK):
            assert (
                strict == lenient == skip_record(data, 0, len(data)) == (end, timestamp_delta, offset_delta, key_length)
            )
            sound += 1
        else:
            assert strict[0] < 0
    assert sound > 1000


def test_many_records_are_skimmed_as_one_by_one() -> None:
    random = Random(3)
    lengths = set()
    for _ in range(2000):
        count = random.randrange(1, 12)
        made = [
            forge.record(
                random.choice((b"key", b"key", None)),
                bytes(random.choice((5, 20, 100))),
                [forge.header()] * (random.randrange(20) == 0),
                timestamp_delta=random.choice((0, 1, 63, 64, 9000, 2**20 - 1, 2**20, -1))
                if random.randrange(5) == 0
                else number,
                offset_delta=number + (random.randrange(20) == 0),
            )
            for number in range(count)
        ]
        data = b"".join(made)
        expected = at = latest = jumps = 0
        keys = False
        while expected < count:
            end, timestamp_delta, offset_delta, _, _, key_length, _ = quick_record(data, at, len(data))
            if end == 0 or timestamp_delta < 0:
                break
            at, latest = end, max(latest, timestamp_delta)
            jumps |= offset_delta ^ expected
            keys |= key_length < 0
            expected += 1
        walked, reached, largest, odd, nulls = skim_records(data, 0, len(data), count)
        assert (walked, reached, largest, odd != 0, nulls & 1 != 0) == (expected, at, latest, jumps != 0, keys)
        lengths.add(walked - count)
    assert {0, -1, -5} <= lengths
