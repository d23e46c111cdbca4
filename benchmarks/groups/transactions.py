"""Transactions of both protocol versions, each of which has one batch of records."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from benchmarks.broker.passes import Pass
from benchmarks.broker.served import Served
from benchmarks.groups.plan import (
    Copy,
    Plan,
    Step,
    ask_until_loaded,
    connect,
    error_position,
    find_coordinator,
    frame,
    position,
)
from octavo.broker.wire.api_keys import ADD_PARTITIONS_TO_TXN, END_TXN, INIT_PRODUCER_ID, LIST_OFFSETS, PRODUCE
from octavo.errors import ErrorCode
from octavo.records import BatchBuilder

_BATCH_EPOCH_AT: Final = 51
_VALUE: Final = bytes(range(100))
_TIMEOUT_MS: Final = 60_000


class _Versions(NamedTuple):
    """The versions of requests that belong to a version of transactions."""

    produce: int
    end: int
    add_partitions: int | None  # None: producing to a partition adds it


_VERSIONS: Final = {1: _Versions(11, 4, 3), 2: _Versions(12, 5, None)}


def create(broker: Served, topic: str, partitions: int) -> None:
    """Create a topic, and return when its partitions can be produced to: Kafka's tells their leader a bit earlier."""
    broker.create(topic, partitions)
    places = [{"partition_index": index, "current_leader_epoch": -1, "timestamp": -1} for index in range(partitions)]
    content = {"replica_id": -1, "isolation_level": 0, "topics": [{"name": topic, "partitions": places}]}
    with connect(broker) as connection:
        while any(each.error_code for each in connection.ask(LIST_OFFSETS, content).topics[0].partitions):
            time.sleep(0.1)


def run(broker: Served, topic: str, version: int, *, records: int, producers: int, transactions: int) -> Pass:
    """Let some producers each write transactions to a partition of their own."""
    plan = Plan()
    with connect(broker) as connection:
        for number in range(producers):
            transactional_id = f"{topic}-{number:03}"
            content = {
                "transactional_id": transactional_id,
                "transaction_timeout_ms": _TIMEOUT_MS,
                "producer_id": -1,
                "producer_epoch": -1,
            }
            find_coordinator(connection, transactional_id, transactional=True)
            answer = ask_until_loaded(connection, INIT_PRODUCER_ID, content)
            assert not answer.error_code, answer
            producer = _Producer(transactional_id, answer.producer_id, answer.producer_epoch, topic, number)
            plan.add(*producer.steps(_VERSIONS[version], records), rounds=transactions)
    return plan.run(broker)


class _Producer(NamedTuple):
    transactional_id: str
    id: int
    epoch: int
    topic: str
    partition: int

    def steps(self, versions: _Versions, records: int) -> Sequence[Step]:
        """Return the steps of one transaction."""
        if versions.add_partitions is None:
            produce = self._produce(versions, records, sequences=0)
            return [produce, self._end(versions, bumps_epoch_of=produce)]
        added = self._add_partition(versions.add_partitions)
        return [added, self._produce(versions, records, sequences=records), self._end(versions)]

    def _add_partition(self, version: int) -> Step:
        content = {
            "v3_and_below_transactional_id": self.transactional_id,
            "v3_and_below_producer_id": self.id,
            "v3_and_below_producer_epoch": self.epoch,
            "v3_and_below_topics": [{"name": self.topic, "partitions": [self.partition]}],
        }
        # The answer begins with a throttle time, one topic and its name, one partition, and its index.
        error_at = error_position(ADD_PARTITIONS_TO_TXN, version, 4 + 1 + 1 + len(self.topic) + 1 + 4)
        request = frame(ADD_PARTITIONS_TO_TXN, version, content)
        return Step(request, error_at=error_at, retry=ErrorCode.CONCURRENT_TRANSACTIONS)

    def _produce(self, versions: _Versions, records: int, *, sequences: int) -> Step:
        builder = BatchBuilder(producer_id=self.id, producer_epoch=self.epoch, base_sequence=0, transactional=True)
        for _ in range(records):
            builder.append(None, _VALUE, timestamp_ms=1_700_000_000_000)
        batch = builder.build()
        place = {"index": self.partition, "records": batch}
        request = frame(
            PRODUCE,
            versions.produce,
            {
                "transactional_id": self.transactional_id,
                "acks": -1,
                "timeout_ms": _TIMEOUT_MS,
                "topic_data": [{"name": self.topic, "partition_data": [place]}],
            },
        )
        return Step(
            request,
            error_at=error_position(PRODUCE, versions.produce, 1 + 1 + len(self.topic) + 1 + 4),
            retry=ErrorCode.CONCURRENT_TRANSACTIONS,
            batch_at=request.index(batch),
            sequences=sequences,
        )

    def _end(self, versions: _Versions, *, bumps_epoch_of: Step | None = None) -> Step:
        content: dict[str, Any] = {
            "transactional_id": self.transactional_id,
            "producer_id": self.id,
            "producer_epoch": self.epoch,
            "committed": True,
        }
        error_at = error_position(END_TXN, versions.end)
        request = frame(END_TXN, versions.end, content)
        copies: list[Copy] = []
        if bumps_epoch_of is not None:  # the next transaction has the next epoch, and begins with sequence number 0
            copies = [
                Copy(error_at + 2 + 8, 0, bumps_epoch_of.batch_at + _BATCH_EPOCH_AT, 2),
                Copy(error_at + 2 + 8, 1, position(END_TXN, versions.end, content, "producer_epoch"), 2),
            ]
        return Step(request, error_at=error_at, retry=ErrorCode.CONCURRENT_TRANSACTIONS, copies=copies)
