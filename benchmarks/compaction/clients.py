"""Compare the in-process producer and consumer with those of confluent-kafka and an Apache Kafka broker.

Both sides send the same records one by one, and wait at the end until all are acknowledged. Both read records one by
one, and access key and value. `batch.size` matters a lot, and the defaults differ: Kafka's and ours is 16 KiB,
librdkafka's is 1,000,000 bytes. So there are results where each has its own default, and results where both have the
same size, one or the other. All other settings are defaults, except that librdkafka's queue has room for all records,
so that its loop never waits. The broker is warmed up before the measurements.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from time import perf_counter
from typing import Final

from confluent_kafka import OFFSET_BEGINNING
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import Producer as ConfluentProducer
from confluent_kafka import TopicPartition as ConfluentPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.log.sets import scratch
from benchmarks.measure import Contender, Peer, Result, compare, tell
from benchmarks.warm_broker import warm_broker
from octavo.log import DataDirectory, Producer
from octavo.log.consumer import Consumer

_COUNT: Final = 300_000  # number of records in a pass
_KEYS: Final = 100_000
_PARTITIONS: Final = 4
_TARGET: Final = 1.0
_WAIT_S: Final = 30.0
_WARM_PASSES: Final = 3
_READ: Final = "read"

Records = Sequence[tuple[bytes | None, bytes]]
Settings = Mapping[str, str]


def clients(*, repeat: int, scale: int) -> list[Result]:
    """Measure sending records, with and without keys, and reading them."""
    values = [b"%08d" % number * 12 + b"1234" for number in range(_COUNT // scale)]
    keyed: Records = [(b"key-%07d" % (number * 7919 % _KEYS), value) for number, value in enumerate(values)]
    keyless: Records = [(None, value) for value in values]
    results: list[Result] = []
    with scratch() as folder, warm_broker(folder / "kafka") as broker, DataDirectory.open(folder / "data") as data:
        ours, theirs = _Ours(data), _Theirs(broker.address)
        tell("confluent-kafka warms the broker")
        for _ in range(_WARM_PASSES):
            theirs.send(keyed, {})
        small, large = {"batch.size": "16384"}, {"batch.size": "1000000"}
        for what, records, settings, target in (
            ("values of 100, own defaults", keyless, {}, _TARGET),
            ("keys, and values of 100, own defaults", keyed, {}, _TARGET),
            ("values of 100, batches of 1,000,000", keyless, large, _TARGET),
            ("keys, and values of 100, batches of 1,000,000", keyed, large, _TARGET),
            ("keys, and values of 100, batches of 16 KiB", keyed, small, _TARGET),
            ("keys, and values of 100, batches of 1,000,000, lz4", keyed, large | {"compression.type": "lz4"}, None),
        ):
            results += compare(
                f"send {what}",
                Contender("octavo", len(records), partial(ours.send, records, settings)),
                [
                    Peer(
                        Contender(
                            "confluent-kafka's produce()",
                            len(records),
                            partial(theirs.send, records, settings),
                        ),
                        target,
                    )
                ],
                unit="records/s",
                repeat=repeat,
            )
        ours.send(keyed, {}, topic=_READ)
        theirs.send(keyed, {}, topic=_READ)
        peer = Peer(Contender("confluent-kafka's poll()", len(keyed) - 1, lambda: theirs.poll(len(keyed))), _TARGET)
        for what, get in (
            ("poll, one record a call", ours.poll_one_by_one),
            ("poll, 500 records a call", ours.poll),
            ("iterate over a consumer", ours.iterate),
        ):
            mine = Contender("octavo", len(keyed) - 1, partial(get, len(keyed)))
            results += compare(what, mine, [peer], unit="records/s", repeat=repeat)
    return results


def _measured(work: Callable[[], object]) -> float:
    """Return how many seconds the work takes, with the garbage collector off."""
    gc.collect()
    gc.disable()
    try:
        begin = perf_counter()
        work()
        return perf_counter() - begin
    finally:
        gc.enable()


class _Ours:
    """Octavo's clients on a data directory. Each sending pass has its own topic, which is deleted after it."""

    def __init__(self, data: DataDirectory) -> None:
        self._data = data
        self._numbers = count()

    def send(self, records: Records, settings: Settings, *, topic: str | None = None) -> float:
        name = topic or f"sent-{next(self._numbers)}"
        self._data.create_topic(name, _PARTITIONS)
        with Producer(self._data, settings) as producer:
            producer.partitions_for(name)

            def work() -> None:
                send = producer.send
                for key, value in records:
                    send(name, value, key)
                producer.flush()

            taken = _measured(work)
        assert sum(log.end_offset for log in self._data.logs if log.partition.topic == name) == len(records)
        if topic is None:
            self._data.delete_topic(name)
        return taken

    def _consumer(self) -> Consumer:
        consumer = Consumer(self._data, {"auto.offset.reset": "earliest"})
        consumer.assign([(_READ, partition) for partition in range(_PARTITIONS)])
        return consumer

    def poll_one_by_one(self, amount: int) -> float:
        with self._consumer() as consumer:
            assert len(consumer.poll(timeout=_WAIT_S, max_records=1)) == 1

            def work() -> None:
                poll = consumer.poll
                for _ in range(amount - 1):
                    [record] = poll(timeout=_WAIT_S, max_records=1)
                    record.key, record.value  # noqa: B018 (accessing them is the point)

            return _measured(work)

    def poll(self, amount: int) -> float:
        with self._consumer() as consumer:
            left = amount - len(consumer.poll(timeout=_WAIT_S, max_records=1))

            def work() -> None:
                found = 0
                while found < left:
                    records = consumer.poll(timeout=_WAIT_S)
                    for record in records:
                        record.key, record.value  # noqa: B018
                    found += len(records)
                assert found == left

            return _measured(work)

    def iterate(self, amount: int) -> float:
        with self._consumer() as consumer:
            records = iter(consumer)
            next(records)

            def work() -> None:
                for _, record in zip(range(amount - 1), records, strict=False):
                    record.key, record.value  # noqa: B018

            return _measured(work)


class _Theirs:
    """confluent-kafka's clients with a broker. Each sending pass has its own topic, which is deleted after it."""

    def __init__(self, address: str) -> None:
        self._address: dict[str, str | int | float | bool] = {
            "bootstrap.servers": address,
            "log_level": 0,  # it logs a lot when the broker stops
        }
        self._admin = AdminClient(self._address)
        self._numbers = count()

    def send(self, records: Records, settings: Settings, *, topic: str | None = None) -> float:
        name = topic or f"sent-{next(self._numbers)}"
        [made] = self._admin.create_topics([NewTopic(name, _PARTITIONS, 1)]).values()
        made.result()
        room = {
            "queue.buffering.max.messages": len(records) + 1,
            "queue.buffering.max.kbytes": 1 << 20,
            **self._address,
            **settings,
        }
        producer = ConfluentProducer(room)
        producer.list_topics(name)  # connects, and fetches the topic's metadata

        def work() -> None:
            produce = producer.produce
            for key, value in records:
                produce(name, value, key)
            assert producer.flush(_WAIT_S) == 0

        taken = _measured(work)
        if topic is None:
            [gone] = self._admin.delete_topics([name]).values()
            gone.result()
        return taken

    def poll(self, amount: int) -> float:
        consumer = ConfluentConsumer({"group.id": "benchmark", "enable.auto.commit": False, **self._address})
        consumer.assign([ConfluentPartition(_READ, partition, OFFSET_BEGINNING) for partition in range(_PARTITIONS)])
        assert consumer.poll(timeout=_WAIT_S) is not None

        def work() -> None:
            poll = consumer.poll
            for _ in range(amount - 1):
                message = poll(_WAIT_S)
                assert message is not None
                message.key(), message.value()

        try:
            return _measured(work)
        finally:
            consumer.close()
