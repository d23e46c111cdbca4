"""AddPartitionsToTxn (24): a transaction will write to partitions.

Versions: 2 knows PRODUCER_FENCED, 3 is flexible, 4 and 5 are for brokers: they have several transactions, and may ask
whether partitions were added.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from octavo.broker.answers import Answer, Parts
from octavo.broker.request import Request
from octavo.broker.transactions import fenced_before
from octavo.broker.wire.api_keys import ADD_PARTITIONS_TO_TXN
from octavo.broker.wire.messages import Struct, write_response
from octavo.coordinator.shard import Producer
from octavo.coordinator.transactions.epochs import BUMPS_EPOCHS
from octavo.coordinator.transactions.requests import AddRequest, Partition
from octavo.coordinator.transactions.transaction_shard import TransactionShard
from octavo.errors import ErrorCode

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_FENCED_SINCE: Final = 2
_BATCHES_FROM: Final = 4

Codes = Mapping[Partition, ErrorCode]


class _Asked(NamedTuple):
    """What is asked for one transaction.

    Where a request has a transactional id twice, Kafka answers each entry, but adds the partitions of the last one, and
    repeats the topics of the first one where a single code is told for all.
    """

    request: AddRequest
    topics: Sequence[Struct]
    verify_only: bool

    @property
    def told(self) -> Collection[Partition]:
        """The partitions for which a single code is told."""
        return self.request.partitions if self.verify_only else _partitions(self.topics)

    def results(self, codes: Codes) -> list[dict[str, Any]]:
        """Return the results as Kafka repeats what was asked: duplicates and topics without partitions, too."""
        if self.verify_only:
            return _distinct(codes)
        return [
            {
                "name": topic.name,
                "results_by_partition": [
                    {"partition_index": each, "partition_error_code": codes[topic.name, each]}
                    for each in topic.partitions
                ],
            }
            for topic in self.topics
        ]


def add_partitions_to_txn(broker: Broker, request: Request) -> Answer:
    """Answer an AddPartitionsToTxn request."""
    asked, version = request.read(), request.version
    if version >= _BATCHES_FROM:
        first = {each.transactional_id: each for each in reversed(asked.transactions)}
        last = {each.transactional_id: each for each in asked.transactions}
        several = [
            _read(each, first[each.transactional_id], last[each.transactional_id], BUMPS_EPOCHS)
            for each in asked.transactions
        ]
    else:
        old = Struct(
            transactional_id=asked.v3_and_below_transactional_id,
            producer_id=asked.v3_and_below_producer_id,
            producer_epoch=asked.v3_and_below_producer_epoch,
            topics=asked.v3_and_below_topics,
            verify_only=False,
        )
        several = [_read(old, old, old, 0)]

    unknown = [_refused(broker, each.request.partitions) for each in several]
    known = [each for each, codes in zip(several, unknown, strict=True) if not codes]

    def action(one: _Asked) -> Callable[[TransactionShard], Codes]:
        return lambda shard: _run(version, shard, one)

    def write(answers: list[Codes]) -> Parts:
        told = iter(answers)
        results = [
            {
                "transactional_id": each.request.transactional_id,
                "topic_results": _distinct(codes) if codes else each.results(next(told)),
            }
            for each, codes in zip(several, unknown, strict=True)
        ]
        content: dict[str, Any] = {"throttle_time_ms": 0, "error_code": ErrorCode.NONE}
        if version >= _BATCHES_FROM:
            content["results_by_transaction"] = results
        else:
            content["results_by_topic_v3_and_below"] = results[0]["topic_results"]
        return [write_response(ADD_PARTITIONS_TO_TXN, version, content)]

    def refuse(number: int, code: ErrorCode) -> Codes:
        return dict.fromkeys(known[number].told, code)

    return broker.coordinators.run_transactions(
        [(each.request.transactional_id, action(each)) for each in known], refuse, write
    )


def _read(asked: Struct, first: Struct, last: Struct, version: int) -> _Asked:
    producer = Producer(asked.producer_id, asked.producer_epoch)
    request = AddRequest(asked.transactional_id, producer, _partitions(last.topics), version)
    return _Asked(request, first.topics, asked.verify_only)


def _partitions(topics: Iterable[Struct]) -> list[Partition]:
    return [(topic.name, partition) for topic in topics for partition in topic.partitions]


def _refused(broker: Broker, partitions: Iterable[Partition]) -> Codes:
    """Return the codes if one of the partitions does not exist: then none is added."""
    unknown = {each: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION for each in partitions if not _exists(broker, each)}
    return dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED) | unknown if unknown else {}


def _run(version: int, shard: TransactionShard, asked: _Asked) -> Codes:
    if asked.verify_only:
        return shard.verify(asked.request)
    return dict.fromkeys(asked.told, fenced_before(version, _FENCED_SINCE, shard.add(asked.request)))


def _exists(broker: Broker, partition: Partition) -> bool:
    topic = broker.image.topic(partition[0])
    return topic is not None and partition[1] in topic.partitions


def _distinct(codes: Codes) -> list[dict[str, Any]]:
    """Return the results with each topic and each partition once."""
    topics: dict[str, list[dict[str, Any]]] = {}
    for (topic, partition), code in codes.items():
        topics.setdefault(topic, []).append({"partition_index": partition, "partition_error_code": code})
    return [{"name": topic, "results_by_partition": results} for topic, results in topics.items()]
