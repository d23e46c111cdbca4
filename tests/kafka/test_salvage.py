"""What a salvage makes of damaged logs, served by Apache Kafka to its clients."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random
from typing import Final

from octavo.inspect.salvage import salvage
from octavo.log import DataDirectory, Isolation, Log
from octavo.log.coordinator.markers import write_marker
from octavo.log.metadata import handover
from octavo.records import BatchBuilder, Codec, read_batches
from tests.kafka.client import OLD_RESOURCES
from tests.kafka.conftest import NewBroker
from tests.kafka.consuming import read_by_client
from tests.kafka.serving import read_by_octavo
from tests.unit.inspect.salvage.damaging import batches_in, data_batch

pytestmark = OLD_RESOURCES

KEPT: Final = {"retention.ms": "-1", "index.interval.bytes": "200"}
NOW_MS: Final = 1_700_000_000_000


def fill(log: Log, seed: int) -> None:
    random = Random(seed)
    for number in range(60):
        log.append(data_batch(random, random.randint(1, 6), random.choice(list(Codec))))
        if number % 15 == 14:
            log.roll()


def fill_with_transactions(log: Log) -> int:
    """Append transactions of two producers, one after the other. Returns the offset of a marker."""
    marker = -1
    for number in range(20):
        producer = number % 2 + 1
        builder = BatchBuilder(transactional=True, producer_id=producer, producer_epoch=0, base_sequence=number // 2)
        builder.append(b"%d" % producer, b"value %d" % number, timestamp_ms=NOW_MS + number)
        log.append(builder.build())
        if number < 18 or producer == 2:
            write_marker(log, producer, 0, 1, commit=number % 3 > 0, timestamp_ms=NOW_MS + number)
            marker = log.end_offset - 1
    return marker


def damage(folder: Path, offsets: set[int]) -> None:
    for path in folder.glob("*.log"):
        data = bytearray(path.read_bytes())
        for batch in read_batches(bytes(data)):
            if batch.base_offset in offsets:
                data[batch.position + 65] ^= 255
        path.write_bytes(data)


def test_kafka_serves_what_was_salvaged_and_its_clients_get_through(tmp_path: Path, new_broker: NewBroker) -> None:
    folder, broken, safe = tmp_path / "data", tmp_path / "broken", tmp_path / "safe"
    with DataDirectory.open(folder) as data:
        for topic in ("plain", "transactions"):
            data.create_topic(topic, 1, KEPT)
        fill(data.log("plain", 0), 1)
        marker = fill_with_transactions(data.log("transactions", 0))
    safe.mkdir()
    for topic, offsets in (("plain-0", set(list(batches_in(folder / "plain-0"))[5::9])), ("transactions-0", {marker})):
        shutil.copytree(folder / topic, broken / topic)
        damage(broken / topic, offsets)
        [report] = salvage([broken / topic], safe / topic, abort_open=True).partitions
        assert report.has_lost
        assert batches_in(safe / topic).keys() >= batches_in(folder / topic).keys() - offsets
        shutil.rmtree(folder / topic)
        shutil.copytree(safe / topic, folder / topic)
    # Both producers have a transaction without a marker: one was never there, and the other one was lost.
    assert [(each.producer_id, each.is_aborted) for each in report.open_transactions] == [(1, True), (2, True)]
    (folder / ".kafka_cleanshutdown").unlink()

    handover([folder])
    broker = new_broker(folder)
    broker.start()
    for topic in ("plain", "transactions"):
        for isolation, ours in (
            ("read_uncommitted", Isolation.LOG_END),
            ("read_committed", Isolation.READ_COMMITTED),
        ):
            with DataDirectory.open(folder, read_only=True) as watched:
                expected = read_by_octavo(watched.log(topic, 0), ours).records
            seen = read_by_client(broker, (topic, 0), isolation)
            assert [each.offset for each in seen] == [each.offset for each in expected], (topic, isolation)
            assert seen == expected
    broker.stop()
    assert not list(folder.glob("*-stray"))
    assert {topic: batches_in(folder / topic) for topic in ("plain-0", "transactions-0")} == {
        topic: batches_in(safe / topic) for topic in ("plain-0", "transactions-0")
    }
