"""The net itself has no holes: whoever reads or writes outside, hangs or takes too much memory is caught and named."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from octavo.records import Codec
from octavo.records.arrow import sink
from octavo.records.compression import Inflater, compress
from octavo.records.kernels import kernels, scan
from tests.corruption import forge
from tests.corruption.child import Child, Died
from tests.corruption.guard import ARENA, Guarded
from tests.corruption.outcome import read_columns
from tests.corruption.samples import SAMPLES
from tests.corruption.worker import HEADROOM, Case


@pytest.fixture
def throwaway() -> Iterator[Child]:
    child = Child("interpreted")
    yield child
    child.close()


@pytest.fixture
def impatient() -> Iterator[Child]:
    child = Child("interpreted", case_seconds=3)
    yield child
    child.close()


def one_byte_outside(side: str) -> Iterator[Case]:
    view = Guarded(100).put(b"some bytes", at_end=side == "behind")
    first = ctypes.addressof(ctypes.c_char.from_buffer(view))
    yield "inside", lambda: ctypes.string_at(first, len(view))
    outside = first + len(view) if side == "behind" else first - 1
    yield "outside", lambda: ctypes.string_at(outside, 1)


@pytest.mark.parametrize("side", ["before", "behind"])
def test_a_byte_outside_the_buffer_is_the_death_of_the_process_and_is_named(throwaway: Child, side: str) -> None:
    with pytest.raises(Died, match="SIGSEGV") as caught:
        throwaway.run(one_byte_outside, side)
    assert caught.value.name == "3 outside"


def hanging() -> Iterator[Case]:
    yield "short", lambda: None
    yield "endless", lambda: time.sleep(600)


@pytest.mark.long
def test_a_case_without_end_is_ended_and_named_and_the_next_goes_on(impatient: Child) -> None:
    with pytest.raises(Died, match="no end") as caught:
        impatient.run(hanging)
    assert caught.value.name.endswith("endless")
    impatient.run(sound)


def sound() -> Iterator[Case]:
    yield "sound", lambda: None


def greedy(how: str) -> Iterator[Case]:
    if how == "reserved":
        yield "too much is asked for", lambda: bytearray(HEADROOM + 1)
    else:
        yield "too much is used", lambda: len(b"x" * (80 << 20))


def test_memory_beyond_what_is_allowed_is_noticed_reserved_or_used(throwaway: Child) -> None:
    with pytest.raises(AssertionError, match="too much is asked for: MemoryError"):
        throwaway.run(greedy, "reserved")
    with pytest.raises(AssertionError, match="bytes more were resident"):
        throwaway.run(greedy, "used")


def kernel_reads_outside() -> Iterator[Case]:
    """A kernel that is told that its buffer goes on where it does not."""
    sample = SAMPLES["magic 2, none"]
    data = np.frombuffer(Guarded(4096).put(sample[:40]), np.uint8)
    table = np.empty((4, scan.COLUMNS), np.int64)
    everything = (-(2**63), 2**63 - 1) * 2
    yield "reads", lambda: kernels(0).scan(data, 0, len(sample), table, 1 << 20, *everything)


def kernel_writes_outside() -> Iterator[Case]:
    """A chunk whose arrays are shorter than it says."""
    real: Any = sink.Memory.reserve
    replace: Any = setattr

    def shorter(self: sink.Memory, count: int) -> None:
        real(self, count - 1 if self.dtype == np.int32 and count > 1 else count)

    replace(sink.Memory, "reserve", shorter)
    ARENA.at_end = True
    try:
        yield "writes", lambda: read_columns(SAMPLES["magic 2, none"])
    finally:
        replace(sink.Memory, "reserve", real)


@pytest.mark.parametrize("cases", [kernel_reads_outside, kernel_writes_outside])
def test_a_kernel_that_leaves_its_arrays_is_caught_in_every_mode(child: Child, cases: Any) -> None:
    caught = {"interpreted": "IndexError|ValueError|unpack_from", "compiled": "SIGSEGV", "checked": "IndexError"}
    with pytest.raises(AssertionError, match=caught[child.mode]):
        child.run(cases)


def decompressed_reads() -> Iterator[Case]:
    """A kernel that is told that a decompressed batch goes on where it does not."""
    real: Any = Inflater.add
    replace: Any = setattr

    def longer(self: Inflater, *arguments: Any) -> tuple[int, int]:
        start, end = real(self, *arguments)
        return start, end + 8

    replace(Inflater, "add", longer)
    ARENA.at_end = True
    try:
        cut = compress(Codec.ZSTD, forge.record(value=bytes(50))[:-8])
        yield "reads", lambda: read_columns(forge.batch(cut, count=1, attributes=int(Codec.ZSTD)))
    finally:
        replace(Inflater, "add", real)


def test_a_kernel_that_leaves_a_decompressed_batch_is_caught_in_every_mode(child: Child) -> None:
    with pytest.raises(AssertionError, match=r"IndexError|ValueError|SIGSEGV"):
        child.run(decompressed_reads)
