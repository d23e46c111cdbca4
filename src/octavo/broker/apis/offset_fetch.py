"""OffsetFetch (9): the offsets that groups have committed.

Versions: 2 can ask for all topics and has an error for the whole, 5 has leader epochs, 6 is flexible, 7 can wait for
transactions, 8 is for several groups, 9 is also for groups of the consumer protocol, 10 names topics by their ids.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from octavo.broker.answers import Later, Parts
from octavo.broker.repetition import refuse_repetition
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import OFFSET_FETCH
from octavo.broker.wire.messages import Struct, write_response
from octavo.coordinator.groups.requests import FetchAnswer, FetchedOffset, FetchRequest
from octavo.errors import ErrorCode
from octavo.schemas.primitives import NO_UUID

if TYPE_CHECKING:
    from octavo.broker.broker import Broker
    from octavo.coordinator.groups.group_shard import GroupShard

_WHOLE_ERROR: Final = 2  # the first version with an error for the whole
_GROUPS: Final = 8  # the first version for several groups
_IDS: Final = 10  # the first version that names topics by their ids


def offset_fetch(broker: Broker, request: Request) -> Parts | Later:
    """Answer an OffsetFetch request."""
    asked, version = request.read(), request.version
    groups: tuple[Struct, ...] = asked.groups if version >= _GROUPS else (asked,)
    wanted = [_Wanted(broker, version, group) for group in groups]

    def fetch(each: _Wanted) -> Callable[[GroupShard], FetchAnswer]:
        question = each.request(is_stable=asked.require_stable)
        return lambda shard: shard.offsets.fetch(question)

    def refuse(group_id: str, code: ErrorCode) -> FetchAnswer:
        return FetchAnswer(code)

    def write(answers: list[FetchAnswer]) -> Parts:
        contents = [each.content(answer) for each, answer in zip(wanted, answers, strict=True)]
        content = {"groups": contents} if version >= _GROUPS else contents[0]
        return [write_response(OFFSET_FETCH, version, {"throttle_time_ms": 0, **content})]

    return broker.coordinators.run_each([(each.group_id, fetch(each)) for each in wanted], refuse, write)


class _Wanted:
    """What is asked of one group."""

    def __init__(self, broker: Broker, version: int, group: Struct) -> None:
        self._broker: Final = broker
        self._version: Final = version
        self._group: Final = group
        self.group_id: Final[str] = group.group_id
        self._known: Final[list[tuple[str, Struct]]] = []
        self._unknown: Final[list[Struct]] = []
        for topic in group.topics or ():
            if version < _IDS:
                self._known.append((topic.name, topic))
                continue
            found = broker.image.topic(topic.topic_id)
            if found is None:
                self._unknown.append(topic)
            else:
                self._known.append((found.name, topic))

    def request(self, *, is_stable: bool) -> FetchRequest:
        """Return the request for the coordinator. Raises `MalformedRequest`."""
        group = self._group
        partitions = None
        if group.topics is not None:
            partitions = [
                (name, number, UUID(bytes=topic.topic_id) if self._version >= _IDS else NO_UUID)
                for name, topic in self._known
                for number in topic.partition_indexes
            ]
            refuse_repetition(partitions)
        return FetchRequest(
            group.group_id,
            partitions,
            getattr(group, "member_id", None),
            getattr(group, "member_epoch", -1),
            require_stable=is_stable,
        )

    def content(self, answer: FetchAnswer) -> dict[str, Any]:
        """Return the part of the response for the group."""
        topics = []
        if answer.error_code is ErrorCode.NONE:
            topics = self._all(answer) if self._group.topics is None else self._asked(answer)
            topics += [
                {
                    "topic_id": topic.topic_id,
                    "partitions": [_failed(number, ErrorCode.UNKNOWN_TOPIC_ID) for number in topic.partition_indexes],
                }
                for topic in self._unknown
            ]
        elif self._version < _WHOLE_ERROR:
            topics = [
                {"name": name, "partitions": [_failed(number, answer.error_code) for number in topic.partition_indexes]}
                for name, topic in self._known
            ]
        return {"group_id": self._group.group_id, "error_code": answer.error_code, "topics": topics}

    def _asked(self, answer: FetchAnswer) -> list[dict[str, Any]]:
        found = iter(answer.offsets)
        return [
            {
                "name": name,
                "topic_id": getattr(topic, "topic_id", b""),
                "partitions": [_partition(next(found)) for _ in topic.partition_indexes],
            }
            for name, topic in self._known
        ]

    def _all(self, answer: FetchAnswer) -> list[dict[str, Any]]:
        topics = []
        for name, several in groupby(answer.offsets, lambda each: each.topic):
            offsets = list(several)
            topic_id = offsets[0].topic_id.bytes
            if not any(topic_id):
                known = self._broker.image.topic(name)
                topic_id = topic_id if known is None else known.id
            if self._version < _IDS or any(topic_id):  # without an id it cannot be named
                topics.append(
                    {"name": name, "topic_id": topic_id, "partitions": [_partition(each) for each in offsets]}
                )
        return topics


def _partition(found: FetchedOffset) -> dict[str, Any]:
    return {
        "partition_index": found.partition,
        "committed_offset": found.offset,
        "committed_leader_epoch": found.leader_epoch,
        "metadata": found.metadata,
        "error_code": found.error_code,
    }


def _failed(partition: int, code: ErrorCode) -> dict[str, Any]:
    return _partition(FetchedOffset("", partition, error_code=code))
