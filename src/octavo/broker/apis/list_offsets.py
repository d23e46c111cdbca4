"""ListOffsets (2): the offsets of partitions by time, or by one of the special timestamps.

Special timestamps: -1 latest, -2 earliest, -3 (version 7) largest timestamp, -4 (8) earliest local, -5 (9) latest
tiered, -6 (11) earliest that is still to be uploaded. Without remote storage the last two are unknown. Replicas are
told of everything up to the end of the log, and those who debug may ask followers. Versions: 4 has leader epochs, 6 is
flexible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from octavo.broker.answers import Later, Parts, Work
from octavo.broker.failures import error_code
from octavo.broker.leader_epochs import epoch_of_start
from octavo.broker.refused import Refused
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import LIST_OFFSETS
from octavo.broker.wire.messages import Struct, write_response
from octavo.errors import ErrorCode, FormatError, LogError
from octavo.log.log import Log
from octavo.log.view import Isolation

if TYPE_CHECKING:
    from octavo.broker.broker import Broker, LedLog

_LATEST: Final = -1
_EARLIEST: Final = -2
_LARGEST: Final = -3
_EARLIEST_LOCAL: Final = -4
_SINCE: Final = {_LARGEST: 7, _EARLIEST_LOCAL: 8, -5: 9, -6: 11}  # the first version of each special timestamp
_CONSUMER: Final = -1  # ids of replicas that are none
_DEBUGGING: Final = -2
_NOT_AVAILABLE_FROM: Final = 5  # the first version whose clients know OFFSET_NOT_AVAILABLE
ISOLATIONS: Final = {0: Isolation.HIGH_WATERMARK, 1: Isolation.READ_COMMITTED}


def list_offsets(broker: Broker, request: Request) -> Parts | Later:
    """Answer a ListOffsets request. Another thread does it if batches have to be read and decompressed."""
    asked, version = request.read(), request.version
    isolation = isolation_for(asked.isolation_level)
    if asked.replica_id != _CONSUMER:
        isolation = Isolation.LOG_END
    if any(_is_looked_up(each.timestamp) for topic in asked.topics for each in topic.partitions):
        return Later(lambda: _answer(broker, version, asked, isolation), Work.QUERY)
    return _answer(broker, version, asked, isolation)


def _is_looked_up(timestamp_ms: int) -> bool:
    """Return whether the offset for a timestamp is found in the records."""
    return timestamp_ms >= 0 or timestamp_ms == _LARGEST


def _answer(broker: Broker, version: int, asked: Struct, isolation: Isolation) -> Parts:
    named = [(topic.name, each.partition_index) for topic in asked.topics for each in topic.partitions]
    twice = {each for each, count in Counter(named).items() if count > 1} if len(set(named)) < len(named) else ()
    several = {(topic.name, each.partition_index): each for topic in asked.topics for each in topic.partitions}
    found: dict[str, list[dict[str, Any]]] = {}
    for key, each in several.items():
        refused = _failed(each, ErrorCode.INVALID_REQUEST) if key in twice else None
        find = broker.readable_log if asked.replica_id == _DEBUGGING else broker.led_log
        result = refused or _one(broker, version, find, key[0], each, isolation)
        found.setdefault(key[0], []).append(result)
    topics = [{"name": name, "partitions": partitions} for name, partitions in found.items()]
    return [write_response(LIST_OFFSETS, version, {"throttle_time_ms": 0, "topics": topics})]


def isolation_for(level: int) -> Isolation:
    """Return an isolation by its number. Raises `Refused` for one that does not exist."""
    if level not in ISOLATIONS:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, None)
    return ISOLATIONS[level]


def _one(
    broker: Broker,
    version: int,
    find: Callable[[str, int, int], LedLog | int],
    topic: str,
    asked: Struct,
    isolation: Isolation,
) -> dict[str, Any]:
    timestamp_ms = asked.timestamp
    if timestamp_ms < _EARLIEST and version < _SINCE.get(timestamp_ms, 1 << 15):
        return _failed(asked, ErrorCode.UNSUPPORTED_VERSION)
    found = find(topic, asked.partition_index, asked.current_leader_epoch)
    if isinstance(found, int):
        return _failed(asked, found)
    has_old_watermark = _has_old_watermark(found)  # before the look-up: meanwhile it may be raised
    try:
        offset, timestamp_ms, epoch = _lookup(found.log, timestamp_ms, isolation)
    except LogError as error:
        return _failed(asked, error.code)
    except (FormatError, OSError) as error:
        broker.say(f"{found.log.partition}: timestamps could not be read: {error}")
        return _failed(asked, error_code(error))
    if isolation is not Isolation.LOG_END and has_old_watermark and _depends_on_watermark(asked.timestamp, offset):
        is_known = version >= _NOT_AVAILABLE_FROM
        return _failed(asked, ErrorCode.OFFSET_NOT_AVAILABLE if is_known else ErrorCode.LEADER_NOT_AVAILABLE)
    return {
        "partition_index": asked.partition_index,
        "error_code": 0,
        "timestamp": timestamp_ms,
        "offset": offset,
        "leader_epoch": epoch,
    }


def _lookup(log: Log, timestamp_ms: int, isolation: Isolation) -> tuple[int, int, int]:
    """Return the offset for a timestamp, its timestamp and its leader epoch; -1 for each where there is none."""
    if timestamp_ms == _LATEST:
        return _end(log, isolation), -1, log.leader_epoch
    if timestamp_ms in (_EARLIEST, _EARLIEST_LOCAL):
        return log.start_offset, -1, epoch_of_start(log)
    if timestamp_ms == _LARGEST:
        found = log.max_timestamp_offset(isolation=isolation)
    elif timestamp_ms < _LATEST:
        return -1, -1, -1
    else:
        found = log.offset_for_timestamp(timestamp_ms, isolation=isolation)
    return (-1, -1, -1) if found is None else (found.offset, found.timestamp_ms, found.leader_epoch)


def _end(log: Log, isolation: Isolation) -> int:
    if isolation is Isolation.LOG_END:
        return log.end_offset
    return log.last_stable_offset if isolation is Isolation.READ_COMMITTED else log.high_watermark


def _has_old_watermark(found: LedLog) -> bool:
    """Return whether the leader before may have shown more than this new one can answer for yet."""
    return found.led is not None and found.led.state.is_old(found.log.high_watermark)


def _depends_on_watermark(timestamp_ms: int, offset: int) -> bool:
    """Return whether an answer would be another one if the high watermark were higher."""
    return timestamp_ms == _LATEST or (offset < 0 and timestamp_ms not in (_EARLIEST, _EARLIEST_LOCAL))


def _failed(asked: Struct, error: int) -> dict[str, Any]:
    return {
        "partition_index": asked.partition_index,
        "error_code": error,
        "timestamp": -1,
        "offset": -1,
        "leader_epoch": -1,
    }
