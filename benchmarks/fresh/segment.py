"""`python -m benchmarks.fresh.segment FILE` measures the memory it takes to decode a mapped segment.

This is the peak of anonymous memory (RssAnon), minus its level after everything was imported and compiled. Pages of the
mapped file do not count, because the kernel can take them back at any time.
"""

from __future__ import annotations

import json
import mmap
import sys
from pathlib import Path

from benchmarks.fresh import BATCH
from benchmarks.fresh.resident import Watch, resident_kib
from octavo.records import to_arrow


def main() -> None:
    list(to_arrow(BATCH))  # imports modules and compiles kernels
    before_kib = resident_kib("RssAnon")
    watch = Watch()
    watch.start()
    count = 0
    with Path(sys.argv[1]).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for chunk in to_arrow(memoryview(data)):
            count += chunk.num_rows
            watch.highest_kib = max(watch.highest_kib, resident_kib("RssAnon"))
        watch.done.set()
        watch.join()
        told = {
            "count": count,
            "added_mib": (watch.highest_kib - before_kib) / 1024,
            "before_mib": before_kib / 1024,
            "high_water_mib": resident_kib("VmHWM") / 1024,  # including the pages of the file
        }
        del chunk
    print(json.dumps(told))


if __name__ == "__main__":
    main()
