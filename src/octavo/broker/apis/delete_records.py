"""DeleteRecords (21): move the start of logs, to an offset or, with -1, to the high watermark.

In a cluster, the answer waits until all live replicas have done the same. If a partition is named twice, its last
offset counts, as in Kafka. Version 2 is flexible.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from octavo.broker.answers import Later, Parts, Wait
from octavo.broker.member.leaders import Led
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import DELETE_RECORDS
from octavo.broker.wire.messages import Struct, write_response
from octavo.errors import ErrorCode, LogError

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_Key = tuple[str, int]  # a topic and a partition
_HIGH_WATERMARK: Final = -1


def delete_records(broker: Broker, request: Request) -> Later:
    """Answer a DeleteRecords request. By then the new starts are on the disk, and that takes a while."""
    asked, version = request.read(), request.version
    several = {(topic.name, each.partition_index): each for topic in asked.topics for each in topic.partitions}
    deadline = time.monotonic() + asked.timeout_ms / 1000

    def work() -> Parts | Wait:
        results: dict[_Key, dict[str, Any]] = {}
        needs: dict[_Key, tuple[Led, int]] = {}  # the partitions to wait for, with their new starts
        for (name, number), each in several.items():
            results[name, number] = _one(broker, name, each, needs)
        if not needs:
            return _written(version, results)
        logs = [led.log for led, _ in needs.values()]
        return Wait(deadline, logs, lambda is_over: _settle(version, results, needs, is_over=is_over))

    return Later(work)


def _settle(
    version: int, results: dict[_Key, dict[str, Any]], needs: dict[_Key, tuple[Led, int]], *, is_over: bool
) -> Parts | None:
    """Return the answer if all replicas have deleted the records, or if it cannot wait for that any longer."""
    for key, (led, offset) in list(needs.items()):
        low_watermark = led.state.low_watermark(led.log.start_offset)
        if led.state.is_deposed:
            results[key] |= {"error_code": ErrorCode.NOT_LEADER_OR_FOLLOWER, "low_watermark": -1}
        elif low_watermark >= offset:
            results[key] |= {"error_code": 0, "low_watermark": low_watermark}
        elif is_over:
            results[key] |= {"error_code": ErrorCode.REQUEST_TIMED_OUT}
        else:
            if results[key]["low_watermark"] < 0:  # it is told as it was at first
                results[key]["low_watermark"] = low_watermark
            continue
        del needs[key]
    return None if needs else _written(version, results)


def _written(version: int, results: dict[_Key, dict[str, Any]]) -> Parts:
    found: dict[str, list[dict[str, Any]]] = {}
    for (name, _), result in results.items():
        found.setdefault(name, []).append(result)
    topics = [{"name": name, "partitions": partitions} for name, partitions in found.items()]
    return [write_response(DELETE_RECORDS, version, {"throttle_time_ms": 0, "topics": topics})]


def _one(broker: Broker, name: str, asked: Struct, needs: dict[_Key, tuple[Led, int]]) -> dict[str, Any]:
    found = broker.led_log(name, asked.partition_index)
    if isinstance(found, int):
        return _result(asked, error=found)
    if found.topic.is_internal:
        return _result(asked, error=ErrorCode.INVALID_TOPIC_EXCEPTION)
    log = found.log
    is_valid = asked.offset >= _HIGH_WATERMARK  # if not, the log has the last word still: it may forbid deletions
    try:
        low_watermark = log.delete_records_before(asked.offset if is_valid else log.high_watermark + 1)
    except LogError as error:
        return _result(asked, error=error.code)
    except OSError as error:
        broker.troubles.failed(f"records of {log.partition} could not be deleted", error)
        return _result(asked, error=ErrorCode.KAFKA_STORAGE_ERROR)
    if found.led is not None:
        needs[name, asked.partition_index] = found.led, low_watermark
        return _result(asked)
    return _result(asked, low_watermark=low_watermark)


def _result(asked: Struct, *, low_watermark: int = -1, error: int = 0) -> dict[str, Any]:
    return {"partition_index": asked.partition_index, "low_watermark": low_watermark, "error_code": error}
