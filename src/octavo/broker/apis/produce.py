"""Produce (0): append the records of a client to partitions.

With acks=0 there is no answer; if something goes wrong, the connection is closed, which is the only sign that a client
gets. With one replica acks=1 and acks=all are the same. Before version 13 topics have names, then ids. If a partition
is named twice, only its last records count, as in Kafka, and the answer has the error of the others if there is one.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final

from octavo.broker.answers import Later, Parts, Work
from octavo.broker.kafka_words import record_problem
from octavo.broker.produced_batches import ZSTD_FROM, batch_problem, has_identity, identity, is_transactional, is_usual
from octavo.broker.refused import Refused
from octavo.broker.request import Request
from octavo.broker.transactions import ADDS_FROM, is_fenced, told_to_producer, verified
from octavo.broker.wire.produce import PartitionProduce, PartitionResult, ProduceRequest, read_produce, write_produce
from octavo.coordinator.shard import Producer
from octavo.coordinator.transactions.requests import Partition
from octavo.errors import AppendRefused, ConnectionRefused, ErrorCode, LogError, RecordError
from octavo.log.append.readiness import (
    ALLOWANCE,
    MustCompress,
    MustWait,
    TakesLong,
    is_quick,
    prepare,
    quickly_inflated,
    settle,
)
from octavo.log.log import Log

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_OF_RECORDS: Final = "One or more records have been rejected"
_OF_TIME: Final = f"{_OF_RECORDS} due to invalid timestamp"
_ACKS: Final = (-1, 0, 1)
# Errors after which the start of the log is not told.
_WITHOUT_START: Final = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.KAFKA_STORAGE_ERROR,
)


Key = tuple[str | bytes, int]  # the name or the id of a topic, and a partition
Results = dict[str | bytes, list[PartitionResult]]  # by topic
Appended = dict[Key, PartitionResult]
_LONG: Final = threading.Lock()  # held while much is decompressed, so that the memory is that of one request


def produce(broker: Broker, request: Request) -> Parts | Later | None:
    """Answer a Produce request. Another thread does it if it takes long.

    That is so if an append flushes or begins an epoch, if something has to be loaded first, if retention or compaction
    holds a log, if the coordinator of a transaction cannot be asked at once, and if much is decompressed, or anything
    compressed.
    """
    asked = read_produce(request.body, request.version)  # if it is malformed, that is said at once
    appended: Appended = {}
    is_long = False
    if is_quick(len(request.body)) and not any(_waits(broker, each) for each in asked.partitions):
        ALLOWANCE.left = quickly_inflated(len(request.body))
        try:
            return _produce(broker, request.version, asked, appended)
        except TakesLong as reason:
            is_long = not isinstance(reason, MustCompress | MustWait)
        finally:
            ALLOWANCE.left = None
    kept = request.kept()

    def work() -> Parts | None:
        prepare()
        try:
            with _LONG if is_long else nullcontext():
                return _produce(broker, kept.version, read_produce(kept.body, kept.version), appended)
        finally:
            settle()

    return Later(work, Work.APPEND, kept)


def _waits(broker: Broker, wanted: PartitionProduce) -> bool:
    """Return whether an append to the partition may wait for the disk."""
    found = broker.led_log(wanted.topic, wanted.partition)
    return not isinstance(found, int) and found.log.would_wait()


def _produce(broker: Broker, version: int, asked: ProduceRequest, appended: Appended) -> Parts | None:
    """Append what is not in `appended` yet, and return the answer."""
    results = _append_usual(broker, asked) if version >= ZSTD_FROM else None
    if results is None:
        results = _append_all(broker, version, asked, appended)
    if asked.acks == 0:
        failed = next((each for several in results.values() for each in several if each.error_code), None)
        if failed is not None:
            raise ConnectionRefused(
                f"a produce without acknowledgement failed with {ErrorCode(failed.error_code).name}"
            )
        return None
    return [write_produce(version, list(results.items()))]


def _append_usual(broker: Broker, asked: ProduceRequest) -> Results | None:
    """Append one batch for one partition, which nearly all requests have. None if it has to be looked at closely."""
    if len(asked.partitions) != 1 or asked.acks not in _ACKS:
        return None
    [only] = asked.partitions
    return {only.topic: [_append(broker, only)]} if is_usual(only.records) else None


def _append_all(broker: Broker, version: int, asked: ProduceRequest, appended: Appended) -> Results:
    has_transaction = any(is_transactional(each.records) for each in asked.partitions)
    is_forbidden = has_transaction and asked.transactional_id is None
    may_append = asked.acks in _ACKS
    valid: dict[Key, PartitionProduce] = {}
    refused: dict[Key, PartitionResult] = {}
    for each in asked.partitions:
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED if is_forbidden else _problem(broker, version, each)
        if code:
            refused[each.topic, each.partition] = PartitionResult(each.partition, code)
        else:
            valid[each.topic, each.partition] = each
    missing = {key: each for key, each in valid.items() if key not in appended}
    if not may_append:
        code = ErrorCode.INVALID_REQUIRED_ACKS
        appended.update((key, PartitionResult(each.partition, code)) for key, each in missing.items())
    elif asked.transactional_id is not None and any(has_identity(each.records) for each in missing.values()):
        _append_verified(broker, version, asked.transactional_id, missing, appended)
    else:
        for key, each in missing.items():
            appended[key] = _append(broker, each)
    results: Results = {}
    for (topic, _), result in (appended | refused).items():
        results.setdefault(topic, []).append(result)
    return results


def _append_verified(
    broker: Broker, version: int, transactional_id: str, wanted: dict[Key, PartitionProduce], appended: Appended
) -> None:
    """Append what is part of a transaction, which does not end before that is done."""
    places: dict[Key, Partition] = {}
    fenced: Appended = {}
    opened: dict[Key, Producer] = {}
    producers: set[Producer] = set()
    for key, each in wanted.items():
        found = broker.led_log(each.topic, each.partition)
        if not isinstance(found, int) and each.records is not None and has_identity(each.records):
            producer, _ = identity(each.records)
            producers.add(producer)
            if is_fenced(found.log, producer):
                fenced[key] = PartitionResult(each.partition, ErrorCode.INVALID_PRODUCER_EPOCH)
            elif found.log.producers.has_open(*producer):  # it was verified before; the log sees whether it ends now
                opened[key] = producer
            else:
                places[key] = (found.topic.name, each.partition)
    if len(producers) > 1:
        code = ErrorCode.INVALID_PRODUCER_ID_MAPPING
        appended.update((key, PartitionResult(each.partition, code)) for key, each in wanted.items())
        return
    appended.update(fenced)
    wanted = {key: each for key, each in wanted.items() if key not in fenced}
    if not places:
        for key, each in wanted.items():
            appended[key] = _append(broker, each, opened.get(key))
        return
    adds, [producer] = version >= ADDS_FROM, producers
    partitions = list(places.values())
    with verified(broker, transactional_id, producer, partitions, adds=adds, is_patient=adds) as codes:
        for key, each in wanted.items():
            told, why = told_to_producer(version, codes[places[key]]) if key in places else (ErrorCode.NONE, None)
            if told is not ErrorCode.NONE:
                appended[key] = PartitionResult(each.partition, told, error_message=why)
            elif key in places and adds and (late := _begins_late(broker, each)) is not None:
                appended[key] = _failed(late, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
            else:
                appended[key] = _append(broker, each, opened.get(key))


def _begins_late(broker: Broker, wanted: PartitionProduce) -> Log | None:
    """Return the log if it knows nothing of a producer of version 2 whose sequence number is not 0 all the same."""
    found = broker.led_log(wanted.topic, wanted.partition)
    assert wanted.records is not None
    producer, sequence = identity(wanted.records)
    if isinstance(found, int) or sequence == 0 or producer.id in found.log.producers.entries:
        return None
    return found.log


def _of_records(errors: Sequence[RecordError]) -> str:
    """Return the message for a batch of which some records are refused, in Kafka's words."""
    shown = ", ".join(f"RecordError(batchIndex={each.record_index}, message='{each.message}')" for each in errors[:3])
    return (
        f"{_OF_RECORDS} due to {len(errors)} record errors in total, and only showing the first three errors at most: "
        f"[{shown}]"
    )


def _problem(broker: Broker, version: int, wanted: PartitionProduce) -> int:
    """Return the error of records that do not get as far as the log, or 0.

    Raises `Refused`, for the whole request, if the codec is none: in old versions Kafka does not expect that here.
    """
    found = broker.led_log(wanted.topic, wanted.partition)
    if isinstance(found, int):
        return found
    try:
        return batch_problem(version, wanted.records)
    except Refused as refused:
        if refused.code != ErrorCode.CORRUPT_MESSAGE:
            raise
        return refused.code


def _append(broker: Broker, wanted: PartitionProduce, within: Producer | None = None) -> PartitionResult:
    """Append to a partition. `within`: the producer whose transaction is open there, and must not have ended."""
    partition, records = wanted.partition, wanted.records
    found = broker.led_log(wanted.topic, partition)
    if isinstance(found, int):
        return PartitionResult(partition, found)
    assert records is not None
    if found.topic.is_internal:
        return PartitionResult(partition, ErrorCode.INVALID_TOPIC_EXCEPTION)
    try:
        done = found.log.append(records, within=within)
    except AppendRefused as error:
        if not error.record_errors:
            return _failed(found.log, error.code)
        return _with_record_errors(found.log, error)
    except (LogError, OSError) as error:
        return _failed(found.log, _failure(broker, found.log, error))
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
    errors = [record_problem(each, log.partition) for each in error.record_errors]
    why = _OF_TIME if error.code == ErrorCode.INVALID_TIMESTAMP else _of_records(errors)
    return PartitionResult(log.partition.partition, error.code, -1, -1, log.start_offset, errors, why)


def _failed(log: Log, code: int) -> PartitionResult:
    """Return the result for records that the log does not take."""
    start = -1 if code in _WITHOUT_START else log.start_offset
    return PartitionResult(log.partition.partition, code, log_start_offset=start)
