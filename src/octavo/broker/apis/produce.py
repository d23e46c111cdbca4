"""Produce (0): append the records of a client to partitions.

With acks=0 there is no answer; if something goes wrong, the connection is closed, which is the only sign that a client
gets. With one replica acks=1 and acks=all are the same. Before version 13 topics have names, then ids. If a partition
is named twice, only its last records count, as in Kafka.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from octavo.broker.answers import Later, Parts
from octavo.broker.kafka_words import no_key
from octavo.broker.request import Request
from octavo.broker.wire.produce import PartitionProduce, PartitionResult, ProduceRequest, read_produce, write_produce
from octavo.errors import AppendRefused, ConnectionRefused, ErrorCode, LogError
from octavo.log.append.readiness import is_quick, prepare

if TYPE_CHECKING:
    from octavo.broker.broker import Broker
    from octavo.log.log import Log

_OF_RECORDS: Final = "One or more records have been rejected"
_OF_TIME: Final = f"{_OF_RECORDS} due to invalid timestamp"
_ACKS: Final = (-1, 0, 1)
_PRODUCER_ID_AT: Final = 43
_ATTRIBUTES_AT: Final = 21
_TRANSACTIONAL: Final = 0x10
_LENGTH_AT: Final = 8
_LENGTH: Final = struct.Struct(">i")
_MAGIC_AT: Final = 16
_MAGIC: Final = 2


def produce(broker: Broker, request: Request) -> Parts | Later | None:
    """Answer a Produce request. Another thread does it while appends take long, because something has to be loaded."""
    if is_quick(len(request.body)):
        return _produce(broker, request.version, request.body)
    read_produce(request.body, request.version)  # if it is malformed, that is said at once
    version, body = request.version, bytes(request.body)

    def work() -> Parts | None:
        prepare()
        return _produce(broker, version, memoryview(body))

    return Later(work)


def _produce(broker: Broker, version: int, body: memoryview) -> Parts | None:
    asked = read_produce(body, version)
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
    return [write_produce(version, list(results.items()))]


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


def _is_one_batch(records: memoryview) -> bool:
    """Return whether the records are one batch, of magic 2: clients may send nothing else."""
    size = len(records)
    if size <= _MAGIC_AT:
        return False
    (length,) = _LENGTH.unpack_from(records, _LENGTH_AT)
    return bool(_LENGTH_AT + _LENGTH.size + length == size and records[_MAGIC_AT] == _MAGIC)


def _append(broker: Broker, wanted: PartitionProduce) -> PartitionResult:
    partition, records = wanted.partition, wanted.records
    found = broker.led_log(wanted.topic, partition)
    if isinstance(found, int):
        return PartitionResult(partition, found)
    if records is None or not _is_one_batch(records):
        return PartitionResult(partition, ErrorCode.INVALID_RECORD)
    if found.topic.is_internal:
        return PartitionResult(partition, ErrorCode.INVALID_TOPIC_EXCEPTION)
    try:
        done = found.log.append(records)
    except AppendRefused as error:
        if not error.record_errors:
            return PartitionResult(partition, error.code)
        return _with_record_errors(found.log, error)
    except (LogError, OSError) as error:
        return PartitionResult(partition, _failure(broker, found.log, error))
    if broker.troubles.present:
        broker.troubles.is_over(_trouble(found.log), f"records of {found.log.partition} can be written again")
    return PartitionResult(partition, 0, done.base_offset, done.append_time_ms, done.log_start_offset)


def _trouble(log: Log) -> str:
    return f"records of {log.partition} cannot be written"


def _failure(broker: Broker, log: Log, error: LogError | OSError) -> int:
    """Return the code for an append that failed, and tell the operator if it is because of the disk."""
    if not isinstance(error, OSError) and log.failure is None:
        return error.code
    broker.troubles.failed(_trouble(log), error)
    return ErrorCode.KAFKA_STORAGE_ERROR


def _with_record_errors(log: Log, error: AppendRefused) -> PartitionResult:
    """Return the answer if some records are refused for their keys or times."""
    errors = error.record_errors
    if error.code == ErrorCode.INVALID_TIMESTAMP:
        why = _OF_TIME
    else:
        why = _OF_RECORDS
        errors = tuple(each._replace(message=no_key(log.partition)) for each in errors)  # there is no other reason
    return PartitionResult(log.partition.partition, error.code, -1, -1, log.start_offset, errors, why)
