"""Compare appending with the minimum for the same work: writing the bytes and computing their checksum."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Final

from crc32c import crc32c

from benchmarks.log import sets
from benchmarks.measure import Contender, Peer, Result, compare
from octavo.log import Log, LogConfig
from octavo.records import Codec, read_batches
from octavo.records.compression import decompress
from octavo.records.layout import BATCH_HEADER

_CONFIG: Final = LogConfig.from_properties({"max.message.bytes": str(2 << 20)})
_PASS: Final = 192 << 20  # number of bytes appended in one pass
_SHARE: Final = 0.7  # the speed that we want to reach, as a share of the speed of plain writes
_SHARE_OF_LARGE: Final = 0.75  # the same for one large batch that is not compressed
_SHARE_OF_ONE: Final = 0.5  # the same if each call has only one small batch
_TOGETHER: Final = 64  # number of small batches in one call
_MAX_RECORDS: Final = 16 << 20

_Stream = tuple[Codec, memoryview]


def append(*, repeat: int, scale: int) -> list[Result]:
    """Measure calls with one large batch, with many small batches, and with one small batch."""
    results = []
    with sets.scratch() as folder:
        for codec, value_size in (("none", 100), ("none", 1000), ("lz4", 100), ("zstd", 100)):
            small, large = (sets.as_sent(kind(codec, value_size)) for kind in (sets.small, sets.large))
            kind = "" if codec == "none" else f" {codec}"
            values = f", values of {value_size:,}"
            for name, calls, least in (
                (f"append one{kind} batch of 1 MiB a call{values}", large, _SHARE if kind else _SHARE_OF_LARGE),
                (f"append 64{kind} batches of 16 KiB a call{values}", [b"".join(small[:_TOGETHER])], _SHARE),
                (f"append one{kind} batch of 16 KiB a call{values}", small, _SHARE if kind else _SHARE_OF_ONE),
            ):
                results += _compare(name, folder, calls, least, repeat, scale)
    return results


def _compare(name: str, folder: Path, calls: Sequence[bytes], target: float, repeat: int, scale: int) -> list[Result]:
    count = max(len(calls), _PASS // scale // len(calls[0]))
    amount = sum(len(calls[number % len(calls)]) for number in range(count))
    ours = Contender("octavo", amount, lambda: _append(folder / "topic-0", calls, count))
    work = [_compressed(data) for data in calls]
    what = "decompressing and os.write" if work[0] else "os.write and CRC-32C"
    peer = Contender(what, amount, lambda: _write(folder / "plain", calls, work, count))
    return compare(name, ours, [Peer(peer, target)], unit="B/s", repeat=repeat)


def _append(folder: Path, calls: Sequence[bytes], count: int) -> float:
    with Log.open(folder, _CONFIG) as log:
        log.append(calls[0])
        many = len(calls)
        begin = perf_counter()
        for number in range(count):
            log.append(calls[number % many])
        taken = perf_counter() - begin
        log.truncate_to(0)  # so that the batches are not flushed to the disk
    shutil.rmtree(folder)
    return taken


def _write(path: Path, calls: Sequence[bytes], work: Sequence[Sequence[_Stream]], count: int) -> float:
    """Write the same bytes. Before that, decompress the records, or compute a checksum if they are not compressed."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    many = len(calls)
    os.write(descriptor, calls[0])
    begin = perf_counter()
    for number in range(count):
        data = calls[number % many]
        streams = work[number % many]
        if streams:
            for codec, stream in streams:
                decompress(codec, stream, limit=_MAX_RECORDS)
        else:
            crc32c(data)
        os.write(descriptor, data)
    taken = perf_counter() - begin
    os.close(descriptor)
    path.unlink()
    return taken


def _compressed(data: bytes) -> list[_Stream]:
    """Return the compressed records of each batch."""
    return [(batch.codec, batch.data[BATCH_HEADER.size :]) for batch in read_batches(data) if batch.is_compressed]
