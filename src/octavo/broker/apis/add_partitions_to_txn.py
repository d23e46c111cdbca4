"""AddPartitionsToTxn (24): a transaction will write to partitions.

Versions: 2 knows PRODUCER_FENCED, 3 is flexible, 4 and 5 are for brokers: they have several transactions, and may ask
whether partitions were added.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from octavo.broker.answers import Answer, Parts
from octavo.broker.request import Request
from octavo.broker.transactions import fenced_before
from octavo.broker.wire.api_keys import ADD_PARTITIONS_TO_TXN
from octavo.broker.wire.messages import Struct, write_response
from octavo.coordinator.shard import Producer
from octavo.coordinator.transactions.requests import AddRequest, Partition
from octavo.coordinator.transactions.transaction_shard import BUMPS_EPOCHS, TransactionShard
from octavo.errors import ErrorCode

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_FENCED_SINCE: Final = 2
_BATCHES_FROM: Final = 4

Codes = Mapping[Partition, ErrorCode]


class _Asked(NamedTuple):
    """What is asked for one transaction."""

    request: AddRequest
    verify_only: bool


def add_partitions_to_txn(broker: Broker, request: Request) -> Answer:
    """Answer an AddPartitionsToTxn request."""
    asked, version = request.read(), request.version
    if version >= _BATCHES_FROM:
        several = [_read(each, BUMPS_EPOCHS) for each in asked.transactions]
    else:
        old = Struct(
            transactional_id=asked.v3_and_below_transactional_id,
            producer_id=asked.v3_and_below_producer_id,
            producer_epoch=asked.v3_and_below_producer_epoch,
            topics=asked.v3_and_below_topics,
            verify_only=False,
        )
        several = [_read(old, 0)]

    def action(one: _Asked) -> Callable[[TransactionShard], Codes]:
        return lambda shard: _run(broker, version, shard, one)

    def write(answers: list[Codes]) -> Parts:
        results = [
            {"transactional_id": each.request.transactional_id, "topic_results": _topics(codes)}
            for each, codes in zip(several, answers, strict=True)
        ]
        content: dict[str, Any] = {"throttle_time_ms": 0, "error_code": ErrorCode.NONE}
        if version >= _BATCHES_FROM:
            content["results_by_transaction"] = results
        else:
            content["results_by_topic_v3_and_below"] = results[0]["topic_results"]
        return [write_response(ADD_PARTITIONS_TO_TXN, version, content)]

    def refuse(number: int, code: ErrorCode) -> Codes:
        return dict.fromkeys(several[number].request.partitions, code)

    return broker.coordinators.run_transactions(
        [(each.request.transactional_id, action(each)) for each in several], refuse, write
    )


def _read(asked: Struct, version: int) -> _Asked:
    partitions = [(topic.name, partition) for topic in asked.topics for partition in topic.partitions]
    producer = Producer(asked.producer_id, asked.producer_epoch)
    return _Asked(AddRequest(asked.transactional_id, producer, partitions, version), asked.verify_only)


def _run(broker: Broker, version: int, shard: TransactionShard, asked: _Asked) -> Codes:
    request = asked.request
    unknown = [each for each in request.partitions if not _exists(broker, each)]
    if unknown:  # then none is added
        codes = dict.fromkeys(request.partitions, ErrorCode.OPERATION_NOT_ATTEMPTED)
        return codes | dict.fromkeys(unknown, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if asked.verify_only:
        return shard.verify(request)
    return dict.fromkeys(request.partitions, fenced_before(version, _FENCED_SINCE, shard.add(request)))


def _exists(broker: Broker, partition: Partition) -> bool:
    topic = broker.image.topic(partition[0])
    return topic is not None and partition[1] in topic.partitions


def _topics(codes: Codes) -> list[dict[str, Any]]:
    topics: dict[str, list[dict[str, Any]]] = {}
    for (topic, partition), code in codes.items():
        topics.setdefault(topic, []).append({"partition_index": partition, "partition_error_code": code})
    return [{"name": topic, "results_by_partition": results} for topic, results in topics.items()]
