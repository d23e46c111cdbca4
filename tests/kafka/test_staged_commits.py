"""Apache Kafka opens a directory before Octavo has finished a commit there: it starts, and takes records of its own.

Kafka takes no notice of the journal and of the staged files. Octavo then finds out, by offsets and checksums, which
batches are in the logs, and appends the rest behind what Kafka has taken.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from octavo.log import CommitIdentity, DataDirectory, StagedFile, StagedWriter, StagingArea
from octavo.log.metadata import handover
from tests.kafka.client import OLD_RESOURCES, KafkaProducer
from tests.kafka.conftest import NewBroker
from tests.kafka.consuming import read_by_client
from tests.kafka.serving import assert_at_home
from tests.selection import some
from tests.unit.log.forks import exit_code_of_fork
from tests.unit.log.logs import keys, make_batch
from tests.unit.log.staging.staged import KILLED, die_before

pytestmark = OLD_RESOURCES

TOPIC: Final = "t"
PARTITIONS: Final = 3
STEPS: Final = ("decision", "first append", "second append", "third append", "end")
ROWS: Final = range(1000, 1090)  # of the commit


def stage(area: StagingArea) -> StagedFile:
    """Thirty rows for each partition, in batches of ten."""
    writer = StagedWriter(area)
    for first in range(ROWS.start, ROWS.stop, 10):
        writer.add(TOPIC, first // 10 % PARTITIONS, make_batch(10, first=first))
    file = writer.finish()
    assert file is not None
    return file


def commit(folder: Path, area: StagingArea, file: StagedFile) -> bool:
    with DataDirectory.open(folder) as data:
        return data.commit_staged(area, [file]).is_repeated


def numbers(read: list[Any]) -> list[int]:
    return [int(record.key) for record in read]


@pytest.mark.parametrize("step", some(STEPS, 2))
def test_kafka_takes_records_before_a_commit_is_finished(tmp_path: Path, new_broker: NewBroker, step: str) -> None:
    folder = tmp_path / "data"
    places = [(TOPIC, number) for number in range(PARTITIONS)]
    with DataDirectory.open(folder) as data:
        data.create_topic(TOPIC, PARTITIONS, {"retention.ms": "-1"})
        for number in range(PARTITIONS):
            data.log(TOPIC, number).append(make_batch(5))
    area = StagingArea.of(folder, identity=CommitIdentity("query", 1))
    file = stage(area)
    steps_before = STEPS.index(step)

    def die() -> None:
        die_before(steps_before)
        commit(folder, area, file)

    assert exit_code_of_fork(die) == KILLED
    assert (folder / "octavo-commits").exists() == bool(steps_before)

    handover([folder])
    broker = new_broker(folder)
    broker.start()
    producer: Any = KafkaProducer(bootstrap_servers=broker.address)
    for topic, partition in places[:2]:  # the third is as it was
        for number in range(10):
            producer.send(topic, partition=partition, key=b"%d" % (partition * 100 + 10 + number), value=b"of Kafka")
    producer.flush()
    producer.close()
    before = {place: numbers(read_by_client(broker, place)) for place in places}
    broker.stop()
    assert not [path for path in folder.iterdir() if path.name.endswith("-stray")]

    assert commit(folder, area, file) == bool(steps_before)  # Octavo opens it, which finishes the commit
    with DataDirectory.open(folder, read_only=True) as watched:
        read = {place: keys(watched.log(*place)) for place in places}
    if step == "second append":  # which is enough to ask Kafka about once
        handover([folder])
        broker.start()
        assert read == {place: numbers(read_by_client(broker, place)) for place in places}
        broker.stop()
        assert_at_home(broker)
    for place, after in read.items():
        rows = [number for number in after if number in ROWS]
        assert rows == [number for number in ROWS if number // 10 % PARTITIONS == place[1]]
        assert after[: len(before[place])] == before[place]
        assert len(after) == len(set(after)) == (45 if place in places[:2] else 35)
