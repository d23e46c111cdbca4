"""Measure what rolls cost: the longest append while a segment rolls, and the speed with many rolls."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import Final

from benchmarks.log import sets
from benchmarks.measure import Contender, Peer, Result, compare, tell, within
from octavo.log import Log, LogConfig

_SEGMENT: Final = 1 << 30
_SMALL_SEGMENT: Final = 64 << 20
_PASS: Final = 640 << 20  # number of bytes appended in one pass: nine rolls of small segments, and none of large ones
_SHARE: Final = 0.95  # the speed with rolls that we want to reach, as a share of the speed without
_PACE: Final = 100e6  # bytes per second
_LONGEST_MS: Final = {_PACE: 10.0, None: 50.0}  # by pace; None: as fast as possible
_ROUNDS: Final = 3


def roll(*, repeat: int, scale: int) -> list[Result]:
    """Measure the longest append around the roll of a large segment, and appends with rolls of small segments."""
    calls = sets.as_sent(sets.large())
    results = []
    with sets.scratch() as folder:
        for pace, limit_ms in _LONGEST_MS.items():
            speed = "at full speed" if pace is None else f"at {pace / 1e6:.0f} MB/s"
            name = f"longest append while a segment of {_SEGMENT // scale >> 20:,} MiB rolls, {speed}"
            tell(name)
            longest = [_longest(folder / "topic-0", calls, _SEGMENT // scale, pace) for _ in range(_ROUNDS)]
            results.append(within(name, 1000 * median(longest), limit_ms, "ms"))
        count = _PASS // scale // len(calls[0])
        ours, peer = (
            Contender(name, count * len(calls[0]), partial(_append, folder / "topic-0", calls, count, size))
            for name, size in (("octavo", _SMALL_SEGMENT // scale), ("without", _SEGMENT))
        )
        name = f"append with rolls every {_SMALL_SEGMENT // scale >> 20} MiB"
        results += compare(name, ours, [Peer(peer, _SHARE)], unit="B/s", repeat=repeat)
    return results


def _longest(folder: Path, calls: Sequence[bytes], segment_bytes: int, pace: float | None) -> float:
    """Fill a segment, let it roll, and append a quarter of the next. Returns the time of the longest append."""
    with _open(folder, segment_bytes) as log:
        for data in calls:  # so that kernels are loaded
            log.append(data)
        longest = 0.0
        done = 0
        first = perf_counter()
        number = 0
        while done < segment_bytes * 5 // 4:
            data = calls[number % len(calls)]
            begin = perf_counter()
            log.append(data)
            end = perf_counter()
            longest = max(longest, end - begin)
            number += 1
            done += len(data)
            if pace is not None:
                sleep(max(0.0, first + done / pace - end))
        assert len(log.segments) > 1
        _discard(log)
    shutil.rmtree(folder)
    return longest


def _append(folder: Path, calls: Sequence[bytes], count: int, segment_bytes: int) -> float:
    with _open(folder, segment_bytes) as log:
        for data in calls:  # so that kernels are loaded
            log.append(data)
        many = len(calls)
        begin = perf_counter()
        for number in range(count):
            log.append(calls[number % many])
        taken = perf_counter() - begin
        _discard(log)
    shutil.rmtree(folder)
    return taken


def _open(folder: Path, segment_bytes: int) -> Log:
    config = {"max.message.bytes": str(2 << 20), "segment.bytes": str(segment_bytes)}
    return Log.open(folder, LogConfig.from_properties(config))


def _discard(log: Log) -> None:
    """Remove the batches, so that closing the log does not flush them to the disk."""
    log.truncate_to(0)
