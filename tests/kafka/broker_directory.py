"""A data directory that a real broker has filled with every kind of file and of record that it writes.

plain-<codec>    records with keys, headers, nulls and bytes that are no text, one topic for each codec
stamped          timestamps of the broker
rolled           many segments, with producers' snapshots and aborted transactions in their indexes
compacted        a compacted topic
the internal topics: groups of both protocols, a share group, transactions; metadata with snapshots
"""

from __future__ import annotations

import time
from base64 import b64encode
from pathlib import Path
from typing import Any, Final

from tests.kafka.broker import Broker
from tests.kafka.judge import Judge

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
_PATIENCE_S: Final = 60

# Files stay as small as they can be, and nothing has to be waited for.
SETTINGS: Final = {
    "metadata.log.max.record.bytes.between.snapshots": "2000",
    "log.cleaner.backoff.ms": "50",
    "group.coordinator.append.linger.ms": "0",
    "share.coordinator.append.linger.ms": "0",
    "log.index.size.max.bytes": "8192",
}
_DENSE: Final = {"index.interval.bytes": "100"}


class Writer:
    """Writes through Kafka's own clients, which the judge runs."""

    def __init__(self, judge: Judge, broker: Broker) -> None:
        self._judge = judge
        self._servers = {"bootstrap.servers": broker.address}

    def create(self, topic: str, partitions: int = 1, **settings: str) -> None:
        """Create a topic; in names of settings `_` stands for a dot."""
        named = {name.replace("_", "."): value for name, value in settings.items()}
        self._judge.ask(
            "admin.create", config=self._servers, topic=topic, partitions=partitions, settings=_DENSE | named
        )

    def open(self, client: str, **config: str) -> None:
        """Open a producer."""
        named = {name.replace("_", "."): value for name, value in config.items()}
        self._judge.ask("producer.open", client=client, config=self._servers | {"linger.ms": "5"} | named)

    def send(self, client: str, topic: str, records: list[tuple[bytes | None, bytes | None]]) -> None:
        """Send records, which are in the log when this returns."""
        encoded = [[None if data is None else b64encode(data).decode() for data in record] for record in records]
        self._judge.ask("producer.send", client=client, topic=topic, partition=0, records=encoded)

    def tell(self, client: str, what: str, **more: Any) -> None:
        """Tell a producer to do something: init, begin, commit, abort, offsets."""
        self._judge.ask(f"producer.{what}", client=client, **more)

    def close(self, client: str) -> None:
        """Close a producer."""
        self._judge.ask("producer.close", client=client, wait=True)

    def join(self, topic: str, **config: str) -> None:
        """Read a topic to its end as a group, and commit."""
        named = {name.replace("_", "."): value for name, value in config.items()}
        self._judge.ask("consumer.join", topic=topic, config=self._servers | {"auto.offset.reset": "earliest"} | named)

    def share(self, topic: str, group: str, count: int) -> None:
        """Read records as a share group."""
        config = self._servers | {"group.id": group}
        self._judge.ask("consumer.share", topic=topic, count=count, config=config)


def fill(judge: Judge, broker: Broker, folder: Path) -> None:
    """Write everything; the broker runs, and keeps running."""
    writer = Writer(judge, broker)
    _write_plain(writer)
    _write_transactions(writer)
    _write_groups(writer)
    _write_compacted(writer, folder)


def _write_plain(writer: Writer) -> None:
    records: list[tuple[bytes | None, bytes | None]] = [
        (b"key %d" % number, b"value %d of the same topic" % number * 3) for number in range(40)
    ]
    records += [
        (None, b"no key"),
        (b"no value", None),
        (None, None),
        (b"", b""),
        (b"\xff\xfe\xed\xa0\x80", b"\x00\x80"),
    ]
    records += [("schlüssel €😀".encode(), b"line\nbreak\r\ttab"), (b"\x00\x00\x00\x07", (7).to_bytes(8, "big"))]
    for codec in CODECS:
        topic = f"plain-{codec}"
        writer.create(topic)
        writer.open(topic, compression_type=codec)
        for start in range(0, len(records), 16):
            writer.send(topic, topic, records[start : start + 16])
        writer.close(topic)
    writer.create("stamped", message_timestamp_type="LogAppendTime")
    writer.open("stamped", compression_type="lz4")
    writer.send("stamped", "stamped", records[:20])
    writer.close("stamped")


def _write_transactions(writer: Writer) -> None:
    writer.create("rolled", segment_ms="1")
    for name in ("first", "second"):
        writer.open(name, transactional_id=name)
        writer.tell(name, "init")
    for number in range(6):
        for name in ("first", "second"):
            writer.tell(name, "begin")
            writer.send(name, "rolled", [(b"%d" % number, name.encode() * 5)])
            offsets = [{"topic": "rolled", "partition": 0, "offset": number}]
            writer.tell(name, "offsets", group="transactional", offsets=offsets)
            writer.tell(name, "abort" if (number + len(name)) % 3 == 0 else "commit")
    writer.tell("first", "begin")
    writer.send("first", "rolled", [(b"open", b"while everything else goes on")])
    writer.close("second")


def _write_groups(writer: Writer) -> None:
    writer.join("plain-none", group_id="classic")
    writer.join("plain-gzip", group_id="classic")
    writer.join("plain-none", group_id="modern", group_protocol="consumer")
    writer.join("plain-lz4", group_id="static", group_instance_id="one")
    writer.share("plain-zstd", "shared", 1)


def _write_compacted(writer: Writer, folder: Path) -> None:
    writer.create("compacted", cleanup_policy="compact", min_cleanable_dirty_ratio="0.01", segment_ms="1")
    writer.open("compacted", compression_type="zstd")
    for number in range(30):
        value = None if number % 7 == 6 else b"round %d" % number
        writer.send("compacted", "compacted", [(b"%d" % (number % 5), value), (b"%d" % number, b"kept")])
    writer.close("compacted")
    checkpoint = folder / "cleaner-offset-checkpoint"
    deadline = time.monotonic() + _PATIENCE_S
    while "compacted" not in (checkpoint.read_text() if checkpoint.exists() else ""):
        assert time.monotonic() < deadline, "the cleaner has not run"
        time.sleep(0.02)
