"""A data directory that a broker of Apache Kafka wrote, kept as an archive: small, but with something of everything.

    deals-0     transactions of two producers, committed and aborted, over many segments; one is left open
    table-0     compacted, with transactions in it
    events-0    its first records are deleted (`log-start-offset-checkpoint`); several leader epochs
    events-1    empty
    gone-0      its topic was deleted, so that the folder is renamed
    __consumer_offsets-0, __transaction_state-0, __cluster_metadata-0 with snapshots

`closed` was shut down cleanly. `crashed` is the same directory as it was just before the broker was killed.
"""

from __future__ import annotations

import io
import shutil
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

from tests.kafka.broker import Broker
from tests.kafka.client import KafkaAdminClient
from tests.kafka.client import TopicPartition as ClientPartition
from tests.kafka.java_clients import JavaClients, JavaProducer
from tests.kafka.judge import Judge

Name = Literal["closed", "crashed", "two", "three", "dumped"]  # the last is written by tests.kafka.broker_directory
FOLDER: Final = Path(__file__).parent / "directories"

_WAIT_S: Final = 60
_SETTINGS: Final = {
    "log.index.size.max.bytes": "160",  # so that segments are full soon
    "log.index.interval.bytes": "1",
    "log.cleaner.backoff.ms": "100",
    "log.initial.task.delay.ms": "100",
    "metadata.log.max.record.bytes.between.snapshots": "4000",
    "replica.high.watermark.checkpoint.interval.ms": "100",
}
_SMALL: Final = {"segment.index.bytes": "40", "index.interval.bytes": "1"}
_COMPACTED: Final = {**_SMALL, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}


def unpack(name: Name, target: Path, partition: str | None = None) -> Path:
    """Return a fresh copy of a directory below `target`.

    partition: leave out the segments of all other partitions, which a test does not look at
    """
    wanted = {partition, "__cluster_metadata-0"}
    with tarfile.open(FOLDER / f"{name}.tar.xz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # which the first patches of 3.11 lack
        for member in archive:
            folder, _, file = member.name.rpartition("/")
            if partition is None or member.isdir() or not folder or folder in wanted or file == "partition.metadata":
                archive.extract(member, target / name)
    return target / name


def make_directories(work: Path, judge: Judge) -> None:
    """Have a broker write the directories, and keep them."""
    closed, crashed = work / "closed", work / "crashed"
    with Broker(closed, settings=_SETTINGS) as broker:
        broker.format()
        broker.start()
        java = JavaClients(judge, broker)
        java.create_topic("deals", 1, _SMALL)
        java.create_topic("table", 1, _COMPACTED)
        java.create_topic("events", 2, _SMALL)
        java.create_topic("gone", 1, {})
        _write_deals(java)
        _write_table(java, closed)
        _write_events(java, broker)
        broker.stop()
        broker.start()  # in another leader epoch
        _write_again(java)
        until(lambda: len(list((closed / "__cluster_metadata-0").glob("*.checkpoint"))) > 1)
        broker.stop()
        store("closed", closed)
        broker.start()
        _write_again(java)
        broker.kill()
        shutil.copytree(closed, crashed)
        store("crashed", crashed)


def _write_deals(java: JavaClients) -> None:
    """Write transactions that overlap, and leave one open."""
    first, second = (_transactional(java, name) for name in ("first", "second"))
    with java.producer() as plain:
        for number in range(6):
            first.begin()
            first.send("deals", 0, [b"first %d" % number] * 3)
            second.begin()
            second.send("deals", 0, [b"second %d" % number] * 2)
            plain.send("deals", 0, [b"plain %d" % number])
            (first.abort if number % 3 else first.commit)()
            (second.commit if number % 2 else second.abort)()
    first.close()
    second.begin()
    second.send_offsets("traders", "deals", 0, 7)
    second.send("deals", 0, [b"second"])
    second.commit()
    second.begin()
    second.send("deals", 0, [b"left open"])
    second.abandon()


def _write_table(java: JavaClients, directory: Path) -> None:
    """Write keys again and again, some in transactions, until the broker has compacted them."""
    with java.producer() as plain, _transactional(java, "clerk") as clerk:
        for number in range(8):
            plain.send_pairs("table", 0, [(b"key %d" % (number % 3), b"plain %d" % number)])
            clerk.begin()
            clerk.send_pairs("table", 0, [(b"key %d" % at, b"clerk %d" % number) for at in range(3)])
            (clerk.abort if number % 2 else clerk.commit)()
        for number in range(3):
            plain.send_pairs("table", 0, [(b"other %d" % number, None)])
    lines = directory / "cleaner-offset-checkpoint"
    until(lambda: lines.exists() and any(int(line.split()[2]) > 20 for line in lines.read_text().splitlines()[2:]))


def _write_events(java: JavaClients, broker: Broker) -> None:
    with java.producer() as plain:
        for number in range(20):
            plain.send("events", 0, [b"event %d" % number])
        plain.send("gone", 0, [b"gone"])
    admin = KafkaAdminClient(bootstrap_servers=broker.address)
    admin.delete_records({ClientPartition("events", 0): 7})
    admin.delete_topics(["gone"])
    admin.close()
    until(lambda: bool(list(broker.folders[0].glob("gone-0.*-delete"))))


def _write_again(java: JavaClients) -> None:
    with java.producer() as plain:
        for topic in ("events", "deals"):
            plain.send(topic, 0, [b"one more"])


def _transactional(java: JavaClients, name: str) -> JavaProducer:
    producer = java.producer(**{"transactional.id": name})
    producer.init()
    return producer


def until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + _WAIT_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)  # until it is asked again


def store(name: Name, folder: Path) -> None:
    """Keep a directory as an archive."""
    FOLDER.mkdir(exist_ok=True)
    with tarfile.open(FOLDER / f"{name}.tar.xz", "w:xz") as archive:
        for path in sorted(folder.rglob("*")):
            info = tarfile.TarInfo(str(path.relative_to(folder)))
            if path.is_dir():
                info.type, info.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(info)
            else:
                data = path.read_bytes()
                info.size, info.mode = len(data), 0o644
                archive.addfile(info, io.BytesIO(data))
