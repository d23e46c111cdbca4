"""`python -m benchmarks.fresh.start objects|arrow|kafka-python` measures the time from import to decoded batch.

With `segment FILE` it is the time to the first columns of a file, and with `everything` the time until all kernels are
compiled and loaded.
"""

from __future__ import annotations

import json
import mmap
import sys
import time
from pathlib import Path

from benchmarks.fresh import BATCH

HEAVY = ("numba", "llvmlite", "numpy", "pyarrow", "pyspark")


def with_objects() -> int:
    from octavo.records import read_batches

    return sum(1 for batch in read_batches(BATCH) for _ in batch)


def with_arrow() -> int:
    from octavo.records import to_arrow

    return sum(chunk.num_rows for chunk in to_arrow(BATCH))


def with_kafka_python() -> int:
    from kafka.record import MemoryRecords

    return sum(1 for batch in MemoryRecords(BATCH) if batch.validate_crc() for _ in batch)


def with_segment() -> int:
    from octavo.records import to_arrow

    with Path(sys.argv[2]).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return int(next(iter(to_arrow(data))).num_rows)


def with_everything() -> int:
    from octavo.records.kernels.compilation.loading import all_kernels, load_all

    load_all()
    return len(all_kernels())


PROGRAMS = {
    "objects": with_objects,
    "arrow": with_arrow,
    "kafka-python": with_kafka_python,
    "segment": with_segment,
    "everything": with_everything,
}


def main() -> None:
    begin = time.perf_counter()
    count = PROGRAMS[sys.argv[1]]()
    taken = time.perf_counter() - begin
    assert count >= 1
    print(json.dumps({"seconds": taken, "heavy": [name for name in HEAVY if name in sys.modules]}))


if __name__ == "__main__":
    main()
