"""Send a million records through Arrow, and show how fast that was on this machine."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Final

from octavo.cli.demo.stage import Stage, table
from octavo.records import Codec

if TYPE_CHECKING:
    import pyarrow as pa

COUNT: Final = 1_000_000
BATCH_COUNT: Final = 200  # number of records in a batch
_CODECS: Final = (Codec.NONE, Codec.LZ4, Codec.ZSTD)


def show(stage: Stage) -> None:
    """Write and read a million records, with three codecs."""
    stage.chapter("Many: a million records as Arrow columns")
    columns = orders_as_columns()
    seconds = _load_kernels(stage)
    stage.say(f"Kernels (Python, compiled by Numba) ready in {seconds:.1f} s. One thread, checksums verified:")
    rates = ("write, records/s", "read, records/s", "read, MB/s")
    drawn = table("codec", "bytes", *rates, right=("bytes", *rates))
    payload = sum(columns[name].nbytes for name in ("key", "value"))
    with stage.waiting("Writing and reading a million records, with three codecs, twice each ..."):
        for codec in _CODECS:
            data, wrote, read = _best_round_trip(columns, codec)
            numbers = (len(data), COUNT / wrote, COUNT / read, payload / read / 1e6)
            drawn.add_row(codec.name.lower(), *(f"{number:,.0f}" for number in numbers))
    stage.show(drawn)
    stage.code("for columns in to_arrow(data):  # pyarrow.RecordBatch, about 8 MiB at a time\n    ...")
    customers, seconds = _count_customers(data)
    stage.say(f"Arrow takes it from there: {customers:,} customers, read and counted in {seconds:.2f} s.")


def _load_kernels(stage: Stage) -> float:
    """Load the kernels, which are compiled in the first run on a machine. Return how many seconds it took."""
    from octavo.records.kernels.compilation.cache import folders_to_load_from
    from octavo.records.kernels.compilation.loading import load_all

    is_first = not any(any(folder.iterdir()) for folder in folders_to_load_from())
    text = "Compiling the kernels, which only the first run on a machine does: some seconds ..."
    with stage.waiting(text if is_first else "Loading the kernels ..."):
        began = perf_counter()
        load_all()
        return perf_counter() - began


def orders_as_columns() -> pa.RecordBatch:
    """Make a million orders as Arrow columns, without creating a Python object for each."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    number = np.arange(COUNT)
    customer = pa.array(number * 7919 % 5003).cast(pa.string())

    def joined(*parts: object) -> pa.Array:
        return pc.binary_join_element_wise(*parts, "").cast(pa.binary())

    value = joined(
        '{"order":',
        pa.array(number).cast(pa.string()),
        ',"customer":',
        customer,
        ',"item":"notebook","format":"octavo"}',
    )
    timestamp = pa.array(1_700_000_000_000_000 + 1000 * number).cast(pa.timestamp("us", tz="UTC"))
    return pa.RecordBatch.from_arrays(
        [timestamp, joined("customer-", customer), value], names=["timestamp", "key", "value"]
    )


def _round_trip(columns: pa.RecordBatch, codec: Codec) -> tuple[memoryview, float, float]:
    """Write and read the records; return the bytes, and the seconds for writing and for reading."""
    from octavo.records import from_arrow, to_arrow

    began = perf_counter()
    data = from_arrow(columns, codec=codec, max_count=BATCH_COUNT)
    wrote = perf_counter()
    rows = sum(chunk.num_rows for chunk in to_arrow(data))
    assert rows == COUNT
    return data, wrote - began, perf_counter() - wrote


def _best_round_trip(columns: pa.RecordBatch, codec: Codec) -> tuple[memoryview, float, float]:
    """Make two round trips, and return the best times. The first may import a codec's library, and memory is cold."""
    data, wrote, read = _round_trip(columns, codec)
    _, wrote_again, read_again = _round_trip(columns, codec)
    return data, min(wrote, wrote_again), min(read, read_again)


def _count_customers(data: memoryview) -> tuple[int, float]:
    """Count the distinct keys, decoding only that column. Return their number, and the seconds it took."""
    import pyarrow as pa

    from octavo.records import to_arrow

    began = perf_counter()
    keys = pa.Table.from_batches(list(to_arrow(data, columns=["key"])))
    customers = keys.group_by("key").aggregate([]).num_rows
    return customers, perf_counter() - began
