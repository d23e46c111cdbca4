"""DeleteRecords (21): move the start of logs, to an offset or, with -1, to the high watermark.

If a partition is named twice, its last offset counts, as in Kafka. Version 2 is flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from octavo.broker.answers import Later, Parts
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import DELETE_RECORDS
from octavo.broker.wire.messages import Struct, write_response
from octavo.errors import ErrorCode, LogError

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_HIGH_WATERMARK: Final = -1


def delete_records(broker: Broker, request: Request) -> Later:
    """Answer a DeleteRecords request. By then the new starts are on the disk, and that takes a while."""
    asked, version = request.read(), request.version
    several = {(topic.name, each.partition_index): each for topic in asked.topics for each in topic.partitions}

    def work() -> Parts:
        found: dict[str, list[dict[str, Any]]] = {}
        for (name, _), each in several.items():
            found.setdefault(name, []).append(_one(broker, name, each))
        topics = [{"name": name, "partitions": partitions} for name, partitions in found.items()]
        return [write_response(DELETE_RECORDS, version, {"throttle_time_ms": 0, "topics": topics})]

    return Later(work)


def _one(broker: Broker, name: str, asked: Struct) -> dict[str, Any]:
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
    return _result(asked, low_watermark=low_watermark)


def _result(asked: Struct, *, low_watermark: int = -1, error: int = 0) -> dict[str, Any]:
    return {"partition_index": asked.partition_index, "low_watermark": low_watermark, "error_code": error}
