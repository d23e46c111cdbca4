"""The data directories of two brokers of one cluster, kept as archives. Each topic has a replica on both.

same      equal
behind    `three` was down while the last records were written
split     the same, and then `three` was elected without them (`unclean.leader.election.enable`) and wrote others
table     compacted by `two` alone
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Final

from tests.golden.directories import store, until
from tests.kafka.broker import Broker
from tests.kafka.client import KafkaAdminClient
from tests.kafka.java_clients import JavaClients
from tests.kafka.judge import Judge

_SMALL: Final = {"segment.index.bytes": "40", "index.interval.bytes": "1"}
_TOPICS: Final = {
    "same": _SMALL,
    "behind": _SMALL,
    "split": {**_SMALL, "unclean.leader.election.enable": "true"},
    "table": {**_SMALL, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"},
}
_SETTINGS: Final = {
    "min.insync.replicas": "1",
    "log.initial.task.delay.ms": "100",
    "log.index.size.max.bytes": "4000",
    "replica.high.watermark.checkpoint.interval.ms": "100",
}


def make_replicas(work: Path, judge: Judge) -> None:
    """Have a cluster of three nodes write the directories, and keep those of two of them."""
    with ExitStack() as brokers:
        one, two, three = (
            brokers.enter_context(Broker(work / name, settings={**_SETTINGS, "log.cleaner.backoff.ms": backoff}))
            for name, backoff in (("one", "15000"), ("two", "100"), ("three", "3600000"))
        )
        two.take_part_in(one, node_id=2)
        three.take_part_in(one, node_id=3)
        for broker in (one, two, three):
            broker.format()
            broker.start()
        admin = KafkaAdminClient(bootstrap_servers=one.address)
        admin.create_topics(
            {name: {"assignments": {0: [2, 3]}, "configs": configs} for name, configs in _TOPICS.items()},
            wait_for_metadata=True,
        )
        admin.close()
        _write(JavaClients(judge, one), "both", *_TOPICS)
        _write_table(JavaClients(judge, one), work / "two")
        three.stop()
        _write(JavaClients(judge, one), "alone", "behind", "split")
        two.stop()
        three.start()
        _write(JavaClients(judge, one), "instead", "split")
        three.stop()
        store("two", work / "two")
        store("three", work / "three")


def _write(java: JavaClients, what: str, *topics: str) -> None:
    with java.producer() as producer:
        for number in range(5):
            for topic in topics:
                producer.send_pairs(topic, 0, [(b"key", b"%s %d" % (what.encode(), number))])


def _write_table(java: JavaClients, directory: Path) -> None:
    with java.producer() as producer:
        for number in range(12):
            pairs = [(b"key %d" % (at % 4), b"%d" % number) for at in range(number, number + 3)]
            producer.send_pairs("table", 0, pairs)
    lines = directory / "cleaner-offset-checkpoint"
    until(lambda: lines.exists() and any(int(line.split()[2]) > 20 for line in lines.read_text().splitlines()[2:]))
