"""A broker that cannot write goes on reading, says so once, and takes records again as soon as it can."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from octavo.broker.wire.api_keys import DELETE_RECORDS, PRODUCE
from octavo.errors import ErrorCode
from tests.faults.broker_process import PATIENCE_S, BrokerProcess
from tests.faults.load import BROKER, Load, LoadedTopic, create
from tests.faults.readers import read_all
from tests.faults.test_kill import verify
from tests.faults.values import encode
from tests.history import Client, History, Promises, Send, check
from tests.server.conversation import Conversation
from tests.server.questions import batch

EVENTS = LoadedTopic("events", 1)


class Writer:
    """An idempotent producer, which writes down what it does."""

    def __init__(self, address: str, history: History) -> None:
        self._client: Client = history.client(Promises.IDEMPOTENT)
        quick = {"retry.backoff.ms": 5, "retry.backoff.max.ms": 50}
        self._producer = Producer({"bootstrap.servers": address, "enable.idempotence": True, **quick})

    def send(self, *values: int) -> None:
        """Begin to send values."""
        for value in values:
            send = self._client.send(("events", 0), value)

            def delivered(error: KafkaError | None, message: Message, send: Send = send) -> None:
                assert error is None
                send.succeed(message.offset())

            self._producer.produce("events", encode(value), partition=0, on_delivery=delivered)
        self._producer.poll(0)

    def flush(self) -> None:
        """Wait for all acknowledgements."""
        assert self._producer.flush(PATIENCE_S) == 0


def produce_once(address: str) -> int:
    """Send one batch without any client in between. Returns the error code."""
    topic = {"name": "events", "partition_data": [{"index": 0, "records": batch(b"refused")}]}
    content = {"transactional_id": None, "acks": 1, "timeout_ms": 1000, "topic_data": [topic]}
    with Conversation(address) as conversation:
        (answered,) = conversation.raw_answer(PRODUCE, 9, content).responses
    return int(answered.partition_responses[0].error_code)


def delete_records_once(address: str) -> int:
    topics = [{"name": "events", "partitions": [{"partition_index": 0, "offset": 5}]}]
    with Conversation(address) as conversation:
        answered = conversation.raw_answer(DELETE_RECORDS, 2, {"topics": topics, "timeout_ms": 1000})
    return int(answered.topics[0].partitions[0].error_code)


def expect_no_topic(address: str, name: str) -> None:
    """A topic cannot be created now. The client is told why, and there is no such topic afterwards."""
    admin = AdminClient({"bootstrap.servers": address})
    with pytest.raises(KafkaException) as raised:
        admin.create_topics([NewTopic(name, 2, 1)])[name].result(PATIENCE_S)
    assert raised.value.args[0].code() == KafkaError.KAFKA_STORAGE_ERROR
    assert f"Topic '{name}' could not be created: " in raised.value.args[0].str()
    assert name not in admin.list_topics(timeout=PATIENCE_S).topics


def test_a_broker_that_cannot_write_serves_readers_and_goes_on_when_it_can(tmp_path: Path) -> None:
    """No file may grow, which the operating system says in the middle of everything."""
    history = History()
    with BrokerProcess(tmp_path, BROKER) as broker:
        create(broker.address, [EVENTS])
        writer = Writer(broker.address, history)
        writer.send(*range(100))
        writer.flush()
        _, most = resource.prlimit(broker.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(broker.process.pid, resource.RLIMIT_FSIZE, (0, most))
        for _ in range(3):
            assert produce_once(broker.address) == ErrorCode.KAFKA_STORAGE_ERROR
        writer.send(*range(100, 200))
        expect_no_topic(broker.address, "more")
        read_all(broker.address, history.client(), EVENTS.all)
        assert not list(broker.data.glob("more-*"))
        resource.prlimit(broker.process.pid, resource.RLIMIT_FSIZE, (most, most))
        writer.flush()
        create(broker.address, [LoadedTopic("more", 1)])
        read_all(broker.address, history.client(), EVENTS.all)
        resource.prlimit(broker.process.pid, resource.RLIMIT_FSIZE, (0, most))
        assert delete_records_once(broker.address) == ErrorCode.KAFKA_STORAGE_ERROR
        resource.prlimit(broker.process.pid, resource.RLIMIT_FSIZE, (most, most))
        assert delete_records_once(broker.address) == 0
        assert broker.stop() == 0
    report = check(history)
    assert report.is_clean, report
    said = broker.said()
    for once in ("records of events-0 cannot be written", "records of events-0 can be written again"):
        assert said.count(once) == 1, said
    assert said.count("File too large") >= 2
    assert "Traceback" not in said
    verify(broker.data)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 MiB."""
    folder = tmp_path / "mounted"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Write a file until there is no room left, not for a byte."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        size = 1 << 20
        while size:
            try:
                file.write(bytes(size))
            except OSError:
                size >>= 1
    return filler


def test_a_disk_that_is_full_again_and_again_loses_nothing(small_disk: Path) -> None:
    """Under load, with kills and starts while it is full."""
    with BrokerProcess(small_disk, BROKER) as broker:
        with Load(broker.address, Random(17)) as load:
            for round_ in range(2):
                load.wait_for(300)
                before = broker.lines
                filler = fill(small_disk)
                broker.wait_for_word("cannot be written", before)
                if round_:
                    broker.kill()
                    assert broker.serves_or_ends_with(2)
                    broker.kill()
                filler.unlink()
                if round_:
                    broker.start()
        assert not load.errors
        removals = load.read_everything(broker.address)
        assert broker.stop() == 0
    report = check(load.history, removals)
    assert report.is_clean, report
    assert "Traceback" not in broker.said()
    verify(broker.data)
