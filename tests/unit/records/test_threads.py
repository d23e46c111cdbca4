"""Several threads at once: each has its own reader, and they share what is compiled, looked up and imported once."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pyarrow as pa
import pytest

from octavo.records import Codec, convert, from_arrow, to_arrow
from tests.batches import build, generate

THREADS = 8


def log(seed: int) -> bytes:
    """Batches of every kind."""
    return b"".join(build(spec) for spec, _ in generate(seed, 200))


def read(data: bytes) -> pa.Table:
    return pa.Table.from_batches(to_arrow(data))


def write(table: pa.Table, codec: Codec) -> bytes:
    columns = table.select(["timestamp", "key", "value", "headers"]).combine_chunks()
    return b"".join(from_arrow(batch, codec=codec, max_size=5000) for batch in columns.to_batches())


@pytest.mark.usefixtures("each_kind_of_kernel")
def test_threads_read_and_write_without_disturbing_each_other() -> None:
    one, codecs = log(0), list(Codec)
    logs = [log(seed) for seed in range(1, THREADS // 2 + 1)]
    work = [(one if number % 2 else logs[number // 2], codecs[number % len(codecs)]) for number in range(THREADS)]
    together = Barrier(THREADS)

    def round_trip(data: bytes, codec: Codec, waits: bool) -> tuple[pa.Table, pa.Table, pa.Table]:
        """All of it read again: gzip's library does not give the same bytes every time."""
        if waits:
            together.wait(60)
        table = read(data)
        return table, read(write(table, codec)), read(convert(data, magic=2).data)

    expected = [round_trip(data, codec, waits=False) for data, codec in work]
    with ThreadPoolExecutor(THREADS) as pool:
        found = [pool.submit(round_trip, data, codec, True) for data, codec in work]
        for future, right in zip(found, expected, strict=True):
            assert future.result(timeout=300) == right


@pytest.mark.parametrize("mode", ["auto", "compiled"])
def test_threads_may_be_the_first_to_use_it(mode: str) -> None:
    """Whatever is imported, loaded or computed on first use is so once, or twice without harm."""
    script = """
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from octavo.records import BatchBuilder, Codec
builder = BatchBuilder(codec=Codec.ZSTD)
for number in range(1000):
    builder.append(b"key %d" % number, bytes(1000), timestamp_ms=number)
data = builder.build()
together = Barrier(8)
def first(_):
    together.wait(60)
    from octavo.records import convert, from_arrow, to_arrow
    (chunk,) = to_arrow(data)
    return from_arrow(chunk, codec=Codec.LZ4), convert(data, magic=1, codec=Codec.GZIP).data
with ThreadPoolExecutor(8) as pool:
    print(len(set(pool.map(first, range(8)))))
"""
    environment = {**os.environ, "OCTAVO_KERNELS": mode}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=240)
    assert (done.stdout, done.stderr) == ("1\n", "")
