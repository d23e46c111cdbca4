"""`python -m benchmarks.fresh.start objects|arrow|kafka-python` measures the time from import to decoded batch."""

from __future__ import annotations

import json
import sys
import time

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


def main() -> None:
    decode = {"objects": with_objects, "arrow": with_arrow, "kafka-python": with_kafka_python}[sys.argv[1]]
    begin = time.perf_counter()
    count = decode()
    taken = time.perf_counter() - begin
    assert count == 1
    print(json.dumps({"seconds": taken, "heavy": [name for name in HEAVY if name in sys.modules]}))


if __name__ == "__main__":
    main()
