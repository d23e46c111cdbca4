"""What the fuzzer found, each in the smallest form that shows it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from octavo.errors import FormatError
from octavo.records import Codec
from octavo.records.compression import compress
from tests.corruption import forge
from tests.corruption.child import Child
from tests.corruption.guard import Guarded
from tests.corruption.outcome import read_both
from tests.corruption.samples import SAMPLES
from tests.corruption.worker import Case


def _rows_then_error(buffer: memoryview, rows: int, **arguments: Any) -> None:
    outcome = read_both(buffer, **arguments)
    assert len(outcome.rows) == rows
    assert outcome.failure is not None
    assert issubclass(outcome.failure.kind, FormatError)


def large_before_damage() -> Iterator[Case]:
    """A record for which a chunk has no room got none of its own where damage behind it was known: an endless loop."""
    memory = Guarded(1 << 16)
    large = {
        "headers": (forge.batch(forge.record(headers=[forge.header()] * 1500), count=1), {}),
        "value": (forge.batch(forge.record(value=bytes(500)), count=1), {"max_bytes": 10}),
        "value in a wrapper": (
            forge.message(1, None, compress(Codec.GZIP, forge.message(1, value=bytes(500))), attributes=1),
            {"max_bytes": 10},
        ),
    }
    sound = SAMPLES["magic 2, lz4"]
    wrong_checksum = sound[:-1] + bytes((sound[-1] ^ 1,))
    damage = {
        "wrong checksum": wrong_checksum,
        "broken header": bytes(61),
        "broken stream": forge.sealed(wrong_checksum),
        "broken record": forge.batch(forge.record(length=100), count=1),
    }
    for what, (batch, arguments) in large.items():
        for how, behind in damage.items():
            buffer = memory.put(batch + behind)
            yield f"large {what}, then {how}", partial(_rows_then_error, buffer, 1, **arguments)


def test_a_record_larger_than_a_chunk_comes_before_the_damage_behind_it(child: Child) -> None:
    child.run(large_before_damage)


def torn_behind_damage() -> Iterator[Case]:
    """A torn tail that was seen behind damage was told although nobody got that far."""
    memory = Guarded(4096)
    sound = SAMPLES["magic 2, none"]
    broken = forge.batch(forge.record(length=100), count=1)
    for verify in (True, False):
        buffer = memory.put(sound + broken + sound[:50])
        yield f"verify {verify}", partial(_rows_then_error, buffer, 4, verify=verify)


def test_a_torn_tail_behind_damage_is_not_told(child: Child) -> None:
    child.run(torn_behind_damage)


def order_of_rules() -> Iterator[Case]:
    """Objects and Arrow named different rules where several were broken, or put them in different places."""
    memory = Guarded(4096)
    for codec in range(8):
        for count in (-1, 0, 1, 2**31 - 1):
            buffer = memory.put(forge.batch(b"no such stream", count=count, attributes=codec))
            yield f"codec {codec}, count {count}", partial(read_both, buffer)
        for magic in (0, 1):
            for value in (None, b"", b"no such stream"):
                buffer = memory.put(forge.message(magic, None, value, attributes=codec))
                yield f"codec {codec}, magic {magic}, value {value!r}", partial(read_both, buffer)
            buffer = memory.put(forge.message(magic, None, b"", value_length=100, attributes=codec))
            yield f"codec {codec}, magic {magic}, value too long", partial(read_both, buffer)


def test_where_several_rules_are_broken_objects_and_arrow_name_the_same(child: Child) -> None:
    child.run(order_of_rules)


@pytest.mark.parametrize("child", ["compiled"], indirect=True)
def test_every_sample_in_one_buffer_reads_the_same_both_ways(child: Child) -> None:
    child.run(all_samples)


def all_samples() -> Iterator[Case]:
    for chunks in ({}, {"max_rows": 1}, {"max_rows": 3, "max_bytes": 40}):
        arguments: dict[str, Any] = dict(chunks)
        yield f"{chunks}", partial(_all_rows, b"".join(SAMPLES.values()), **arguments)


def _all_rows(buffer: bytes, **arguments: Any) -> None:
    outcome = read_both(buffer, **arguments)
    assert outcome.failure is None
    assert len(outcome.rows) == sum(len(read_both(sample).rows) for sample in SAMPLES.values())
