"""Send records to a data directory without a server: `Producer`, with Kafka's names and behaviour.

    producer = Producer(data, {"linger.ms": 20, "compression.type": "lz4"})
    future = producer.send("events", b"value", key=b"key")
    future.result()                     # RecordMetadata(topic, partition, offset, timestamp_ms)

Importing this package imports neither NumPy nor Numba. Appending the first record does.
"""

from __future__ import annotations

from octavo.log.producer.config import ProducerConfig
from octavo.log.producer.future import RecordMetadata, SendFuture
from octavo.log.producer.partitioner import Partitioner
from octavo.log.producer.producer import Producer

__all__ = [
    "Partitioner",
    "Producer",
    "ProducerConfig",
    "RecordMetadata",
    "SendFuture",
]
