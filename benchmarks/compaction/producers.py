"""Measure the cost of producer state: memory, snapshots, and appending idempotent batches."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Final

from crc32c import crc32c

from benchmarks.data import prepare
from benchmarks.fresh import run_fresh
from benchmarks.log import sets
from benchmarks.measure import Contender, Peer, Result, compare, tell, within
from octavo.log import Log, LogConfig
from octavo.records.layout import BATCH_HEADER

_PRODUCERS: Final = 100_000
_MOST_MIB: Final = 100
_MOST_SECONDS: Final = 1.0
_SHARE: Final = 0.9  # the speed with producer ids that we want to reach, as a share of the speed without
_BATCHES: Final = 4_000  # number of batches appended in one pass
_COVERED_AT: Final = BATCH_HEADER.at("attributes")


def producers(*, repeat: int, scale: int) -> list[Result]:
    """Measure the memory of producer state, snapshots, and appending idempotent batches."""
    tell(f"state of {_PRODUCERS:,} producers")
    with sets.scratch() as folder:
        found = run_fresh("producers", str(folder), str(_PRODUCERS))
    return [
        within(f"memory for the state of {_PRODUCERS:,} producers", found["state_mib"], _MOST_MIB, "MiB"),
        within(f"time for a snapshot of {_PRODUCERS:,} producers", found["snapshot_s"], _MOST_SECONDS, "s"),
        *_append(repeat=repeat, scale=scale),
    ]


def _append(*, repeat: int, scale: int) -> list[Result]:
    """Compare appending batches of an idempotent producer with the same batches without a producer, one per call."""
    results = []
    shapes = [(sets.small(), "16 KiB"), (sets.small("lz4"), "16 KiB, lz4")]
    prepare([data_set for data_set, _ in shapes])
    for data_set, size in shapes:
        sent = sets.as_sent(data_set)
        # Copies, because the batches of the producer are copies, too: memory that was just written is faster to read.
        plain = [bytes(bytearray(sent[number % len(sent)])) for number in range(_BATCHES // scale)]
        numbered = _numbered(plain)
        with sets.scratch() as folder:
            ours = Contender("octavo", len(numbered), partial(_pass, folder, numbered))
            peer = Contender("plain ones", len(plain), partial(_pass, folder, plain))
            name = f"append idempotent batches of {size}"
            results += compare(name, ours, [Peer(peer, _SHARE)], unit="batches/s", repeat=repeat)
    return results


def _numbered(batches: Sequence[bytes]) -> list[bytes]:
    """Return the same batches with the producer id of one producer and consecutive sequence numbers."""
    sequence = 0
    found = []
    for batch in batches:
        header = BATCH_HEADER.read(batch)
        header = header._replace(producer_id=7, producer_epoch=0, base_sequence=sequence)
        records = batch[BATCH_HEADER.size :]
        checksum = crc32c(records, crc32c(BATCH_HEADER.write(header)[_COVERED_AT:]))
        found.append(BATCH_HEADER.write(header._replace(crc=checksum)) + records)
        sequence += header.record_count
    return found


def _pass(folder: Path, batches: Sequence[bytes]) -> float:
    with Log.open(folder / "topic-0", LogConfig()) as log:
        begin = perf_counter()
        for batch in batches:
            log.append(batch)
        taken = perf_counter() - begin
        log.truncate_to(0)  # so that the batches are not flushed to the disk
    shutil.rmtree(folder / "topic-0")
    return taken
