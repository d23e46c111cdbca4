"""Compare recovering a segment after a crash with reading the file and computing its checksum."""

from __future__ import annotations

import os
from pathlib import Path
from time import perf_counter
from typing import Final

from crc32c import crc32c

from benchmarks.log import sets
from benchmarks.measure import Contender, Peer, Result, compare
from octavo.log import Log, LogConfig

_MOST: Final = 1.5  # the longest time allowed, as a multiple of the time for reading and a checksum
_BLOCK: Final = 4 << 20
_CONFIG: Final = LogConfig.from_properties({"segment.bytes": str(2**31 - 1)})


def recover(*, repeat: int, scale: int) -> list[Result]:
    """Measure recovering one segment, which is in the page cache as far as the system keeps it there."""
    data = sets.segment(scale).path
    size = data.stat().st_size
    with sets.scratch() as folder:
        partition = folder / "topic-0"
        partition.mkdir()
        os.link(data, partition / "00000000000000000000.log")
        ours = Contender("octavo", size, lambda: _recover(folder, size))
        peer = Contender("reading and CRC-32C", size, lambda: read_and_check(data))
        name = f"recover a segment of {size / 2**30:.2g} GiB"
        return compare(name, ours, [Peer(peer, 1 / _MOST)], unit="B/s", repeat=repeat)


def _recover(folder: Path, size: int) -> float:
    for path in folder.iterdir():
        if path.is_file():
            path.unlink()  # the clean shutdown marker, and the recovery point
    begin = perf_counter()
    log = Log.open(folder / "topic-0", _CONFIG)
    taken = perf_counter() - begin
    assert log.size == log.recovery.bytes_checked == size
    log.close()
    return taken


def read_and_check(path: Path) -> float:
    """Read a file and compute the checksum of all its bytes; return how long that takes."""
    memory = memoryview(bytearray(_BLOCK))
    descriptor = os.open(path, os.O_RDONLY)
    begin = perf_counter()
    checksum = 0
    while size := os.readv(descriptor, [memory]):
        checksum = crc32c(memory[:size], checksum)
    taken = perf_counter() - begin
    os.close(descriptor)
    return taken
