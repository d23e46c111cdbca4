"""WriteTxnMarkers (27): end transactions in partitions, as an administrator does with one that hangs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from octavo.broker.answers import Later, Parts, Work
from octavo.broker.request import Request
from octavo.broker.troubles import storage_error
from octavo.broker.wire.api_keys import WRITE_TXN_MARKERS
from octavo.broker.wire.messages import Struct, write_response
from octavo.coordinator.shard import Producer
from octavo.errors import ErrorCode, OctavoError
from octavo.log.names import CONSUMER_OFFSETS, TopicPartition
from octavo.log.origin import Origin
from octavo.records.control import end_transaction_marker

if TYPE_CHECKING:
    from octavo.broker.broker import Broker


def write_txn_markers(broker: Broker, request: Request) -> Later:
    """Answer a WriteTxnMarkers request."""
    markers, version = request.read().markers, request.version

    def work() -> Parts:
        results: dict[int, dict[TopicPartition, ErrorCode]] = {}
        for marker in markers:
            codes = results.setdefault(marker.producer_id, {})
            for topic in marker.topics:
                for partition in topic.partition_indexes:
                    place = TopicPartition(topic.name, partition)
                    codes[place] = _write(broker, marker, place)
        content = {"markers": [{"producer_id": each, "topics": _topics(codes)} for each, codes in results.items()]}
        return [write_response(WRITE_TXN_MARKERS, version, content)]

    return Later(work, Work.COORDINATE)


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
    try:
        found.log.append(batch, origin=Origin.COORDINATOR)
        if place.topic == CONSUMER_OFFSETS:
            producer = Producer(marker.producer_id, marker.producer_epoch)
            broker.coordinators.note_marker(place, producer, commit=marker.transaction_result)
    except (OctavoError, OSError) as error:
        return ErrorCode(storage_error(error))
    return ErrorCode.NONE


def _topics(codes: dict[TopicPartition, ErrorCode]) -> list[dict[str, Any]]:
    topics: dict[str, list[dict[str, Any]]] = {}
    for place, code in codes.items():
        topics.setdefault(place.topic, []).append({"partition_index": place.partition, "error_code": code})
    return [{"name": topic, "partitions": results} for topic, results in topics.items()]
