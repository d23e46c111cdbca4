"""Consume-transform-produce goes on while the broker is killed, and everything is transformed exactly once."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Final

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.faults.broker_process import PATIENCE_S, BrokerProcess
from tests.faults.test_kill import verify
from tests.faults.transforming import IN, PARTITIONS, JavaTransformer, LibrdkafkaTransformer, Transformer
from tests.kafka.judge import Judge
from tests.soak.plugin import Soak

OUTPUTS: Final = ("by-java", "by-librdkafka")
CONFIG: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}


class Inputs:
    """Records to be transformed, each with a number of its own."""

    def __init__(self, address: str) -> None:
        self._producer: Final = Producer({"bootstrap.servers": address, "enable.idempotence": True, "log_level": 0})
        self.sent: Final[dict[int, list[bytes]]] = {partition: [] for partition in range(PARTITIONS)}

    def send(self, count: int) -> None:
        """Send records, which are in the log when this returns."""
        for number in range(count):
            values = self.sent[number % PARTITIONS]
            values.append(b"%d" % len(values))
            self._producer.produce(IN, values[-1], partition=number % PARTITIONS)
        assert self._producer.flush(PATIENCE_S) == 0


def kill_while_transforming(folder: Path, judge: Judge, *, kills: Iterable[int], seed: int, count: int) -> None:
    """Kill the broker again and again, each time when up to half of `count` more records are transformed."""
    random = Random(seed)
    with BrokerProcess(folder, CONFIG) as broker, ExitStack() as running:
        admin = AdminClient({"bootstrap.servers": broker.address})
        for made in admin.create_topics([NewTopic(name, PARTITIONS) for name in (IN, *OUTPUTS)]).values():
            made.result(PATIENCE_S)
        inputs = Inputs(broker.address)
        inputs.send(count)
        workers: list[Transformer] = [
            JavaTransformer(judge, broker.address, "java", OUTPUTS[0]),
            *(LibrdkafkaTransformer(broker.address, f"librdkafka-{each}", OUTPUTS[1]) for each in range(2)),
        ]
        for worker in workers:
            running.enter_context(worker)
        before = transformed(workers)
        for _ in kills:
            # Half of what was sent since: of a commit whose answer was lost nobody knows that it counts.
            wait_for(workers, before, random.randrange(1, count // 2))
            before = transformed(workers)
            broker.kill()
            broker.start()
            inputs.send(count)
        wait_until_all_is_committed(broker.address, inputs, workers)
        running.close()
        for name in OUTPUTS:
            assert committed(broker.address, name) == inputs.sent, f"seed {seed}, {[each.troubles for each in workers]}"
        assert broker.stop() == 0
    assert "Traceback" not in broker.said()
    verify(broker.data)


def transformed(workers: Sequence[Transformer]) -> dict[str, int]:
    """How many records were transformed to each topic, as far as the workers know."""
    return {name: sum(each.transformed for each in workers if each.out == name) for name in OUTPUTS}


def wait_for(workers: Sequence[Transformer], before: dict[str, int], count: int) -> None:
    """Return when so many more records are transformed to each topic."""
    deadline = time.monotonic() + PATIENCE_S
    while any(now < before[name] + count for name, now in transformed(workers).items()):
        check(workers, deadline)


def wait_until_all_is_committed(address: str, inputs: Inputs, workers: Sequence[Transformer]) -> None:
    """Return when the groups have committed the ends of all partitions."""
    deadline = time.monotonic() + PATIENCE_S
    wanted = [TopicPartition(IN, partition) for partition in inputs.sent]
    for name in OUTPUTS:
        asking = Consumer({"bootstrap.servers": address, "group.id": name})
        while [each.offset for each in asking.committed(wanted, PATIENCE_S)] != list(map(len, inputs.sent.values())):
            check(workers, deadline)
        asking.close()


def check(workers: Sequence[Transformer], deadline: float) -> None:
    for worker in workers:
        if worker.error is not None:
            raise worker.error
    assert time.monotonic() < deadline, [(each.name, each.transformed, each.troubles[-3:]) for each in workers]
    time.sleep(0.01)  # until it is asked again


def committed(address: str, topic: str) -> dict[int, list[bytes]]:
    """All that a reader of committed records gets."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "reader", "enable.partition.eof": True})
    values: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
    consumer.assign([TopicPartition(topic, partition, 0) for partition in values])
    left = set(values)
    while left:
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        partition, error, value = message.partition(), message.error(), message.value()
        assert partition is not None
        if error is None:
            assert value is not None
            values[partition].append(value)
        else:
            assert error.code() == KafkaError._PARTITION_EOF, error
            left.discard(partition)
    consumer.close()
    return values


def test_everything_is_transformed_exactly_once(tmp_path: Path, kafka_broker: Judge) -> None:
    kill_while_transforming(tmp_path, kafka_broker, kills=range(3), seed=17, count=200)


@pytest.mark.soak(30)
def test_everything_is_transformed_exactly_once_in_many_kills(tmp_path: Path, kafka_broker: Judge, soak: Soak) -> None:
    kill_while_transforming(tmp_path, kafka_broker, kills=soak.rounds(), seed=soak.seed, count=400)
