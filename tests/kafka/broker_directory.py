"""A data directory that a real broker has filled with every kind of file and of record that it writes.

plain-<codec>-0   records with and without keys, values and headers, and bytes that are no text, for each codec
stamped-0         timestamps of the broker
rolled-0          many segments: snapshots of producers, aborted transactions, one that is open
compacted-0       what compaction leaves
the internal topics: groups of both protocols, a share group, transactions; the metadata with snapshots

One is kept as an archive, `dumped` of `tests.golden.directories`; `make golden` has a broker write it again.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from tests.golden.directories import store
from tests.kafka.broker import Broker
from tests.kafka.java_clients import JavaClients
from tests.kafka.judge import Judge

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
_PATIENCE_S: Final = 60

SETTINGS: Final = {
    "metadata.log.max.record.bytes.between.snapshots": "2000",
    "log.cleaner.backoff.ms": "50",
    "log.segment.delete.delay.ms": "0",
}
_DENSE: Final = {"index.interval.bytes": "100", "file.delete.delay.ms": "0"}

_Pairs = list[tuple[bytes | None, bytes | None]]
_PLAIN: Final[_Pairs] = [(b"key %d" % number, b"value %d of the same topic" % number * 3) for number in range(40)]
_UNUSUAL: Final[_Pairs] = [
    (None, b"no key"),
    (b"no value", None),
    (None, None),
    (b"", b""),
    (b"\xff\xfe\xed\xa0\x80", b"\x00\x80 is no text"),
    ("schlüssel €😀".encode(), b"line\nbreak\r\ttab"),
    (b"\x00\x00\x00\x07", (7).to_bytes(8, "big")),
]
_HEADERS: Final = [("plain", b"value"), ("", b""), ("ß,]", None)]


def fill(judge: Judge, broker: Broker) -> None:
    """Write everything through Kafka's own clients; the broker runs, and keeps running."""
    java = JavaClients(judge, broker)
    _write_plain(java)
    _write_transactions(java)
    _write_groups(java)
    _write_compacted(java, broker.folders[0])


def _write_plain(java: JavaClients) -> None:
    for codec in CODECS:
        java.create_topic(f"plain-{codec}", 1, _DENSE)
        with java.producer(**{"compression.type": codec}) as producer:
            for start in range(0, len(_PLAIN), 8):
                producer.send_pairs(f"plain-{codec}", 0, _PLAIN[start : start + 8])
            producer.send_pairs(f"plain-{codec}", 0, _UNUSUAL, _HEADERS)
    java.create_topic("stamped", 1, _DENSE | {"message.timestamp.type": "LogAppendTime"})
    with java.producer(**{"compression.type": "lz4"}) as producer:
        producer.send_pairs("stamped", 0, _PLAIN[:20])


def _write_transactions(java: JavaClients) -> None:
    java.create_topic("rolled", 1, _DENSE | {"segment.ms": "1"})
    producers = [java.producer(**{"transactional.id": name}) for name in ("first", "second")]
    for producer in producers:
        producer.init()
    for number in range(4):
        for producer in producers:
            producer.begin()
            producer.send("rolled", 0, [b"transaction %d" % number * 3])
            producer.send_offsets("transactional", "rolled", 0, number)
            producer.abort() if number % 2 else producer.commit()
    first, second = producers
    first.begin()
    first.send("rolled", 0, [b"of a transaction that is open"])
    first.abandon()
    second.close()


def _write_groups(java: JavaClients) -> None:
    java.join("classic", "plain-none")
    java.join("static", "plain-lz4", **{"group.instance.id": "one"})
    java.join("modern", "plain-none", **{"group.protocol": "consumer"})
    java.share("shared", "plain-zstd", 1)
    java.delete_group("classic")


def _write_compacted(java: JavaClients, folder: Path) -> None:
    settings = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "1"}
    java.create_topic("compacted", 1, _DENSE | settings)
    with java.producer(**{"compression.type": "zstd"}) as producer:
        for number in range(12):
            value = None if number % 7 == 6 else b"round %d" % number
            producer.send_pairs("compacted", 0, [(b"%d" % (number % 5), value), (b"%d" % number, b"kept")])
    checkpoint = folder / "cleaner-offset-checkpoint"
    deadline = time.monotonic() + _PATIENCE_S
    while "compacted" not in (checkpoint.read_text() if checkpoint.exists() else ""):
        assert time.monotonic() < deadline, "the cleaner has not run"
        time.sleep(0.02)


def make_directory(work: Path, judge: Judge) -> None:
    """Have a broker write the directory, and keep it."""
    folder = work / "dumped"
    with Broker(folder, settings=SETTINGS) as broker:
        broker.format()
        broker.start()
        fill(judge, broker)
        broker.stop()
    store("dumped", folder)
