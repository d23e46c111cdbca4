"""Groups and transactions in every state go on with Apache Kafka after Octavo, and with Octavo after Kafka.

What they are told then is what Kafka tells its own after a restart. The states are in `handed_classic_groups`,
`handed_consumer_groups` and `handed_transactions`; what a coordinator has in mind, and has not written (a member that
waits, an epoch that is being fenced), is forgotten by either broker. Real clients stay meanwhile: `handed_members`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Final
from unittest.mock import patch

import confluent_kafka
import pytest

from octavo.log import DataDirectory
from octavo.log.metadata import handover
from octavo.server.serving import serve
from tests.clients.proxy import Proxy
from tests.kafka.broker import Broker
from tests.kafka.conftest import NewBroker
from tests.kafka.handed_classic_groups import CLASSIC
from tests.kafka.handed_consumer_groups import CONSUMERS
from tests.kafka.handed_members import MEMBER_PARTITIONS, MEMBER_TOPIC, Members
from tests.kafka.handed_over import GROUP_PARTITIONS, GROUP_TOPIC, PATIENCE_S, Case, find_coordinators
from tests.kafka.handed_producer import TOPIC
from tests.kafka.handed_transactions import PARTITIONS, seed, transactions
from tests.kafka.judge import Judge
from tests.retention import KEPT_FOR_NOW

SETTINGS: Final = {
    **KEPT_FOR_NOW,
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1",
    "group.consumer.assignment.interval.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "500",
}
ANYWHERE: Final = "127.0.0.1:0"
Story = dict[str, list[str]]  # what each case was told


class States:
    """A group and a transactional id in each state."""

    def __init__(self, number: int) -> None:
        self.number: Final = number
        self._transactions: Final = list(transactions(number))
        groups = [kind(f"{kind.__name__}-{number}") for kind in (*CLASSIC, *CONSUMERS)]
        self._cases: Final[list[Case]] = [*groups, *self._transactions]

    def seed(self, folder: Path) -> None:
        """Write what takes long to come by, before anybody serves."""
        with DataDirectory.open(folder) as data:
            seed(data, self._transactions)

    def prepare(self, address: str) -> None:
        find_coordinators(address)
        for case in self._cases:
            case.prepare(address)

    def decide(self, address: str) -> None:
        for case in self._cases:
            case.decide(address)

    def go_on(self, address: str) -> Story:
        find_coordinators(address)
        story = {_title(case): [_plain(each, case) for each in case.go_on(address)] for case in self._cases}
        records = committed_records(address, [case.partition for case in self._transactions])
        for case in self._transactions:
            story[_title(case)].append(
                _plain([value.replace(f" {case.partition}", "") for value in records[case.partition]], case)
            )
        return story


def _title(case: Case) -> str:
    return case.name.rpartition("-")[0]


def _plain(answer: object, case: Case) -> str:
    return repr(answer).replace(case.name, _title(case))


def committed_records(address: str, partitions: list[int]) -> dict[int, list[str]]:
    """What a reader of committed records gets of some partitions."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "unused",
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(TOPIC, partition, 0) for partition in partitions])
    values: dict[int, list[str]] = {partition: [] for partition in partitions}
    left = set(partitions)
    while left:
        message = consumer.poll(PATIENCE_S)
        assert message is not None, f"partitions {left} have no end"
        partition = message.partition()
        assert partition is not None
        error = message.error()
        if error is None:
            values[partition].append((message.value() or b"").decode())
        else:
            assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF, error
            left.discard(partition)
    consumer.close()
    return values


def make_directory(folder: Path) -> None:
    with DataDirectory.open(folder) as data:
        data.create_topic(TOPIC, 2 * PARTITIONS)
        data.create_topic(GROUP_TOPIC, GROUP_PARTITIONS)
        data.create_topic(MEMBER_TOPIC, MEMBER_PARTITIONS)


@contextmanager
def octavo(folder: Path, address: str = ANYWHERE) -> Iterator[str]:
    """Octavo serves."""
    with serve(folder, listen=address, config=SETTINGS) as server:
        yield server.bootstrap_servers


def prepare_in_octavo(
    states: States, folder: Path, address: str = ANYWHERE, meanwhile: Callable[[], None] = lambda: None
) -> None:
    """Have Octavo bring everything into its state, and stop."""
    states.seed(folder)
    dies = patch("octavo.log.coordinator.markers.write_marker", side_effect=OSError("no marker is written"))
    with octavo(folder, address) as served:
        meanwhile()
        states.prepare(served)
        dies.start()
        states.decide(served)
    dies.stop()


@contextmanager
def apache_kafka(kafka: Broker) -> Iterator[str]:
    kafka.start()
    yield kafka.address
    kafka.stop()


@pytest.mark.exhaustive
def test_groups_and_transactions_go_on_from_every_state(
    tmp_path: Path, new_broker: NewBroker, kafka_broker: Judge
) -> None:
    folder, alone, copy = (tmp_path / name for name in ("data", "alone", "copy"))
    make_directory(folder)
    shutil.copytree(folder, alone)
    kafka = new_broker(folder, settings=SETTINGS)
    ours, theirs = States(0), States(1)
    with closing(Members(kafka_broker, kafka.address)) as members:
        prepare_in_octavo(ours, folder, kafka.address, members.go_on)
        theirs.seed(folder)
        handover([folder])
        with Proxy() as proxy:
            proxy.upstream = kafka.ask_itself_through(proxy.address)
            kafka.start()
            kafka_after_octavo = ours.go_on(kafka.address)
            members.go_on()
            theirs.prepare(kafka.address)
        theirs.decide(kafka.address)  # markers do not get through
        kafka.kill()
        shutil.copytree(folder, copy)
        with octavo(folder, kafka.address) as served:
            octavo_after_kafka = deepcopy(theirs).go_on(served)
            members.go_on()
    handover([copy])
    with apache_kafka(new_broker(copy, settings=SETTINGS)) as served:
        kafka_after_kafka = theirs.go_on(served)
    prepare_in_octavo(ours := States(0), alone)
    with octavo(alone) as served:
        octavo_after_octavo = ours.go_on(served)
    assert kafka_after_octavo == kafka_after_kafka
    assert octavo_after_kafka == kafka_after_kafka
    assert octavo_after_octavo == kafka_after_kafka
