"""A broker of Apache Kafka whose directory is read: its topics, and what has to be waited for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from octavo.log import DataDirectory
from tests.kafka.broker import Broker
from tests.kafka.client import (
    ConfigResource,
    ConfigResourceType,
    KafkaAdminClient,
    KafkaProducer,
    NewTopic,
    TopicPartition,
)

TIME_MS: Final = 1_700_000_000_000
CUT: Final = 25  # where the topic `cut` begins
SETTINGS: Final = {
    "replica.high.watermark.checkpoint.interval.ms": "200",
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.initial.task.delay.ms": "100",
    "log.retention.check.interval.ms": "200",
    "log.segment.delete.delay.ms": "0",
    "log.flush.start.offset.checkpoint.interval.ms": "100",
    "auto.create.topics.enable": "false",
}
_TIMEOUT_S: Final = 60


@dataclass(frozen=True)
class Topics:
    """A broker that runs, and its directory."""

    broker: Broker
    open: list[KafkaProducer] = field(default_factory=list)

    def close(self) -> None:
        """Close the clients."""
        for producer in self.open:
            producer.close(timeout=5)

    @property
    def folder(self) -> Path:
        """What we read."""
        return self.broker.folders[0]

    @property
    def address(self) -> str:
        """What the connector reads from."""
        return self.broker.address

    def create(self, name: str, partitions: int = 1, **config: str) -> None:
        """A topic; names of settings with `_` for a dot."""
        create(self.broker, name, partitions, **config)

    def add_partitions(self, name: str, count: int) -> None:
        """Let a topic have so many partitions."""
        with closing(KafkaAdminClient(bootstrap_servers=self.address)) as admin:
            admin.create_partitions({name: count})

    def keep(self, name: str, size: int) -> int:
        """Let retention keep about that many bytes of a topic of one partition; the log's start, once it has."""
        resource = ConfigResource(ConfigResourceType.TOPIC, name, {"retention.bytes": str(size)})
        with closing(KafkaAdminClient(bootstrap_servers=self.address)) as admin:
            admin.alter_configs([resource])
        folder = self.folder / f"{name}-0"
        wait(lambda: len(list(folder.glob("*.log"))) == 1, "retention has not been there")
        (segment,) = folder.glob("*.log")
        return int(segment.stem)

    def producer(self, **settings: Any) -> KafkaProducer:
        """A client that writes."""
        return KafkaProducer(bootstrap_servers=self.address, max_block_ms=30_000, **settings)

    def wait_for_checkpoint(self) -> None:
        """Returns when the directory has recorded, for every partition, that all of it may be read."""
        wait_for_checkpoint(self.folder)


@contextmanager
def started(folder: Path) -> Iterator[Broker]:
    """A new broker."""
    with Broker(folder, settings=SETTINGS) as broker:
        broker.format()
        broker.start()
        yield broker


def create(broker: Broker, name: str, partitions: int = 1, **config: str) -> None:
    """A topic; names of settings with `_` for a dot."""
    with closing(KafkaAdminClient(bootstrap_servers=broker.address)) as admin:
        settings = {setting.replace("_", "."): value for setting, value in config.items()}
        admin.create_topics([NewTopic(name, partitions, 1, topic_configs=settings)])


def wait(condition: Callable[[], bool], what: str) -> None:
    """Returns when that is so."""
    deadline = time.monotonic() + _TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, f"{what} after {_TIMEOUT_S} s"
        time.sleep(0.05)


def wait_for_checkpoint(folder: Path) -> None:
    """Returns when the directory has recorded, for every partition, that all of it may be read."""

    checkpoint = folder / "replication-offset-checkpoint"

    def caught_up() -> bool:
        if not checkpoint.exists():
            return False
        recorded = checkpoint.read_text().splitlines()[2:]
        marks = {tuple(line.split()[:2]): int(line.split()[2]) for line in recorded}
        with DataDirectory.open(folder, read_only=True) as data:
            return all(
                marks.get((topic, str(partition))) == data.log(topic, partition).end_offset
                for topic, partition in data.partitions()
            )

    wait(caught_up, "the checkpoint is still behind")


def fill(broker: Broker) -> Topics:
    """Topics with everything that a record can have."""
    topics = Topics(broker)
    topics.create("plain", 3, segment_bytes=str(1 << 20), segment_index_bytes="1000", retention_ms="-1")
    topics.create("codecs", 1, retention_ms="-1")
    topics.create("transactions", 2)
    topics.create("compacted", 1, cleanup_policy="compact", segment_ms="100", delete_retention_ms="86400000")
    topics.create("cut", 1, message_timestamp_type="LogAppendTime", retention_ms="-1")
    _fill_plain(topics)
    _fill_codecs(topics)
    _fill_transactions(topics)
    _fill_compacted(topics)
    _fill_cut(topics)
    topics.wait_for_checkpoint()
    return topics


def _fill_plain(topics: Topics) -> None:
    producer = topics.producer(batch_size=2000)
    for number in range(3000):
        producer.send(
            "plain",
            key=None if number % 5 == 0 else b"key %d" % number,
            value=None if number % 7 == 1 and number % 5 else b"%d" % number * (number % 40),
            headers=[("a", b"%d" % number), ("ü", b""), ("a", b"\xff")] if number % 3 == 0 else None,
            timestamp_ms=TIME_MS + number * 10,
            partition=number % 3,
        )
    producer.flush()
    producer.close()


def _fill_codecs(topics: Topics) -> None:
    for codec in (None, "gzip", "snappy", "lz4", "zstd"):
        producer = topics.producer(compression_type=codec, batch_size=4000)
        for number in range(100):
            producer.send("codecs", key=b"%d" % number, value=b"value" * 20, timestamp_ms=TIME_MS + number)
        producer.flush()
        producer.close()


def _fill_transactions(topics: Topics) -> None:
    """Committed and aborted ones by turns, and one that stays open."""
    producer = topics.producer(transactional_id="turns")
    producer.init_transactions()
    for turn in range(8):
        producer.begin_transaction()
        for number in range(20):
            value = b"%s %d %d" % (b"aborted" if turn % 2 else b"committed", turn, number)
            producer.send("transactions", value=value, partition=number % 2)
        producer.flush()
        if turn % 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    producer.close()
    plain = topics.producer()
    plain.send("transactions", value=b"between", partition=0).get(30)
    hanging = topics.producer(transactional_id="hanging", transaction_timeout_ms=600_000)
    hanging.init_transactions()
    hanging.begin_transaction()
    hanging.send("transactions", value=b"not decided", partition=0)
    hanging.flush()
    plain.send("transactions", value=b"behind", partition=0).get(30)
    plain.close()
    topics.open.append(hanging)  # to be closed when all is read: that ends the transaction


def _fill_compacted(topics: Topics) -> None:
    producer = topics.producer()
    for turn in range(6):
        for number in range(50):
            value = None if (number + turn) % 6 == 0 else b"%d %d" % (turn, number)
            producer.send("compacted", key=b"%d" % (number % 17), value=value)
        producer.flush()
        time.sleep(0.15)  # so that the next append begins a new segment
    producer.send("compacted", key=b"last", value=b"").get(30)
    producer.close()
    folder = topics.folder / "compacted-0"

    def cleaned() -> bool:
        line = "compacted 0 "
        recorded = (topics.folder / "cleaner-offset-checkpoint").read_text()
        return line in recorded and not list(folder.glob("*.deleted")) and not list(folder.glob("*.swap"))

    wait(cleaned, "the cleaner has not been there")


def _fill_cut(topics: Topics) -> None:
    """What comes before an offset is deleted; times are the broker's."""
    producer = topics.producer(batch_size=200)
    for number in range(100):
        producer.send("cut", value=b"%d" % number, timestamp_ms=TIME_MS)
    producer.flush()
    producer.close()
    with closing(KafkaAdminClient(bootstrap_servers=topics.address)) as admin:
        admin.delete_records({TopicPartition("cut", 0): CUT})
    checkpoint = topics.folder / "log-start-offset-checkpoint"
    wait(lambda: f"cut 0 {CUT}" in checkpoint.read_text(), "the log's start is not recorded")
