"""Damage in what is to be appended: refused or taken, never more, and the same by every kind of kernel.

The checksum is made right again after each flip, so that the records behind it are looked at. Input, decompressed
records and the tables that the kernel writes all end at a guard page.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import numpy as np
import pytest

from octavo.errors import AppendRefused
from octavo.log.append.leader import SCRATCH
from octavo.log.append.validator import Validator
from octavo.log.config.log_config import LogConfig
from octavo.log.origin import Origin
from octavo.records.kernels import Kernel, Kernels, validate
from octavo.records.layout import BATCH_HEADER, MAGIC_AT
from tests.corruption import forge
from tests.corruption.child import Child
from tests.corruption.guard import ARENA, Guarded
from tests.corruption.samples import SAMPLES
from tests.corruption.worker import Case

_NOW: Final = 1_700_000_000_000
_ROWS: Final = 3  # batches a call: fewer than some buffers hold
_LIMITED: Final = {"message.timestamp.before.max.ms": "10", "cleanup.policy": "compact"}
_CONFIGS: Final = (LogConfig(), LogConfig.from_properties(_LIMITED), LogConfig(compression_type="uncompressed"))
_V2: Final = [name for name, sample in SAMPLES.items() if sample[MAGIC_AT] == 2]

Outcome = tuple[object, ...]


def _guard_scratch() -> None:
    """Have the kernel write between guard pages, in this process."""
    headers = Guarded(_ROWS * BATCH_HEADER.size).room(_ROWS * BATCH_HEADER.size)
    spans = Guarded(_ROWS * validate.SPAN_COLUMNS * 8).room(_ROWS * validate.SPAN_COLUMNS * 8)
    SCRATCH.headers = np.frombuffer(headers, np.uint8)
    SCRATCH.first_header = headers[: BATCH_HEADER.size]
    SCRATCH.spans = np.frombuffer(spans, np.int64).reshape(_ROWS, validate.SPAN_COLUMNS)


class _Interpreted(Validator):
    def _kernel(self, size: int) -> Kernel:
        return Kernels(compiled=False).validate


_VALIDATORS: Final = [(Validator(config), _Interpreted(config)) for config in _CONFIGS]


def _outcome(validator: Validator, buffer: memoryview, origin: Origin) -> Outcome:
    ARENA.clear()
    try:
        validated = validator.assign(buffer, offset=2**40, leader_epoch=7, now_ms=_NOW, origin=origin)
    except AppendRefused as refusal:
        return (refusal.args,)
    return b"".join(validated.parts), validated.size, validated.spans


def _same(buffer: memoryview, origin: Origin) -> None:
    """Nothing but a refusal comes out of it, the input stays as it is, and compiled and interpreted agree."""
    before = bytes(buffer)
    for validator, interpreted in _VALIDATORS:
        assert _outcome(validator, buffer, origin) == _outcome(interpreted, buffer, origin)
    assert buffer == before


def _resealed(damaged: bytes) -> bytes:
    """With the right checksum, if there is place for one."""
    return forge.sealed(damaged) if len(damaged) >= BATCH_HEADER.size and damaged[MAGIC_AT] <= 2 else damaged


def _as_sent(name: str) -> bytes:
    """A sample as a producer would send it: from offset 0, one record for each offset."""
    header = BATCH_HEADER.read(SAMPLES[name])
    header = header._replace(base_offset=0, last_offset_delta=max(header.record_count - 1, 0))
    return forge.sealed(BATCH_HEADER.write(header) + SAMPLES[name][BATCH_HEADER.size :])


def flips(name: str, patterns: tuple[int, ...]) -> Iterator[Case]:
    """Each byte of a client's batch changed, before and behind others."""
    _guard_scratch()
    sample = _as_sent(name)
    sound = forge.batch(forge.record(), count=1, base_offset=0)
    memory = Guarded(4096)
    for at, byte in enumerate(sample):
        for pattern in patterns:
            damaged = sample[:at] + bytes((byte ^ pattern,)) + sample[at + 1 :]
            if at >= MAGIC_AT:
                damaged = _resealed(damaged)
            before = sound * (at % 5)
            ARENA.at_end = at % 2 == 0
            origin = Origin.COORDINATOR if at % 3 == 0 else Origin.CLIENT
            buffer = memory.put(before + damaged, at_end=at % 4 != 1)
            yield f"{name}: byte {at} ^ {pattern:#04x}, behind {at % 5}", partial(_same, buffer, origin)


def cuts(name: str) -> Iterator[Case]:
    """Each length of the batch, and each length of its records under a header that fits."""
    _guard_scratch()
    sample = _as_sent(name)
    header = BATCH_HEADER.read(sample)
    memory = Guarded(4096)
    for size in range(len(sample)):
        yield f"{name}: cut to {size}", partial(_same, memory.put(sample[:size]), Origin.CLIENT)
        if size >= BATCH_HEADER.size:
            shorter = BATCH_HEADER.write(header._replace(length=size - 12)) + sample[BATCH_HEADER.size : size]
            buffer = memory.put(forge.sealed(shorter))
            yield f"{name}: records cut to {size - 61}", partial(_same, buffer, Origin.CLIENT)


def lies() -> Iterator[Case]:
    """Lengths and counts that lead outside, alone and behind enough records for the quick way."""
    _guard_scratch()
    memory = Guarded(1 << 14)
    numbers = (
        -1,
        0,
        1,
        6,
        7,
        63,
        64,
        8191,
        8192,
        2**20,
        2**31 - 1,
        -(2**31),
        forge.UNENDING,
        forge.padded_varint(1, 2),
    )
    for field in ("length", "timestamp_delta", "offset_delta", "key_length", "value_length", "header_count"):
        for number in numbers:
            for before, value in ((0, b"v"), (3, bytes(100)), (0, None)):
                records = [forge.record(offset_delta=index) for index in range(before)]
                lie: dict[str, Any] = {field: number}
                records.append(forge.record(value=value, **lie))
                data = forge.batch(b"".join(records), count=len(records), base_offset=0)
                yield f"{field} {number!r} behind {before}", partial(_same, memory.put(data), Origin.CLIENT)
    for count in (-1, 0, 1, 2, 3, 2**31 - 1, -(2**31)):
        for delta in (-1, 0, 1, 2, 2**31 - 1, -(2**31)):
            data = forge.batch(forge.record() * 2, count=count, base_offset=0, last_offset_delta=delta)
            yield f"count {count}, last delta {delta}", partial(_same, memory.put(data), Origin.CLIENT)


_PATTERNS: Final = {"interpreted": (0x01, 0x80), "compiled": (0x01, 0x10, 0x80, 0xFF), "checked": (0x01, 0x80)}


def sound() -> Iterator[Case]:
    """Every sample that a client may send."""
    _guard_scratch()
    for name in _V2:
        if name not in ("magic 2, control", "magic 2, empty"):
            yield name, partial(_taken, memoryview(_as_sent(name)))


def _taken(buffer: memoryview) -> None:
    *_, (uncompressed, _) = _VALIDATORS
    outcome = _outcome(uncompressed, buffer, Origin.CLIENT)
    assert len(outcome) > 1, outcome


def test_what_gets_damaged_here_is_taken_while_it_is_sound(child: Child) -> None:
    child.run(sound)


@pytest.mark.parametrize("name", _V2)
def test_a_flipped_byte_is_judged_alike_by_every_kind_of_kernel(child: Child, name: str) -> None:
    child.run(flips, name, _PATTERNS[child.mode])


@pytest.mark.parametrize("name", _V2)
def test_a_batch_cut_at_any_length_is_judged_alike(child: Child, name: str) -> None:
    child.run(cuts, name)


def test_lengths_that_lead_outside_are_refused_inside(child: Child) -> None:
    child.run(lies)
