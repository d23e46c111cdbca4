"""Many threads read while one appends, rolls, truncates and deletes."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from random import Random

import pytest

from octavo.errors import OffsetOutOfRange
from octavo.log import Isolation, Log
from octavo.records import read_batches
from tests.unit.log.logs import TIME_MS, make_batch, open_log

SECONDS = 2.0


def read_until(log: Log, stop: threading.Event, seed: int, seen: list[int], faults: list[str]) -> None:
    """Read at random, and note every batch that is not what was appended at its offset."""
    random = Random(seed)
    while not stop.is_set():
        start, end = log.start_offset, log.end_offset
        offset = random.randint(start, max(start, end))
        try:
            data = log.read(offset, random.choice([1, 500, 5000]), isolation=random.choice(list(Isolation))).records
        except OffsetOutOfRange:
            continue  # deleted or truncated meanwhile
        batches = read_batches(data)
        for number, batch in enumerate(batches):
            records = list(batch)
            if [int(record.key or b"") % 1000 for record in records] != [record.offset % 1000 for record in records]:
                faults.append(f"a wrong batch at {batch.base_offset}")
            if number == 0 and not (batch.base_offset <= offset <= batch.last_offset or batch.base_offset > offset):
                faults.append(f"asked for {offset}, got {batch.base_offset} to {batch.last_offset}")
        seen[0] += 1


@pytest.mark.parametrize("truncates", [False, True])
def test_readers_see_whole_batches_and_never_wait(tmp_path: Path, truncates: bool) -> None:
    faults: list[str] = []
    stop = threading.Event()
    seen = [[0] for _ in range(4)]
    random = Random(1)
    with open_log(tmp_path, file_delete_delay_ms="0", internal_segment_bytes="5000") as log:
        log.append(make_batch(3))
        readers = [
            threading.Thread(target=read_until, args=(log, stop, number, seen[number], faults)) for number in range(4)
        ]
        for reader in readers:
            reader.start()
        end = time.monotonic() + SECONDS
        while time.monotonic() < end and not faults:
            what = random.random()
            if what < 0.9:
                count = random.randint(1, 5)
                # Keys tell offsets, so that any reader can tell right from wrong; sizes differ from time to time.
                log.append(make_batch(count, first=log.end_offset, size=random.randint(0, 200)))
            elif what < 0.93:
                log.roll()
            elif what < 0.95 and truncates:
                batch = next(read_batches(log.read(random.randint(log.start_offset, log.end_offset - 1), 1).records))
                log.truncate_to(max(batch.base_offset, log.start_offset))
                log.append(make_batch(2, first=log.end_offset, size=random.randint(0, 200)))
            elif what < 0.97:
                log.delete_records_before(random.randint(log.start_offset, (log.start_offset + log.end_offset) // 2))
                log.apply_retention(TIME_MS)
                log.delete_files(TIME_MS)
            else:
                log.flush()
        stop.set()
        for reader in readers:
            reader.join()
    assert not faults, faults[:3]
    assert all(count[0] > 10 for count in seen)
