"""`python -m benchmarks.fresh.compaction FOLDER MEMORY` measures the memory it takes to compact the log in FOLDER/data.

This is the peak of anonymous memory, minus its level after everything was imported and compiled.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.fresh import BATCH
from benchmarks.fresh.resident import Watch, resident_kib
from octavo.log import Log, LogConfig

CONFIG = LogConfig.from_properties(
    {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0", "segment.bytes": str(128 << 20)}
)


def compact(folder: Path, memory: int) -> None:
    """Compact a dirty log."""
    with Log.open(folder / "topic-0", CONFIG) as log:
        assert log.compact(map_memory=memory) is not None


def main() -> None:
    folder, memory = Path(sys.argv[1]), int(sys.argv[2])
    first = folder / "first"
    first.mkdir()
    with Log.open(first / "topic-0", CONFIG) as log:  # a first compaction imports modules and compiles kernels
        log.append(BATCH)
        log.roll()
    compact(first, 1 << 20)
    before_kib = resident_kib("RssAnon")
    watch = Watch()
    watch.start()
    compact(folder / "data", memory)
    watch.done.set()
    watch.join()
    print(json.dumps({"peak_mib": max(0, watch.highest_kib - before_kib) / 1024}))


if __name__ == "__main__":
    main()
