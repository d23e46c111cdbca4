"""CreatePartitions (37): give topics more partitions.

Version 2 is flexible.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from octavo.broker.answers import Later, Parts
from octavo.broker.refused import check_time
from octavo.broker.request import Request
from octavo.broker.troubles import reason, storage_error
from octavo.broker.wire.api_keys import CREATE_PARTITIONS
from octavo.broker.wire.messages import Struct, write_response
from octavo.errors import ErrorCode, OctavoError

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_MAX_PARTITIONS: Final = 10_000  # that one request adds


def create_partitions(broker: Broker, request: Request) -> Later:
    """Answer a CreatePartitions request."""
    asked, version = request.read(), request.version
    check_time(asked.timeout_ms)

    def work() -> Parts:
        counts = Counter(topic.name for topic in asked.topics)
        several = {each.name: each for each in asked.topics}.values()
        results, room = [], _MAX_PARTITIONS
        for each in several:
            result, added = _one(broker, counts, each, room, only_check=asked.validate_only)
            results.append(result)
            room -= added
        return [write_response(CREATE_PARTITIONS, version, {"throttle_time_ms": 0, "results": results})]

    return Later(work)


def _one(
    broker: Broker, counts: Counter[str], asked: Struct, room: int, *, only_check: bool
) -> tuple[dict[str, Any], int]:
    """Return the result for one topic, and how many partitions were added; there may be `room` of them."""
    if counts[asked.name] > 1:
        return _result(asked, ErrorCode.INVALID_REQUEST, "Duplicate topic name."), 0
    topic = broker.image.topics.get(asked.name)
    if topic is None:
        return _result(asked, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None), 0
    refusal = _refusal(broker, asked, len(topic.partitions))
    if refusal is not None:
        return _result(asked, *refusal), 0
    added = asked.count - len(topic.partitions)
    if added > room:
        return _result(asked, ErrorCode.UNKNOWN_SERVER_ERROR, None), 0  # that is what Kafka says
    if not only_check:
        try:
            broker.add_partitions(asked.name, asked.count)
        except (OctavoError, OSError) as error:
            broker.troubles.failed(f"topic {asked.name} got no more partitions", error)
            return _result(asked, storage_error(error), reason(error)), 0
    return _result(asked, 0, None), added


def _refusal(broker: Broker, asked: Struct, present: int) -> tuple[ErrorCode, str] | None:
    if asked.count == present:
        return ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partition(s)."
    if asked.count < present:
        why = f"The topic {asked.name} currently has {present} partition(s); {asked.count} would not be an increase."
        return ErrorCode.INVALID_PARTITIONS, why
    if asked.assignments is None:
        return None
    added = asked.count - present
    if len(asked.assignments) != added:
        why = (
            f"Attempted to add {added} additional partition(s), but only {len(asked.assignments)} assignment(s) "
            f"were specified."
        )
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT, why
    for assignment in asked.assignments:
        problem = broker.assignment_problem(assignment.broker_ids)
        if problem is not None:
            return ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem
    return None


def _result(asked: Struct, error: int, message: str | None) -> dict[str, Any]:
    return {"name": asked.name, "error_code": error, "error_message": message}
