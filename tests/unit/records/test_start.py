"""Small programs start small."""

from __future__ import annotations

import subprocess
import sys


def test_reading_one_batch_as_objects_imports_nothing_large() -> None:
    script = """
import sys
from octavo.records import BatchBuilder, Codec, read_batches
for magic in (0, 1, 2):
    for codec in Codec:
        if magic == 2 or codec != Codec.ZSTD:
            builder = BatchBuilder(magic, codec=codec)
            builder.append(b"k", b"v" * 1000, timestamp_ms=0)
            (batch,) = read_batches(builder.build())
            assert [record.key for record in batch] == [b"k"]
print(*sorted({"numba", "numpy", "pandas", "pyarrow", "pyspark", "rich"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
