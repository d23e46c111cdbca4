"""What a reader sees of a partition, what is known of its producers, and whether Kafka finds fault with its files.

The same questions to Octavo and to Kafka, whose answers can be compared.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from octavo.log import Isolation, Log
from octavo.log.names import TopicPartition
from octavo.log.producer_state.states import ProducerEntry
from octavo.log.reading.readable_log import ReadableLog
from tests.kafka import releases
from tests.kafka.broker import Broker

# What kafka-dump-log says of files that are not as they should be. It takes -1 for the offset before any first one.
WRONG: Final = re.compile(
    r"ismatch|Exception|isvalid: false|not found|orrupt|[0-9] is followed by(?<!-1 is followed by)"
)


class Seen(NamedTuple):
    """A record, as any client can tell it."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Partition(NamedTuple):
    """What a reader is given of a partition."""

    end_offset: int  # behind the last that it may see
    records: list[Seen]

    @property
    def values(self) -> list[bytes | None]:
        return [record.value for record in self.records]


class ProducerState(NamedTuple):
    """What is known of a producer in a partition; -1 for what is not there."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    txn_first_offset: int


class Known(NamedTuple):
    """What one side knows of a partition."""

    committed: Partition
    uncommitted: Partition
    producers: list[ProducerState]

    @property
    def end_offset(self) -> int:
        return self.uncommitted.end_offset


def read_by_octavo(log: ReadableLog, isolation: Isolation = Isolation.READ_COMMITTED) -> Partition:
    """All that a reader of Octavo gives; its end is that of the isolation."""
    records = [
        Seen(
            record.offset,
            record.timestamp_ms,
            record.key,
            record.value,
            tuple((header.key, header.value or b"") for header in record.headers),
        )
        for record in log.reader(isolation=isolation).records()
    ]
    committed = isolation is Isolation.READ_COMMITTED
    return Partition(log.last_stable_offset if committed else log.high_watermark, records)


def producers_of(entries: Mapping[int, ProducerEntry]) -> list[ProducerState]:
    """What a log, or a snapshot, knows of producers, by their ids."""
    return [
        ProducerState(
            producer_id,
            entry.epoch,
            entry.last_sequence,
            entry.last_timestamp_ms,
            entry.coordinator_epoch,
            entry.txn_first_offset,
        )
        for producer_id, entry in sorted(entries.items())
    ]


def known_to_octavo(log: Log) -> Known:
    """The same of a log that is open."""
    return Known(
        read_by_octavo(log, Isolation.READ_COMMITTED),
        read_by_octavo(log, Isolation.HIGH_WATERMARK),
        producers_of(log.producers.entries),
    )


def last_batch_of(log: ReadableLog, producer_id: int) -> tuple[bytes, int]:
    """The last batch of data that a producer wrote, as it was sent, and where it is."""
    batches = log.reader(isolation=Isolation.LOG_END)
    offset = [batch.base_offset for batch in batches if batch.producer_id == producer_id and not batch.is_control][-1]
    return bytes(8) + log.read(offset, 1, isolation=Isolation.LOG_END).records[8:], offset


def dump_log(broker: Broker, files: Sequence[Path], *options: str) -> str:
    """All that `kafka-dump-log` says of these files."""
    told = subprocess.run(
        [
            *(releases.java(), "-XX:TieredStopAtLevel=1", "-cp", ":".join(map(str, broker.release.jars))),
            *("org.apache.kafka.tools.DumpLogSegments", *options, "--files", ",".join(map(str, files))),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    ).stdout
    assert told.count("Dumping ") == len(files), told[-2000:]
    return told


def check_files(broker: Broker, *folders: Path) -> None:
    """What `kafka-dump-log` finds in every file: nothing wrong."""
    logs = sorted(path for folder in folders for path in folder.rglob("*.log") if "__" not in path.parent.name)
    indexes = sorted(path for log in logs for path in (log.with_suffix(".index"), log.with_suffix(".timeindex")))
    assert logs
    for files, options in ((logs, ["--deep-iteration"]), (indexes, []), (indexes, ["--index-sanity-check"])):
        told = dump_log(broker, files, *options)
        wrong = [line for line in told.splitlines() if WRONG.search(line)]
        assert wrong == [], wrong[:5]
        if options == ["--index-sanity-check"]:
            assert told.count("passed sanity check") + told.count("is empty") == len(files), told[-2000:]
            assert told.count("is empty") < len(files) / 2


def assert_at_home(broker: Broker) -> None:
    """The broker has started without mending, rebuilding or putting aside anything."""
    assert broker.troubles == [], broker.troubles
    assert not [path for folder in broker.folders for path in folder.glob("*-stray")]


def assert_taken_over(broker: Broker, known: Mapping[TopicPartition, Known]) -> None:
    """The broker has started with the snapshots that it found, without reading any data for what they hold."""
    assert [line for line in broker.troubles if "RECOVERING" not in line] == []  # which says how the last one ended
    lines = [line for line in broker.lines_with("producer") if "__cluster_metadata" not in line]
    for place, each in known.items():
        snapshot = (
            f"partition={place}] Loading producer state from snapshot file 'SnapshotFile(offset={each.end_offset},"
        )
        assert any(snapshot in line for line in lines), lines
    assert not [line for line in lines if re.search("Wrote producer|Failed|ignor", line)]
