"""Produce (0): append the records of a client to partitions.

With acks=0 there is no answer; if something goes wrong, the connection is closed, which is the only sign that a client
gets. With acks=all the answer waits until all replicas in sync have the records; if there is one replica, that is the
same as acks=1. Before version 13 topics have names, then ids. If a partition is named twice, only its last records
count, as in Kafka, and the answer has the error of the others if there is one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final

from octavo.broker.answers import Answer, Later, Parts, Wait, Work
from octavo.broker.kafka_words import record_problem
from octavo.broker.member.verification import Guard, Verdict
from octavo.broker.produce_answers import Appended, Key, Needs, Results, answer_produce
from octavo.broker.produced_batches import ZSTD_FROM, batch_problem, has_identity, identity, is_transactional, is_usual
from octavo.broker.produced_transactions import sort_out, verify_first
from octavo.broker.refused import Refused
from octavo.broker.request import Request
from octavo.broker.transactions import ADDS_FROM, told_to_producer, verified
from octavo.broker.wire.produce import PartitionProduce, PartitionResult, ProduceRequest, read_produce
from octavo.coordinator.shard import Producer
from octavo.errors import AppendRefused, ErrorCode, LogError, RecordError
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
from octavo.log.at_once import TOO_MANY_OPEN
from octavo.log.log import Log
from octavo.log.storage import is_broken

if TYPE_CHECKING:
    from octavo.broker.broker import Broker
    from octavo.broker.member.leaders import Led

_OF_RECORDS: Final = "One or more records have been rejected"
_OF_TIME: Final = f"{_OF_RECORDS} due to invalid timestamp"
_ALL: Final = -1
_ACKS: Final = (_ALL, 0, 1)
# Errors after which the start of the log is not told.
_WITHOUT_START: Final = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.KAFKA_STORAGE_ERROR,
)


_LONG: Final = threading.Lock()  # held while much is decompressed, so that the memory is that of one request


def produce(broker: Broker, request: Request) -> Answer:
    """Answer a Produce request. Another thread does it if it takes long.

    That is so if an append flushes or begins an epoch, if something has to be loaded first, if retention or compaction
    holds a log, if the coordinator of a transaction cannot be asked at once, and if much is decompressed, or anything
    compressed.
    """
    asked = read_produce(request.body, request.version)  # if it is malformed, that is said at once
    if broker.leaders is None:
        return _begin(broker, request, asked, 0.0)
    deadline = time.monotonic() + asked.timeout_ms / 1000
    if asked.transactional_id is not None and asked.acks in _ACKS:
        first = verify_first(
            broker, request, asked, lambda kept, again, verdict: _begin(broker, kept, again, deadline, verdict)
        )
        if first is not None:
            return first
    return _begin(broker, request, asked, deadline)


def _begin(
    broker: Broker, request: Request, asked: ProduceRequest, deadline: float, verdict: Verdict | None = None
) -> Answer:
    """Append, here or in another thread, and answer. `verdict`: of a coordinator on another broker."""
    appended: Appended = {}
    needs: Needs = {}
    is_long = False
    if is_quick(len(request.body)) and not any(_waits(broker, each) for each in asked.partitions):
        ALLOWANCE.left = quickly_inflated(len(request.body))
        try:
            results = _append_asked(broker, request.version, asked, appended, needs, verdict)
        except TakesLong as reason:
            is_long = not isinstance(reason, MustCompress | MustWait)
        else:
            return answer_produce(broker, request.version, request.client, asked.acks, results, needs, deadline)
        finally:
            ALLOWANCE.left = None
    kept = request.kept()

    def work() -> Parts | Wait | None:
        prepare()
        again = read_produce(kept.body, kept.version)
        try:
            with _LONG if is_long else nullcontext():
                results = _append_asked(broker, kept.version, again, appended, needs, verdict)
        finally:
            settle()
        return answer_produce(
            broker, kept.version, kept.client, again.acks, results, needs, deadline, is_elsewhere=True
        )

    return Later(work, Work.APPEND, kept)


def _waits(broker: Broker, wanted: PartitionProduce) -> bool:
    """Return whether an append to the partition may wait for the disk."""
    found = broker.led_log(wanted.topic, wanted.partition)
    return not isinstance(found, int) and found.log.would_wait()


def _append_asked(
    broker: Broker, version: int, asked: ProduceRequest, appended: Appended, needs: Needs, verdict: Verdict | None
) -> Results:
    """Append what is not in `appended` yet, and return what came of all records."""
    results = _append_usual(broker, asked, needs) if version >= ZSTD_FROM else None
    return _append_all(broker, version, asked, appended, needs, verdict) if results is None else results


def _append_usual(broker: Broker, asked: ProduceRequest, needs: Needs) -> Results | None:
    """Append one batch for one partition, which nearly all requests have. None if it has to be looked at closely."""
    if len(asked.partitions) != 1 or asked.acks not in _ACKS:
        return None
    [only] = asked.partitions
    return {only.topic: [_append(broker, only, asked.acks, needs)]} if is_usual(only.records) else None


def _append_all(
    broker: Broker, version: int, asked: ProduceRequest, appended: Appended, needs: Needs, verdict: Verdict | None
) -> Results:
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
        _append_verified(broker, version, asked, missing, appended, needs, verdict)
    else:
        for key, each in missing.items():
            appended[key] = _append(broker, each, asked.acks, needs)
    results: Results = {}
    for (topic, _), result in (appended | refused).items():
        results.setdefault(topic, []).append(result)
    return results


def _append_verified(
    broker: Broker,
    version: int,
    asked: ProduceRequest,
    wanted: dict[Key, PartitionProduce],
    appended: Appended,
    needs: Needs,
    verdict: Verdict | None,
) -> None:
    """Append what is part of a transaction, which does not end before that is done."""
    assert asked.transactional_id is not None
    sorted_out = sort_out(broker, wanted)
    places, opened, producers = sorted_out.unverified, sorted_out.opened, sorted_out.producers
    if len(producers) > 1:
        code = ErrorCode.INVALID_PRODUCER_ID_MAPPING
        appended.update((key, PartitionResult(each.partition, code)) for key, each in wanted.items())
        return
    code = ErrorCode.INVALID_PRODUCER_EPOCH
    appended.update((key, PartitionResult(wanted[key].partition, code)) for key in sorted_out.fenced)
    wanted = {key: each for key, each in wanted.items() if key not in sorted_out.fenced}
    if not places:
        for key, each in wanted.items():
            appended[key] = _append(broker, each, asked.acks, needs, opened.get(key))
        return
    adds, [producer] = version >= ADDS_FROM, producers
    partitions = list(places.values())
    with verified(broker, asked.transactional_id, producer, partitions, verdict, adds=adds, is_patient=adds) as codes:
        for key, each in wanted.items():
            told, why = told_to_producer(version, codes[places[key]]) if key in places else (ErrorCode.NONE, None)
            guard = None if verdict is None or key not in places else verdict.guards.get(places[key])
            if told is not ErrorCode.NONE:
                appended[key] = PartitionResult(each.partition, told, error_message=why)
            elif key in places and adds and (late := _begins_late(broker, each)) is not None:
                appended[key] = _failed(late, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
            else:
                appended[key] = _append(broker, each, asked.acks, needs, opened.get(key), guard)


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
    if isinstance(found, int) and found != ErrorCode.NOT_LEADER_OR_FOLLOWER:  # others are told so at last
        return found
    try:
        return batch_problem(version, wanted.records)
    except Refused as refused:
        if refused.code != ErrorCode.CORRUPT_MESSAGE:
            raise
        return refused.code


def _append(
    broker: Broker,
    wanted: PartitionProduce,
    acks: int,
    needs: Needs,
    within: Producer | None = None,
    guard: Guard | None = None,
) -> PartitionResult:
    """Append to a partition.

    within: the producer whose transaction is open there, and must not have ended
    guard: that of a transaction which another broker has verified
    """
    partition, records = wanted.partition, wanted.records
    found = broker.led_log(wanted.topic, partition)
    topic = broker.image.topic(wanted.topic) if isinstance(found, int) else found.topic
    if topic is not None and topic.is_internal:
        return PartitionResult(partition, ErrorCode.INVALID_TOPIC_EXCEPTION)
    if isinstance(found, int):
        return PartitionResult(partition, found)
    assert records is not None
    led = found.led if acks == _ALL else None
    if led is not None and (refusal := led.state.append_refusal()):
        return _failed(found.log, refusal)
    if guard is not None and guard.led is not found.led:  # another broker has led meanwhile
        return PartitionResult(partition, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    try:
        done = found.log.append(records, within=within, only_if=None if guard is None else guard.holds)
    except AppendRefused as error:
        if not error.record_errors:
            return _failed(found.log, _refusal(broker, found.log, error))
        return _with_record_errors(found.log, error)
    except (LogError, OSError) as error:
        cause = found.log.failure or error  # what has failed before, in the background, is why the log takes no more
        if isinstance(cause, OSError) and found.led is not None and cause.errno not in TOO_MANY_OPEN:
            _make_way(broker, found.led, cause)
        return _failed(found.log, _failure(broker, found.log, error))
    if led is not None:
        needs[wanted.topic, partition] = led, done.last_offset + 1
    if broker.troubles.present:
        broker.troubles.is_over(_trouble(found.log), f"records of {found.log.partition} can be written again")
    return PartitionResult(partition, 0, done.base_offset, done.append_time_ms, done.log_start_offset)


def _make_way(broker: Broker, led: Led, error: OSError) -> None:
    """Have another broker lead if there is one: with a disk that is full, too, nobody can produce here."""
    if broker.troubles.disk_failed is not None and (len(led.state.isr) > 1 or is_broken(error)):
        broker.troubles.disk_failed(error)


def _trouble(log: Log) -> str:
    return f"records of {log.partition} cannot be written"


def _refusal(broker: Broker, log: Log, error: AppendRefused) -> int:
    """Return the code for records that the log refuses.

    If the disk was full for a batch, the next ones of its producer are out of order. A producer that was told so would
    have to take another epoch, and could then write twice what waits for its answer in another partition.
    """
    is_gap = error.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    return ErrorCode.KAFKA_STORAGE_ERROR if is_gap and _trouble(log) in broker.troubles.present else error.code


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
