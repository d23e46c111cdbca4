"""OffsetDelete (47): forget committed offsets of a group, in topics that no member subscribes to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from octavo.broker.answers import Answer, Parts
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import OFFSET_DELETE
from octavo.broker.wire.messages import write_response
from octavo.coordinator.groups.requests import DeleteAnswer, DeleteRequest
from octavo.errors import ErrorCode

if TYPE_CHECKING:
    from octavo.broker.broker import Broker


def offset_delete(broker: Broker, request: Request) -> Answer:
    """Answer an OffsetDelete request."""
    asked = request.read()
    results: dict[str, list[tuple[int, ErrorCode]]] = {}
    valid: list[tuple[str, int]] = []
    for topic in asked.topics:
        found = broker.image.topic(topic.name)
        for each in topic.partitions:
            if found is not None and each.partition_index in found.partitions:
                valid.append((topic.name, each.partition_index))
            else:
                unknown = (each.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                results.setdefault(topic.name, []).append(unknown)

    def write(answer: DeleteAnswer) -> Parts:
        topics = {} if answer.error_code is not ErrorCode.NONE else {name: list(some) for name, some in results.items()}
        for (name, partition), code in zip(valid, answer.error_codes, strict=False):
            topics.setdefault(name, []).append((partition, code))
        content = {
            "error_code": answer.error_code,
            "throttle_time_ms": 0,
            "topics": [
                {
                    "name": name,
                    "partitions": [{"partition_index": partition, "error_code": code} for partition, code in several],
                }
                for name, several in topics.items()
            ],
        }
        return [write_response(OFFSET_DELETE, request.version, content)]

    if not asked.group_id:
        return write(DeleteAnswer(ErrorCode.INVALID_GROUP_ID))
    delete = DeleteRequest(asked.group_id, valid)
    return broker.coordinators.run(
        delete.group_id,
        lambda shard, ticket: shard.answer(ticket, shard.offsets.delete(delete)),
        write,
        DeleteAnswer,
    )
