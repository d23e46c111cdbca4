"""Kernels: the two ways to run them, and when which is chosen."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor
from random import Random

import numpy as np
import pytest
from crc32c import crc32c
from llvmlite import binding

from octavo.errors import InvalidInput
from octavo.records import kernels as kernel_package
from octavo.records.kernels import Kernels, decode, kernels, partition, scan
from octavo.records.kernels.batch_checksums import checksum_tables
from octavo.records.kernels.compilation import loading
from octavo.records.kernels.compilation.signatures import type_mismatch
from octavo.records.kernels.machine import read_i64, wrap64
from octavo.records.kernels.varint import (
    CUT,
    UNENDING,
    read_varint,
    read_varlong,
    varint_size,
    write_i64,
    write_varint,
)
from octavo.records.layout import MAGIC_AT


def test_a_little_work_is_interpreted_and_a_lot_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OCTAVO_KERNELS", raising=False)
    monkeypatch.setattr(kernel_package, "_seen", 0)
    assert kernel_package.WORTH_COMPILING == 2 << 20  # as docs/formats/arrow.md says
    assert kernel_package.WORTH_LOADING == 256 << 10
    monkeypatch.setattr(kernel_package, "has_arrived", lambda: True)
    assert not kernels(1000).compiled
    assert kernels(kernel_package.WORTH_LOADING).compiled
    assert kernels(1000).compiled, "once they are loaded they serve everybody"


def test_kernels_that_are_not_compiled_yet_are_compiled_meanwhile_or_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OCTAVO_KERNELS", raising=False)
    monkeypatch.setattr(kernel_package, "_seen", 0)
    monkeypatch.setattr(kernel_package, "has_arrived", lambda: False)
    assert kernels(kernel_package.WORTH_LOADING) is kernel_package._interpreted
    assert kernels(kernel_package.WORTH_COMPILING) is kernel_package._arriving
    assert kernels(kernel_package.WORTH_WAITING) is kernel_package._arriving
    assert kernels(kernel_package.WORTH_WAITING, at_once=True) is kernel_package._compiled
    assert kernels(1000, at_once=True) is kernel_package._arriving


def test_who_compiles_keeps_nobody_waiting_who_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OCTAVO_KERNELS", raising=False)
    monkeypatch.setattr(kernel_package, "_seen", 0)
    compiling, may_go_on = threading.Event(), threading.Event()
    calls = []

    def compile_slowly(kernel: object) -> object:
        calls.append(kernel)
        compiling.set()
        may_go_on.wait(60)
        return kernel

    monkeypatch.setattr(loading, "_loaded", lambda _: None)
    monkeypatch.setattr(loading, "_compiled_here", compile_slowly)
    monkeypatch.setattr(loading, "_machine_code", {})
    with ThreadPoolExecutor() as pool:
        try:
            waiting = [pool.submit(lambda: Kernels(compiled=True).decode) for _ in range(3)]
            assert compiling.wait(60)
            assert callable(pool.submit(lambda: kernels(1).decode).result(timeout=60))
        finally:
            may_go_on.set()
        assert [future.result(timeout=60) for future in waiting] == [decode.decode] * 3
    assert calls == [decode.decode], "one compiles for all"


def test_an_argument_of_another_type_is_named() -> None:
    columns = np.zeros((2, 2), np.int64)
    right = (np.zeros(3, np.uint8), np.zeros(1, np.int32), np.zeros(1, np.int32), 5, np.zeros(1, np.int32))
    assert type_mismatch(partition.partition, right) is None
    for number, wrong in ((0, np.zeros(3, np.int8)), (1, columns[:, 0]), (2, np.zeros(1, np.int64)), (3, 1.5)):
        mismatch = type_mismatch(partition.partition, (*right[:number], wrong, *right[number + 1 :]))
        assert mismatch is not None
        assert mismatch.startswith(f"argument {number} of partition is ")
    unwritable = np.zeros(1, np.int32)
    unwritable.flags.writeable = False
    assert type_mismatch(partition.partition, (*right[:-1], unwritable)) is not None
    assert type_mismatch(partition.partition, right[:-1]) == "partition takes 5 arguments, not 4"


def test_a_mode_that_does_not_exist_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCTAVO_KERNELS", "fast")
    with pytest.raises(InvalidInput, match="'fast'; it can be auto, interpreted, compiled, checked"):
        kernels(1)


NUMBERS = [0, -1, 1, 63, -64, 64, 300, 2**31 - 1, -(2**31), 2**32, -(2**40), 2**62, 2**63 - 1, -(2**63)]


@pytest.mark.parametrize("number", NUMBERS)
def test_a_varint_is_read_as_it_was_written(number: int) -> None:
    out = bytearray(12)
    end = write_varint(out, 0, number)
    assert end == varint_size(number)
    assert read_varlong(out, 0, 12) == (number, end)
    if -(2**31) <= number < 2**31:
        assert read_varint(out, 0, 12) == (number, end)
    for cut in range(end):
        assert read_varlong(out, 0, cut)[1] == CUT


def test_a_varint_that_goes_on_too_long_is_unending() -> None:
    assert read_varint(b"\x80" * 5 + b"\x00", 0, 6)[1] == UNENDING
    assert read_varlong(b"\x80" * 10 + b"\x00", 0, 11)[1] == UNENDING


def test_excess_bits_and_needless_bytes_are_dropped_as_kafka_drops_them() -> None:
    assert read_varint(b"\xff\xff\xff\xff\x7f", 0, 5) == (-(2**31), 5)
    assert read_varlong(b"\xff" * 9 + b"\x7f", 0, 10) == (-(2**63), 10)
    assert read_varint(b"\x82\x00", 0, 2) == (1, 2)


@pytest.mark.parametrize("number", NUMBERS)
def test_big_endian_numbers(number: int) -> None:
    out = bytearray(8)
    write_i64(out, 0, number)
    assert bytes(out) == number.to_bytes(8, "big", signed=True)
    assert read_i64(out, 0) == number


def test_wrap64_is_javas_arithmetic() -> None:
    assert wrap64(2**63) == -(2**63)
    assert wrap64(-(2**63) - 1) == 2**63 - 1
    assert wrap64(5) == 5


@pytest.mark.parametrize("compiled", [False, True])
def test_checksums_are_right_wherever_the_data_begin_and_end(compiled: bool) -> None:
    """Vectors, streams and single bytes share the work, depending on the size and on the processor."""
    data = bytearray(Random(1).randbytes(9000))
    sizes = [*range(61, 1200), *range(8000, 8070)] if compiled else [61, 400, 1200]
    rows = []
    for turn, size in enumerate(sizes):
        at = turn % 70
        rows.append((at, size, crc32c(data[at + 21 : at + size])))
    table = np.zeros((len(rows), scan.COLUMNS), np.int64)
    table[:, [scan.POSITION, scan.SIZE, scan.CRC]] = rows
    table[:, scan.MAGIC] = 2
    verify = Kernels(compiled=compiled).verify
    assert verify(checksum_tables(), np.frombuffer(data, np.uint8), table) == -1
    table[-1, scan.CRC] ^= 1
    assert verify(checksum_tables(), np.frombuffer(data, np.uint8), table) == len(rows) - 1


_VERIFIED_ELSEWHERE = """
import numpy as np
from crc32c import crc32c
from llvmlite import binding
from octavo.records.kernels import Kernels, scan
from octavo.records.kernels.compilation import folding
from octavo.records.kernels.batch_checksums import checksum_tables

data = np.arange(9000, dtype=np.int64).astype(np.uint8)
table = np.zeros((1000, scan.COLUMNS), np.int64)
for row in range(1000):
    at, size = row % 70, 61 + 8 * row
    table[row, [scan.POSITION, scan.SIZE, scan.MAGIC, scan.CRC]] = at, size, 2, crc32c(data[at + 21 : at + size])
assert Kernels(compiled=True).verify(checksum_tables(), data, table) == -1
print(folding.BITS)
"""


@pytest.mark.parametrize(("lacking", "bits"), [("avx512", 256), ("vpclmulqdq", 0)])
def test_checksums_are_right_on_lesser_processors(lacking: str, bits: int) -> None:
    features = binding.get_host_cpu_features()
    if not all(features.get(name) for name in ("avx2", "vpclmulqdq", "sse4.2")):
        pytest.skip("this processor is one of them")
    left = ",".join(feature for feature in features.flatten().split(",") if not feature.startswith(f"+{lacking}"))
    environment = os.environ | {"NUMBA_CPU_NAME": "x86-64-v3", "NUMBA_CPU_FEATURES": left}
    done = subprocess.run(
        [sys.executable, "-c", _VERIFIED_ELSEWHERE], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == str(bits), done.stderr


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("magic", [0, 2])
@pytest.mark.parametrize(
    "size", [61, 62, 68, 69, 100, 789, 829, 6165, 6205, 20_000]
)  # around the blocks of three streams
def test_kernels_know_a_right_checksum_from_a_wrong_one(compiled: bool, magic: int, size: int) -> None:
    random = Random(size)
    data = bytearray(random.randbytes(3) + random.randbytes(size))
    data[3 + MAGIC_AT] = magic
    table = np.zeros((1, scan.COLUMNS), np.int64)
    table[0, [scan.POSITION, scan.SIZE, scan.MAGIC]] = 3, size, magic
    table[0, scan.CRC] = crc32c(data[3 + 21 :]) if magic == 2 else zlib.crc32(data[3 + 16 :])
    verify = Kernels(compiled=compiled).verify
    assert verify(checksum_tables(), np.frombuffer(data, np.uint8), table) == -1
    for at in (3 + 21, 3 + size - 1, 3 + size // 2):
        data[at] ^= 1
        assert verify(checksum_tables(), np.frombuffer(data, np.uint8), table) == (0 if at >= 3 + 16 else -1)
        data[at] ^= 1
