"""Data sets whose batches were built and compressed by other clients than Kafka's own.

Compressed streams differ from client to client: lz4 frames may have sizes and checksums, zstd frames may have sizes,
snappy comes with and without framing, and levels differ. The records are those of the usual data sets. librdkafka's
batches are read from the log of an Apache Kafka broker, which stores them as they come. The files are written once.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from confluent_kafka import Producer
from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder

from benchmarks.clients import Row
from benchmarks.data import CODECS, DataSet
from benchmarks.log.sets import scratch
from benchmarks.measure import tell
from octavo.records import Codec, read_batches, to_arrow
from tests.kafka.broker import Broker
from tests.spark.broker import create

CLIENTS: Final = ("aiokafka", "kafka-python", "librdkafka")

_COMPRESSED: Final = tuple(codec for codec in CODECS if codec != "none")
_BATCH_COUNT: Final = 200
_ROOM: Final = 1 << 20
_BASE_OFFSET: Final = struct.Struct(">q")
_WAIT_S: Final = 60.0


@dataclass(frozen=True)
class ClientSet:
    """Batches of one client with one codec, or of `all` clients, including Kafka's own, with all codecs by turns."""

    client: str
    codec: str
    count: int

    @property
    def shape(self) -> str:
        """The properties that distinguish this data set from others, for the name of a result."""
        return "all clients and codecs by turns" if self.client == "all" else f"{self.codec} as {self.client} wrote it"

    @property
    def path(self) -> Path:
        """The path of the file. `prepare_clients` writes it."""
        return DataSet().path.with_name(f"{self.client}-{self.codec}-{self.count}.bin")

    def read(self) -> bytes:
        """Read the whole file."""
        return self.path.read_bytes()


def client_sets(scale: int) -> list[ClientSet]:
    """Return a data set for each client and codec."""
    return [ClientSet(client, codec, 200_000 // scale) for client in CLIENTS for codec in _COMPRESSED]


def mixed_set(scale: int) -> ClientSet:
    """Return the data set in which the client and the codec change from batch to batch."""
    return ClientSet("all", "mixed", 200_000 // scale)


def prepare_clients(scale: int) -> None:
    """Write the files of the data sets that do not exist yet. Needs the usual data sets."""
    missing = [data_set for data_set in client_sets(scale) if not data_set.path.exists()]
    if missing:
        rows = _rows(scale)
        for data_set in missing:
            if data_set.client != "librdkafka":
                tell(f"{data_set.client} writes {data_set.count:,} records: {data_set.codec}")
                _write(data_set.path, _built(data_set, rows))
        of_librdkafka = [data_set for data_set in missing if data_set.client == "librdkafka"]
        if of_librdkafka:
            _send(of_librdkafka, rows)
    mixed = mixed_set(scale)
    if not mixed.path.exists():
        _write(mixed.path, _by_turns(scale, mixed.count // _BATCH_COUNT))


def _rows(scale: int) -> list[Row]:
    rows: list[Row] = []
    data = DataSet(count=1_000_000 // scale).read()
    for chunk in to_arrow(data, columns=("timestampMs", "key", "value"), offsets=(0, 200_000 // scale)):
        rows += map(Row, *(column.to_pylist() for column in chunk.columns))
    return rows


def _built(data_set: ClientSet, rows: Sequence[Row]) -> Iterator[bytes]:
    make: Callable[..., AiokafkaBuilder | KafkaPythonBuilder] = AiokafkaBuilder
    if data_set.client == "kafka-python":
        make = KafkaPythonBuilder
    codec = int(Codec[data_set.codec.upper()])
    for first in range(0, len(rows), _BATCH_COUNT):
        builder = make(2, codec, 0, -1, -1, -1, _ROOM)
        for delta, (timestamp_ms, key, value) in enumerate(rows[first : first + _BATCH_COUNT]):
            builder.append(delta, timestamp_ms, key, value, [])
        yield bytes(builder.build())


def _send(data_sets: Sequence[ClientSet], rows: Sequence[Row]) -> None:
    """Send the rows with librdkafka, once for each data set, and take the batches from the broker's segments."""
    with scratch() as folder, Broker(folder / "kafka") as broker:
        broker.format()
        broker.start()
        for data_set in data_sets:
            tell(f"librdkafka writes {data_set.count:,} records: {data_set.codec}")
            create(broker, data_set.codec, 1, retention_ms="-1")
            _send_all(broker.address, data_set.codec, rows)
        broker.stop()
        for data_set in data_sets:
            (segment,) = (folder / "kafka" / f"{data_set.codec}-0").glob("*.log")
            _write(data_set.path, _batches(segment.read_bytes()))


def _send_all(address: str, codec: str, rows: Sequence[Row]) -> None:
    """Send the rows to the topic that is named like the codec."""
    producer = Producer(
        {
            "bootstrap.servers": address,
            "compression.type": codec,
            "batch.num.messages": _BATCH_COUNT,
            "linger.ms": 1000,
            "queue.buffering.max.messages": len(rows),
        }
    )
    for timestamp_ms, key, value in rows:
        producer.produce(codec, value, key, timestamp=timestamp_ms)
    assert producer.flush(_WAIT_S) == 0


def _by_turns(scale: int, count: int) -> Iterator[bytes]:
    of_kafka = [DataSet(codec=codec, count=200_000 // scale) for codec in _COMPRESSED]
    uncompressed = DataSet(count=1_000_000 // scale)
    files = [data_set.path for data_set in of_kafka] + [data_set.path for data_set in client_sets(scale)]
    turns = [_batches(path.read_bytes()) for path in (uncompressed.path, *files)]
    return islice((batch for batches in zip(*turns, strict=False) for batch in batches), count)


def _batches(data: bytes) -> Iterator[bytes]:
    return (data[batch.position : batch.position + batch.size] for batch in read_batches(data, verify=False))


def _write(path: Path, batches: Iterator[bytes]) -> None:
    """Write the batches with offsets that follow one another; a base offset is not part of the checksum."""
    unfinished = path.with_suffix(".part")
    offset = 0
    with unfinished.open("wb") as file:
        for batch in batches:
            file.write(_BASE_OFFSET.pack(offset) + batch[_BASE_OFFSET.size :])
            (header,) = read_batches(batch, verify=False)
            assert header.count is not None
            offset += header.count
    unfinished.rename(path)
