"""A real broker's own cleaner, and ours: the same topic compacted by both, and each served by the other."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from octavo.log import DataDirectory, Isolation, Log, Origin
from octavo.log.metadata import handover
from octavo.records import read_batches
from tests.kafka.broker import Broker
from tests.kafka.client import OLD_RESOURCES, KafkaProducer
from tests.kafka.conftest import NewBroker
from tests.kafka.consuming import read_by_client
from tests.kafka.serving import WRONG, assert_at_home, dump_log, read_by_octavo
from tests.workload.generator import CODECS, Shape, Workload

pytestmark = OLD_RESOURCES

TOPIC: Final = "table"
PLACE: Final = (TOPIC, 0)
CHECKPOINT: Final = "cleaner-offset-checkpoint"
COMPACTED: Final = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    # What Kafka may have other defaults for is set, so that we take it as known.
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "delete.retention.ms": "86400000",
    "min.compaction.lag.ms": "0",
}
CLEANER: Final = {"log.cleaner.backoff.ms": "100"}
WAIT_S: Final = 60
HOUR_MS: Final = 3_600_000


def _write(log: Log, workload: Workload, steps: int) -> None:
    """Segments full of everything, with the last one empty, and nothing left open."""
    for step in (*workload.take(steps), *workload.end_all()):
        if step.rolls:
            log.roll()
        else:
            log.append(step.batches, origin=Origin[step.origin])
    log.roll()


def _cleaned_to(folder: Path) -> int:
    path = folder / CHECKPOINT
    lines = path.read_text().splitlines()[2:] if path.exists() else []
    found = [int(offset) for topic, _, offset in map(str.split, lines) if topic == TOPIC]
    return found[0] if found else 0


def _wait_until_cleaned(broker: Broker, folder: Path, offset: int) -> None:
    """The broker writes down how far it has cleaned, after every time."""
    deadline = time.monotonic() + WAIT_S
    while _cleaned_to(folder) < offset:
        assert time.monotonic() < deadline, broker.lines[-30:]
        time.sleep(0.05)  # until it is asked again


def _batches(partition: Path) -> list[Any]:
    """All batches, but for what depends on the compressor, and on when it was done: that is in the base timestamps."""
    return [
        (batch.header[3:4], batch.header[5:7], batch.header[8:], batch.base_offset, batch.leader_epoch, list(batch))
        for path in sorted(partition.glob("*.log"))
        for batch in read_batches(path.read_bytes())
    ]


def _check_files(broker: Broker, partition: Path) -> None:
    """What `kafka-dump-log` finds in every file: nothing wrong, but for the gaps that compaction leaves."""
    files = [file for kind in ("log", "index", "timeindex", "txnindex") for file in sorted(partition.glob(f"*.{kind}"))]
    told = dump_log(broker, files, "--deep-iteration")
    assert [line for line in told.splitlines() if WRONG.search(line) and "is followed by" not in line] == []


def test_a_broker_cleans_as_we_do_and_each_serves_what_the_other_cleaned(tmp_path: Path, new_broker: NewBroker) -> None:
    by_kafka, by_octavo = tmp_path / "kafka", tmp_path / "octavo"
    workload = Workload(5, Shape(codecs=CODECS, largest_batch=30), time_ms=time.time_ns() // 1_000_000 - HOUR_MS)
    with DataDirectory.open(by_kafka) as data:
        data.create_topic(TOPIC, 1, COMPACTED)
        log = data.log(TOPIC, 0)
        _write(log, workload, 200)
        base = log.segments[-1].base_offset
        before = read_by_octavo(log, Isolation.READ_COMMITTED).records
    shutil.copytree(by_kafka, by_octavo)

    handover([by_kafka])
    broker = new_broker(by_kafka, settings=CLEANER)
    broker.start()
    _wait_until_cleaned(broker, by_kafka, base)
    seen = {isolation: read_by_client(broker, PLACE, isolation) for isolation in ("read_committed", "read_uncommitted")}
    broker.stop()
    assert_at_home(broker)

    with DataDirectory.open(by_octavo) as data:
        log = data.log(TOPIC, 0)
        stats = log.compact(only_if_due=True)
        assert stats is not None
        assert stats.end_offset == base
        ours = read_by_octavo(log, Isolation.READ_COMMITTED).records
    assert _batches(by_octavo / f"{TOPIC}-0") == _batches(by_kafka / f"{TOPIC}-0")
    assert ours == seen["read_committed"]
    latest = {record.key: record for record in before}
    assert ours == sorted(latest.values())  # the last of each key, and nothing else

    # We read what the broker has cleaned, and go on; it goes on with what we have cleaned.
    with DataDirectory.open(by_kafka) as data:
        for report in data.reports:
            deleted = [name for name in report.removed if name.endswith(".deleted")]  # it had no time left for them
            assert report.was_clean
            assert replace(report, removed=[]).is_unremarkable, report
            assert deleted == report.removed
        assert read_by_octavo(data.log(TOPIC, 0), Isolation.READ_COMMITTED).records == seen["read_committed"]
        assert data.log(TOPIC, 0).compact(only_if_due=True) is None
    handover([by_octavo])
    broker = new_broker(by_octavo, settings=CLEANER)
    _check_files(broker, by_octavo / f"{TOPIC}-0")
    broker.start()
    assert {isolation: read_by_client(broker, PLACE, isolation) for isolation in seen} == seen
    producer: Any = KafkaProducer(bootstrap_servers=broker.address)
    producer.send(TOPIC, partition=0, key=b"key-0", value=b"from a client").get(30)
    producer.close()
    assert read_by_client(broker, PLACE, "read_committed")[-1].value == b"from a client"
    broker.stop()
    assert_at_home(broker)
