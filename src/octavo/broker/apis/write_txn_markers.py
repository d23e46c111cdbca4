"""WriteTxnMarkers (27): end transactions in partitions, as an administrator does with one that hangs.

Versions: 2 tells the version of the transaction. From 2 on, a marker's epoch is one more than that of the records.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from octavo.broker.answers import Later, Parts, Work
from octavo.broker.request import Request
from octavo.broker.troubles import storage_error
from octavo.broker.wire.api_keys import WRITE_TXN_MARKERS
from octavo.broker.wire.messages import Struct, write_response
from octavo.coordinator.shard import Producer
from octavo.coordinator.transactions.epochs import BUMPS_EPOCHS, LARGEST_EPOCH
from octavo.errors import ErrorCode, InvalidInput, OctavoError
from octavo.log.names import CONSUMER_OFFSETS, TopicPartition
from octavo.log.origin import Origin
from octavo.records.control import end_transaction_marker

if TYPE_CHECKING:
    from octavo.broker.broker import Broker
    from octavo.log.log import Log


def write_txn_markers(broker: Broker, request: Request) -> Later:
    """Answer a WriteTxnMarkers request."""
    markers, version = request.read().markers, request.version

    def work() -> Parts:
        try:
            results = _write_all(broker, markers)
        except InvalidInput:  # a producer or an epoch that cannot be; Kafka fails as a whole
            results = {
                marker.producer_id: dict.fromkeys(_places(marker), ErrorCode.UNKNOWN_SERVER_ERROR) for marker in markers
            }
        content = {"markers": [{"producer_id": each, "topics": _topics(codes)} for each, codes in results.items()]}
        return [write_response(WRITE_TXN_MARKERS, version, content)]

    return Later(work, Work.COORDINATE)


def _write_all(broker: Broker, markers: Iterable[Struct]) -> dict[int, dict[TopicPartition, ErrorCode]]:
    """Write all markers, and return what came of them. Raises `InvalidInput` for impossible fields."""
    results: dict[int, dict[TopicPartition, ErrorCode]] = {}
    for marker in markers:
        codes = {place: _write(broker, marker, place) for place in _places(marker)}
        if codes:
            results.setdefault(marker.producer_id, {}).update(codes)
    return results


def _places(marker: Struct) -> Iterable[TopicPartition]:
    return [TopicPartition(topic.name, each) for topic in marker.topics for each in topic.partition_indexes]


def _write(broker: Broker, marker: Struct, place: TopicPartition) -> ErrorCode:
    found = broker.led_log(*place)
    if isinstance(found, int):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    batch = end_transaction_marker(
        marker.transaction_result,
        timestamp_ms=broker.directory.now_ms(),
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        coordinator_epoch=marker.coordinator_epoch,
    )
    if getattr(marker, "transaction_version", 0) >= BUMPS_EPOCHS and _is_too_early(found.log, marker):
        return ErrorCode.INVALID_PRODUCER_EPOCH
    try:
        found.log.append(batch, origin=Origin.COORDINATOR)
        if place.topic == CONSUMER_OFFSETS:
            producer = Producer(marker.producer_id, marker.producer_epoch)
            broker.coordinators.note_marker(place, producer, commit=marker.transaction_result)
    except (OctavoError, OSError) as error:
        return ErrorCode(storage_error(error))
    return ErrorCode.NONE


def _is_too_early(log: Log, marker: Struct) -> bool:
    """Return whether the records of a transaction have the epoch that only its marker may have."""
    entry = log.producers.entries.get(marker.producer_id)
    if entry is None or entry.txn_first_offset < 0:
        return False  # there is nothing to end: the marker was written before
    return bool(entry.epoch == marker.producer_epoch != LARGEST_EPOCH)


def _topics(codes: dict[TopicPartition, ErrorCode]) -> list[dict[str, Any]]:
    topics: dict[str, list[dict[str, Any]]] = {}
    for place, code in codes.items():
        topics.setdefault(place.topic, []).append({"partition_index": place.partition, "error_code": code})
    return [{"name": topic, "partitions": results} for topic, results in topics.items()]
