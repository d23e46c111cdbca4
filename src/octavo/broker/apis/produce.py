"""Produce (0): append the records of a client to partitions.

With acks=0 there is no answer; if something goes wrong, the connection is closed, which is the only sign that a client
gets. With one replica acks=1 and acks=all are the same. Before version 13 topics have names, then ids. If a partition
is named twice, only its last records count, as in Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from octavo.broker.answers import Parts
from octavo.broker.request import Request
from octavo.broker.wire.produce import PartitionProduce, PartitionResult, ProduceRequest, read_produce, write_produce
from octavo.errors import AppendRefused, ConnectionRefused, ErrorCode, LogError

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_ACKS: Final = (-1, 0, 1)
_PRODUCER_ID_AT: Final = 43
_ATTRIBUTES_AT: Final = 21
_TRANSACTIONAL: Final = 0x10


def produce(broker: Broker, request: Request) -> Parts | None:
    """Answer a Produce request."""
    asked = read_produce(request.body, request.version)
    wanted = {(each.topic, each.partition): each for each in asked.partitions}
    results: dict[str | bytes, list[PartitionResult]] = {}
    refusal = _refusal(asked)
    for each in wanted.values():
        result = PartitionResult(each.partition, refusal) if refusal else _append(broker, each)
        results.setdefault(each.topic, []).append(result)
    if asked.acks == 0:
        failed = next((each for several in results.values() for each in several if each.error_code), None)
        if failed is not None:
            raise ConnectionRefused(
                f"a produce without acknowledgement failed with {ErrorCode(failed.error_code).name}"
            )
        return None
    return [write_produce(request.version, list(results.items()))]


def _refusal(asked: ProduceRequest) -> int:
    """Return the error that all partitions have in common, or 0."""
    if asked.acks not in _ACKS:
        return ErrorCode.INVALID_REQUIRED_ACKS
    if asked.transactional_id is None and any(_is_transactional(each.records) for each in asked.partitions):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return 0


def _is_transactional(records: memoryview | None) -> bool:
    """Return whether the first batch is part of a transaction: it says so, and has a producer id."""
    if records is None or len(records) < _PRODUCER_ID_AT + 8:
        return False
    return bool(records[_ATTRIBUTES_AT + 1] & _TRANSACTIONAL) and records[_PRODUCER_ID_AT] < 0x80


def _append(broker: Broker, wanted: PartitionProduce) -> PartitionResult:
    partition, records = wanted.partition, wanted.records
    found = broker.led_log(wanted.topic, partition)
    if isinstance(found, int):
        return PartitionResult(partition, found)
    if records is None:
        return PartitionResult(partition, ErrorCode.INVALID_RECORD)
    if found.topic.is_internal:
        return PartitionResult(partition, ErrorCode.INVALID_TOPIC_EXCEPTION)
    try:
        done = found.log.append(records)
    except AppendRefused as error:
        start = found.log.start_offset if error.record_errors else -1
        return PartitionResult(partition, error.code, -1, -1, start, error.record_errors, error.message)
    except LogError as error:
        return PartitionResult(partition, error.code)
    except OSError as error:
        broker.say(f"{found.log.partition}: records could not be written: {error}")
        return PartitionResult(partition, ErrorCode.KAFKA_STORAGE_ERROR)
    broker.wake(found.log)
    return PartitionResult(partition, 0, done.base_offset, done.append_time_ms, done.log_start_offset)
