"""Conversations of real clients with the broker, for the fuzzer: `python -m tests.server.recording` records them again.

A conversation is what one client sent on one connection: a list of frames, without their sizes. They are kept in
`tests/golden/conversations.xz`, as JSON.
"""

from __future__ import annotations

import asyncio
import base64
import json
import lzma
import socket
import subprocess
import threading
import warnings
from pathlib import Path
from typing import Any, Final, NamedTuple

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic, OffsetSpec, ResourceType

from octavo.server.serving import serve
from tests.kafka import releases

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # kafka-python reads its schemas in an old way
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
    from kafka import TopicPartition as PythonPartition
    from kafka.admin import NewTopic as PythonTopic

FILE: Final = Path(__file__).resolve().parents[1] / "golden" / "conversations.xz"
_PATIENCE_S: Final = 60
_PRODUCERS: Final[dict[str, dict[str, Any]]] = {
    "rd-plain": {"acks": 1},
    "rd-lz4": {"enable.idempotence": True, "compression.type": "lz4"},
    "rd-zstd": {"acks": 0, "compression.type": "zstd"},
}
_RECORDS: Final = [(b"key", b"value"), (None, b""), (b"", None)] + [(b"%d" % each, b"x" * each) for each in range(40)]


class Conversation(NamedTuple):
    """The frames that a client sent on one connection."""

    client: str
    frames: list[bytes]


def load() -> list[Conversation]:
    """All recorded conversations."""
    told = json.loads(lzma.decompress(FILE.read_bytes()))
    return [Conversation(each["client"], [base64.b64decode(frame) for frame in each["frames"]]) for each in told]


class Recorder:
    """A proxy that keeps what clients send."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.client = ""
        self._sent: list[tuple[str, bytearray]] = []

    def start(self, target: str) -> None:
        """Pass everything on to `target`."""
        threading.Thread(target=self._accept, args=(target,), daemon=True).start()

    def _accept(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        while True:
            client, _ = self.listener.accept()
            broker = socket.create_connection((host, int(port)))
            kept = bytearray()
            self._sent.append((self.client, kept))
            threading.Thread(target=self._pass_on, args=(client, broker, kept), daemon=True).start()
            threading.Thread(target=self._pass_on, args=(broker, client, None), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, kept: bytearray | None) -> None:
        try:
            while data := source.recv(1 << 16):
                if kept is not None:
                    kept += data
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            target.close()

    def conversations(self) -> list[Conversation]:
        """What was recorded, each conversation once."""
        found = {}
        for client, sent in self._sent:
            frames, position = [], 0
            while position < len(sent):
                size = int.from_bytes(sent[position : position + 4], "big")
                frames.append(bytes(sent[position + 4 : position + 4 + size]))
                position += 4 + size
            if frames:
                found[client, tuple(frames)] = Conversation(client, frames)
        return list(found.values())


def _librdkafka(address: str) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    topics = list(_PRODUCERS)
    for future in admin.create_topics(
        [NewTopic(topic, 2, config={"segment.bytes": "1048576"}) for topic in topics]
    ).values():
        future.result(_PATIENCE_S)
    for topic, options in _PRODUCERS.items():
        producer = Producer({"bootstrap.servers": address, "linger.ms": 5, **options})
        for key, value in _RECORDS:
            producer.produce(topic, value, key, headers={"h": b"1"}, partition=0)
        assert producer.flush(_PATIENCE_S) == 0
        consumer = Consumer({"bootstrap.servers": address, "group.id": "none", "enable.auto.commit": False})
        consumer.get_watermark_offsets(TopicPartition(topic, 0), _PATIENCE_S)
        consumer.assign([TopicPartition(topic, 0, 0), TopicPartition(topic, 1, 0)])
        consumer.consume(len(_RECORDS), _PATIENCE_S)
        consumer.close()
    resource = ConfigResource(ResourceType.TOPIC, topics[0])
    admin.list_topics(timeout=_PATIENCE_S)
    admin.describe_cluster().result(_PATIENCE_S)
    admin.describe_configs([resource])[resource].result(_PATIENCE_S)
    partition = TopicPartition(topics[0], 0, 5)
    admin.list_offsets({partition: OffsetSpec.max_timestamp()})[partition].result(_PATIENCE_S)
    admin.create_partitions([NewPartitions(topics[0], 3)])[topics[0]].result(_PATIENCE_S)
    admin.delete_records([partition])[partition].result(_PATIENCE_S)
    for future in admin.delete_topics(topics).values():
        future.result(_PATIENCE_S)


def _kafka_python(address: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=address)
    admin.create_topics([PythonTopic("py", 2, 1)])
    admin.describe_topics(["py"])
    producer = KafkaProducer(bootstrap_servers=address, acks="all", compression_type="gzip")
    for future in [producer.send("py", value, key, partition=0) for key, value in _RECORDS]:
        future.get(_PATIENCE_S)
    producer.close()
    partition = PythonPartition("py", 0)
    consumer = KafkaConsumer(bootstrap_servers=address, consumer_timeout_ms=1000)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    consumer.offsets_for_times({partition: 1})
    assert len([each for each, _ in zip(consumer, _RECORDS, strict=False)]) == len(_RECORDS)
    consumer.close()
    admin.delete_topics(["py"])
    admin.close()


def _aiokafka(address: str) -> None:
    async def run() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=address, enable_idempotence=True)
        await producer.start()
        await asyncio.gather(*[await producer.send("aio", value, key, partition=0) for key, value in _RECORDS])
        await producer.stop()
        consumer = AIOKafkaConsumer(bootstrap_servers=address)
        await consumer.start()
        consumer.assign([AioPartition("aio", 0)])
        await consumer.seek_to_beginning()
        for _ in _RECORDS:
            await consumer.getone()
        await consumer.stop()

    asyncio.run(asyncio.wait_for(run(), _PATIENCE_S))


def _java(address: str) -> None:
    jars = ":".join(map(str, releases.find("broker").jars))
    command = [releases.java(), "-Xmx128m", "-cp", jars]
    tools = [
        ["TopicCommand", "--create", "--topic", "java", "--partitions", "2"],
        ["TopicCommand", "--describe"],
        ["ProducerPerformance", "--topic", "java", "--num-records", "40", "--record-size", "50", "--throughput", "-1"],
        ["GetOffsetShell", "--topic", "java"],
        [
            "consumer.ConsoleConsumer",
            "--topic",
            "java",
            "--partition",
            "0",
            "--offset",
            "earliest",
            "--timeout-ms",
            "1500",
        ],
        ["LogDirsCommand", "--describe"],
        ["TopicCommand", "--delete", "--topic", "java"],
    ]
    for name, *arguments in tools:
        called = [*command, f"org.apache.kafka.tools.{name}", *arguments, "--bootstrap-server", address]
        done = subprocess.run(called, capture_output=True, timeout=4 * _PATIENCE_S, text=True, check=False)
        assert done.returncode == 0, f"{name}: {done.stderr}"


def record() -> list[Conversation]:
    """Have all clients talk with a broker, and keep what they sent."""
    recorder = Recorder()
    advertised = {"advertised.listeners": f"PLAINTEXT://{recorder.address}", "listeners": "PLAINTEXT://127.0.0.1:0"}
    with serve(config=advertised) as server:
        (listener,) = server._listeners
        recorder.start(f"127.0.0.1:{listener.socket.getsockname()[1]}")
        for run in (_librdkafka, _kafka_python, _aiokafka, _java):
            recorder.client = run.__name__.removeprefix("_")
            run(recorder.address)
    return recorder.conversations()


def store(conversations: list[Conversation]) -> None:
    """Write the file."""
    told = [
        {"client": each.client, "frames": [base64.b64encode(frame).decode() for frame in each.frames]}
        for each in conversations
    ]
    FILE.write_bytes(lzma.compress(json.dumps(told).encode()))


if __name__ == "__main__":
    store(record())
