"""Octavo serves a directory, then Apache Kafka does, then Octavo again: clients go on, and nothing is lost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from octavo.broker.wire import api_keys as keys
from octavo.log import DataDirectory
from octavo.log.metadata import handover
from octavo.server.serving import serve
from tests.kafka.broker import Broker
from tests.kafka.conftest import NewBroker
from tests.kafka.java_clients import JavaClients, JavaProducer
from tests.kafka.judge import Judge
from tests.kafka.serving import Partition, ProducerState, assert_at_home, last_batch_of
from tests.kafka.tools import Tools
from tests.server.conversation import Conversation

PARTITIONS: Final = 3
CUT: Final = 30
SETTINGS: Final = {"log.retention.hours": "168"}  # given: a default deletes nothing where Kafka has served
PLACES: Final = [("orders", partition) for partition in range(PARTITIONS)]
MADE: Final = (
    f"topics --create --topic orders --partitions {PARTITIONS} --config retention.ms=-1 --config segment.bytes=1048576",
    "topics --create --topic compacted --config cleanup.policy=compact --config max.message.bytes=3000",
    "topics --create --topic again",
    "topics --delete --topic again",
    "topics --create --topic again --partitions 2",
    "topics --alter --topic compacted --partitions 2",
    "configs --alter --topic orders --add-config min.cleanable.dirty.ratio=0.25,retention.bytes=123456789",
    "configs --alter --topic orders --delete-config retention.bytes",
    "configs --alter --entity-type users --entity-name ann --add-config producer_byte_rate=10000000",
    "configs --alter --entity-type clients --entity-default --add-config request_percentage=150",
    "configs --alter --entity-type brokers --entity-default --add-config log.retention.ms=987654321",
    "configs --alter --entity-type brokers --entity-name 1 --add-config message.max.bytes=1500000",
    "client-metrics --alter --name mine --metrics org.apache.kafka. --interval 60000",
)
ASKED: Final = (
    "topics --describe",
    "configs --describe --topic orders",
    "configs --describe --topic compacted",
    "configs --describe --topic again --all",
    "configs --describe --entity-type brokers --entity-default",
    "configs --describe --entity-type brokers --entity-name 1",
    "client-metrics --describe",
    "configs --describe --entity-type users",
    "configs --describe --entity-type clients",
    "get-offsets --time earliest",
    "get-offsets --time latest",
    "get-offsets --topic orders --time max-timestamp",
    "cluster cluster-id",
)


class Seen(NamedTuple):
    """What clients see of a broker."""

    printed: dict[str, list[str]]
    records: dict[tuple[str, int], Partition]
    producers: dict[tuple[str, int], list[ProducerState]]


class Clients:
    """Kafka's clients and tools, all of one address, whoever serves there."""

    def __init__(self, judge: Judge, broker: Broker, folder: Path) -> None:
        self.java: Final = JavaClients(judge, broker)
        self.tools: Final = Tools(judge, broker.address, folder)

    def look(self) -> Seen:
        """Return what there is now."""
        return Seen(
            {call: self._lines(call) for call in ASKED},
            {place: self.java.read(*place, committed=False) for place in PLACES},
            {place: self.java.producers(*place) for place in PLACES},
        )

    def _lines(self, call: str) -> list[str]:
        told = self.tools.run(call)
        assert told.exit_code == 0, told
        return sorted(told.out.splitlines())


def test_clients_go_on_over_a_hand_over_and_back(kafka_broker: Judge, new_broker: NewBroker, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    kafka = new_broker(folder, settings=SETTINGS)
    clients = Clients(kafka_broker, kafka, tmp_path)
    with octavo(folder, kafka):
        for call in MADE:
            told = clients.tools.run(call)
            assert told.exit_code == 0, told
        going_on = clients.java.producer(**{"enable.idempotence": "true", "max.in.flight.requests.per.connection": "1"})
        compressed = clients.java.producer(**{"compression.type": "zstd"})
        send(going_on, 0, 0, 100)
        send(compressed, 1, 0, 100)
        send(going_on, 2, 0, 5)
        cut(clients, 1)
        expected = clients.look()
    assert [expected.records[place].records[0].offset for place in PLACES] == [0, CUT, 0]
    assert expected.producers["orders", 0]

    handover([folder])
    with apache_kafka(kafka):
        assert clients.look() == expected
        is_known_again(kafka, folder, expected)
        send(going_on, 0, 100, 150)
        send(compressed, 1, 100, 150)
        with clients.java.producer() as new:
            send(new, 2, 5, 10)
        assert clients.tools.run("configs --alter --topic compacted --add-config segment.ms=7654321").exit_code == 0
        expected = same_producers(expected, clients.look())

    for first in (150, 200):  # a restart in between
        with octavo(folder, kafka):
            assert clients.look() == expected
            is_known_again(kafka, folder, expected)
            send(going_on, 0, first, first + 50)
            send(compressed, 1, first, first + 50)
            with clients.java.producer() as new:
                new.send("again", 0, [b"by a producer with an id of its own"])
            expected = same_producers(expected, clients.look())
    handover([folder])
    with apache_kafka(kafka):
        assert clients.look() == expected
        ids = {state.producer_id for states in expected.producers.values() for state in states}
        ids |= {state.producer_id for state in clients.java.producers("again", 0)}
        assert len(ids) == 5  # nobody was given the id of another
    going_on.abandon()
    compressed.abandon()


@contextmanager
def octavo(folder: Path, kafka: Broker) -> Iterator[None]:
    """Octavo serves, where Kafka would."""
    with serve(folder, listen=kafka.address, config=SETTINGS):
        yield
    with DataDirectory.open(folder) as data:
        assert all(report.was_clean and report.is_unremarkable for report in data.reports)


@contextmanager
def apache_kafka(kafka: Broker) -> Iterator[None]:
    kafka.start()
    yield
    kafka.stop()
    assert_at_home(kafka)


def send(producer: JavaProducer, partition: int, first: int, end: int) -> None:
    """Send records whose values are their offsets, one batch for every ten, and see that they have got these."""
    for start in range(first, end, 10):
        numbers = range(start, min(start + 10, end))
        assert producer.send("orders", partition, [b"%d" % number for number in numbers]) == list(numbers)


def cut(clients: Clients, partition: int) -> None:
    clients.tools.write({"cut": f'{{"partitions":[{{"topic":"orders","partition":{partition},"offset":{CUT}}}]}}'})
    told = clients.tools.run("delete-records --offset-json-file {cut}")
    assert re.search(rf"partition: orders-{partition}\tlow_watermark: {CUT}\b", told.out), told


def same_producers(before: Seen, after: Seen) -> Seen:
    """Return `after`, in which all producers are still known that were, and have gone on."""
    for place, states in before.producers.items():
        known = {state.producer_id: state for state in after.producers[place]}
        assert {state.producer_id for state in states} <= known.keys()
        assert all(known[state.producer_id].last_sequence >= state.last_sequence for state in states)
    return after


def is_known_again(kafka: Broker, folder: Path, seen: Seen) -> None:
    """Send the last batch of the first partition again: its old offset is acknowledged, and nothing is appended."""
    (state,) = seen.producers["orders", 0]
    with DataDirectory.open(folder, read_only=True) as data:
        batch, offset = last_batch_of(data.log("orders", 0), state.producer_id)
    content: dict[str, Any] = {
        "transactional_id": None,
        "acks": -1,
        "timeout_ms": 10_000,
        "topic_data": [{"name": "orders", "partition_data": [{"index": 0, "records": batch}]}],
    }
    with Conversation(kafka.address) as conversation:
        answer = conversation.ask(keys.PRODUCE, 9, content)
    (told,) = answer["responses"][0]["partition_responses"]
    assert (told["error_code"], told["base_offset"]) == (0, offset)
