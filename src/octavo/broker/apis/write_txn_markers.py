"""WriteTxnMarkers (27): end transactions in partitions, as an administrator does with one that hangs.

In a cluster, the coordinator of the transaction asks this of the leaders of all partitions; the answer waits until the
replicas in sync have the markers. Versions: 2 tells the version of the transaction. From 2 on, a marker's epoch is one
more than that of the records.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from octavo.broker.answers import Later, Parts, Wait, Work
from octavo.broker.member.leaders import Committed, Led
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


_Results = dict[int, dict[TopicPartition, ErrorCode]]  # by producer ids
_MS: Final = 1000


class _Need(NamedTuple):
    """A marker that was written, and has to be committed."""

    producer_id: int
    place: TopicPartition
    led: Led
    end_offset: int


def write_txn_markers(broker: Broker, request: Request) -> Later:
    """Answer a WriteTxnMarkers request."""
    markers, version = request.read().markers, request.version
    deadline = time.monotonic() + broker.config.request_timeout_ms / _MS

    def work() -> Parts | Wait:
        needs: list[_Need] = []
        try:
            results = _write_all(broker, markers, needs)
        except InvalidInput:  # a producer or an epoch that cannot be; Kafka fails as a whole
            results = {
                marker.producer_id: dict.fromkeys(_places(marker), ErrorCode.UNKNOWN_SERVER_ERROR) for marker in markers
            }
            needs.clear()
        if not needs:
            return _written(version, results)
        offsets = [(each.led, each.end_offset) for each in needs]
        return Committed(deadline, offsets, lambda is_over: _settle(version, results, needs, is_over=is_over))

    return Later(work, Work.COORDINATE)


def _settle(version: int, results: _Results, needs: list[_Need], *, is_over: bool) -> Parts | None:
    """Return the answer if all markers are committed, or if it cannot wait for that any longer."""
    for each in needs:
        code = each.led.acknowledgement(each.end_offset)
        if code is None:
            if not is_over:
                return None
            code = ErrorCode.REQUEST_TIMED_OUT
        results[each.producer_id][each.place] = ErrorCode(code)
    return _written(version, results)


def _written(version: int, results: _Results) -> Parts:
    content = {"markers": [{"producer_id": each, "topics": _topics(codes)} for each, codes in results.items()]}
    return [write_response(WRITE_TXN_MARKERS, version, content)]


def _write_all(broker: Broker, markers: Iterable[Struct], needs: list[_Need]) -> _Results:
    """Write all markers, and return what came of them. Raises `InvalidInput` for impossible fields.

    needs: is given the markers that are not committed before other replicas have them
    """
    results: _Results = {}
    for marker in markers:
        codes = {place: _write(broker, marker, place, needs) for place in _places(marker)}
        if codes:
            results.setdefault(marker.producer_id, {}).update(codes)
    return results


def _places(marker: Struct) -> Iterable[TopicPartition]:
    return [TopicPartition(topic.name, each) for topic in marker.topics for each in topic.partition_indexes]


def _write(broker: Broker, marker: Struct, place: TopicPartition, needs: list[_Need]) -> ErrorCode:
    found = broker.led_log(*place)
    if isinstance(found, int):
        is_here = found == ErrorCode.NOT_LEADER_OR_FOLLOWER and not isinstance(broker.readable_log(*place), int)
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if is_here else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    led = found.led
    if led is not None:
        if place.topic == CONSUMER_OFFSETS:  # its coordinator would have to know, and there is none here
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        refusal = led.state.append_refusal()
        if refusal:
            return ErrorCode(refusal)
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
        if led is None:
            done = found.log.append(batch, origin=Origin.COORDINATOR)
        else:
            with found.log.lock:
                led.end_verification(marker.producer_id)
                done = found.log.append(batch, origin=Origin.COORDINATOR)
        if led is not None:
            needs.append(_Need(marker.producer_id, place, led, done.last_offset + 1))
        elif place.topic == CONSUMER_OFFSETS:
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
