"""`python -m benchmarks.fresh.producers FOLDER COUNT` measures memory and snapshots of the state of COUNT producers.

Each producer has written more batches than are remembered. Memory is the anonymous memory that the state adds; the time
of a snapshot is the shortest of three.
"""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path
from time import perf_counter

from benchmarks.fresh.resident import resident_kib
from octavo.log.producer_state.producer_batch import ProducerBatch
from octavo.log.producer_state.snapshot import read_snapshot, write_snapshot
from octavo.log.producer_state.states import ProducerStates
from octavo.log.storage import DISK

TIME_MS = 1_700_000_000_000
BATCHES = 6


def fill(count: int) -> ProducerStates:
    """Make the state of `count` producers."""
    states = ProducerStates()
    offset = 0
    for number in range(BATCHES):
        for producer in range(count):
            sequence = 10 * number
            batch = ProducerBatch(
                producer_id=1000 + producer,
                producer_epoch=0,
                base_sequence=sequence,
                last_sequence=sequence + 9,
                base_offset=offset,
                last_offset=offset + 9,
                max_timestamp_ms=TIME_MS + offset,
                is_transactional=False,
                is_control=False,
                marker=None,
            )
            states.take(batch, None)
            offset += 10
    return states


def main() -> None:
    folder, count = Path(sys.argv[1]), int(sys.argv[2])
    fill(10)
    gc.collect()
    before_kib = resident_kib("RssAnon")
    states = fill(count)
    gc.collect()
    state_mib = (resident_kib("RssAnon") - before_kib) / 1024
    path = folder / "00000000000000000001.snapshot"
    times = []
    for _ in range(3):
        begin = perf_counter()
        write_snapshot(DISK, path, states.entries)
        times.append(perf_counter() - begin)
    assert len(read_snapshot(DISK, path)) == count
    print(json.dumps({"state_mib": state_mib, "snapshot_s": min(times)}))


if __name__ == "__main__":
    main()
