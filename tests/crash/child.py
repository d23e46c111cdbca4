"""A process under load, for somebody else to kill: `python -m tests.crash.child FOLDER RUN`.

Threads append to all partitions of one topic, with rolls, flushes and retention between. Each line on standard output
is one report, written when the call has returned (or, for deletions, before it is made):

    append PARTITION BASE_OFFSET KEY
    delete PARTITION OFFSET
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from random import Random
from typing import Final

from octavo.log import DataDirectory, Log
from octavo.records import BatchBuilder

TOPIC: Final = "load"
PARTITIONS: Final = 3
THREADS: Final = 4
CONFIG: Final = {
    "internal.segment.bytes": "30000",
    "index.interval.bytes": "500",
    "segment.index.bytes": "1000",
    "file.delete.delay.ms": "5",
}
NOW_MS: Final = 1_700_000_000_000


def value_of(key: str) -> bytes:
    """What stands behind a key: nobody else could have written it."""
    return Random(key).randbytes(1 + hash_of(key) % 400)


def hash_of(key: str) -> int:
    """The same in every process."""
    return sum(map(ord, key)) * 37


def _say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def _load(directory: DataDirectory, run: int, thread: int) -> None:
    random = Random(f"{run} {thread}")
    count = 0
    while True:
        partition = random.randrange(PARTITIONS)
        log = directory.log(TOPIC, partition)
        dice = random.random()
        if dice < 0.96:
            count += 1
            key = f"{run}-{thread}-{count}"
            builder = BatchBuilder()
            builder.append(key.encode(), value_of(key), timestamp_ms=NOW_MS + count)
            done = log.append(builder.build())
            _say("append", partition, done.base_offset, key)
        else:
            _other_work(log, partition, dice, random)


def _other_work(log: Log, partition: int, dice: float, random: Random) -> None:
    if dice < 0.97:
        log.roll()
    elif dice < 0.98:
        log.flush()
    elif dice < 0.99:
        offset = random.randint(log.start_offset, max(log.start_offset, log.high_watermark - 2000))
        _say("delete", partition, offset)
        log.delete_records_before(offset)
    else:
        log.apply_retention(NOW_MS)
        log.delete_files(NOW_MS + count_up())


_clock = 0


def count_up() -> int:
    """A clock that goes with the work."""
    global _clock
    _clock += 1
    return _clock


def main() -> None:
    """Never comes to an end by itself."""
    folder, run = Path(sys.argv[1]), int(sys.argv[2])
    directory = DataDirectory.open(folder)
    if TOPIC not in directory.topics:
        directory.create_topic(TOPIC, PARTITIONS, CONFIG)
    threads = [threading.Thread(target=_load, args=(directory, run, number)) for number in range(THREADS)]
    for thread in threads:
        thread.start()


if __name__ == "__main__":
    main()
