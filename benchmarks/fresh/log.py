"""`python -m benchmarks.fresh.log append|recover|read FOLDER BATCHES SIZE` measures the memory for a log of SIZE bytes.

This is the peak of anonymous memory, minus its level after everything was imported and compiled.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.fresh.resident import Watch, resident_kib
from octavo.log import Log, LogConfig
from octavo.records import read_batches
from octavo.records.layout import BATCH_HEADER

CONFIG = LogConfig.from_properties({"segment.bytes": str(256 << 20)})


def write(folder: Path, batches: Path, size: int) -> None:
    """Append batches until the log has this size."""
    offset = BATCH_HEADER.at("length")
    calls = [bytes(offset) + bytes(batch.data[offset:]) for batch in read_batches(batches.read_bytes())]
    with Log.open(folder / "topic-0", CONFIG) as log:
        done = 0
        while done < size:
            for call in calls:
                log.append(call)
                done += len(call)


def recover(folder: Path) -> None:
    """Open the log without its clean shutdown marker, as after a crash."""
    for path in folder.iterdir():
        if path.is_file():
            path.unlink()
    Log.open(folder / "topic-0", CONFIG).close()


def read(folder: Path) -> None:
    """Read all batches, and look one up in every segment."""
    with Log.open(folder / "topic-0", CONFIG) as log:
        for segment in log.segments:
            log.read(min(segment.base_offset + 1000, log.end_offset - 1), 1)
        for _ in log.reader(buffer_size=1 << 20):
            pass


def main() -> None:
    what, folder, batches, size = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
    first, folder = folder / "first", folder / "data"
    first.mkdir()
    folder.mkdir()
    write(first, batches, 4 << 20)  # a first small log imports modules and compiles kernels
    recover(first)
    read(first)
    if what != "append":
        write(folder, batches, size)
    before_kib = resident_kib("RssAnon")
    watch = Watch()
    watch.start()
    if what == "append":
        write(folder, batches, size)
    else:
        (recover if what == "recover" else read)(folder)
    watch.done.set()
    watch.join()
    print(json.dumps({"peak_mib": max(0, watch.highest_kib - before_kib) / 1024}))


if __name__ == "__main__":
    main()
