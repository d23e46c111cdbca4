"""What Kafka's own tool for files reads in the snapshots and transaction indexes that Octavo writes."""

from __future__ import annotations

import re
from pathlib import Path

from octavo.log.names import SNAPSHOT, TXN_INDEX
from octavo.log.producer_state.snapshot import read_snapshot
from octavo.log.storage import DISK
from tests.kafka.conftest import NewBroker
from tests.kafka.serving import WRONG, ProducerState, dump_log, producers_of
from tests.kafka.written import ABORTED, write_directory


def test_kafka_dump_log_prints_what_snapshots_and_transaction_indexes_hold(
    tmp_path: Path, new_broker: NewBroker
) -> None:
    written = write_directory(tmp_path)
    broker = new_broker(tmp_path)
    files = sorted(path for suffix in (".log", SNAPSHOT, TXN_INDEX) for path in tmp_path.glob(f"orders-*/*{suffix}"))
    told = dump_log(broker, files, "--deep-iteration")
    assert [line for line in told.splitlines() if WRONG.search(line)] == []
    parts = dict(re.findall(r"^Dumping (\S+)\n(.*?)(?=^Dumping |\Z)", told, re.MULTILINE | re.DOTALL))
    assert len(parts) == len(files)
    for path in files:
        if path.suffix == SNAPSHOT:
            assert _dumped_producers(parts[str(path)]) == producers_of(read_snapshot(DISK, path))
    for place, known in written.known.items():
        newest = max(path for path in files if path.parent.name == str(place) and path.suffix == SNAPSHOT)
        assert set(known.producers) <= set(producers_of(read_snapshot(DISK, newest)))  # and some have expired
    aborted = [found for path in files if path.suffix == TXN_INDEX for found in _dumped_aborts(parts[str(path)])]
    assert len(aborted) == ABORTED


def _dumped_producers(text: str) -> list[ProducerState]:
    pattern = (
        r"producerId: (\d+) producerEpoch: (\d+) coordinatorEpoch: (-?\d+) currentTxnFirstOffset: OptionalLong(\S+) "
        r"lastTimestamp: (\d+)(?: firstSequence: \d+ lastSequence: (\d+))?"
    )
    states = []
    for producer_id, epoch, coordinator_epoch, first_offset, timestamp_ms, sequence in re.findall(pattern, text):
        opened = -1 if first_offset == ".empty" else int(first_offset.strip("[]"))
        last = int(sequence) if sequence else -1
        states.append(
            ProducerState(int(producer_id), int(epoch), last, int(timestamp_ms), int(coordinator_epoch), opened)
        )
    return sorted(states)


def _dumped_aborts(text: str) -> list[tuple[int, ...]]:
    pattern = r"version: 0 producerId: (\d+) firstOffset: (\d+) lastOffset: (\d+) lastStableOffset: (\d+)"
    return [tuple(map(int, found)) for found in re.findall(pattern, text)]
