"""OffsetFetch (9): the offsets that groups have committed.

Versions: 2 can ask for all topics and has an error for the whole, 5 has leader epochs, 6 is flexible, 7 can wait for
transactions, 8 is for several groups, 9 is also for groups of the consumer protocol, 10 names topics by their ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby, islice
from typing import TYPE_CHECKING, Final
from uuid import UUID

from octavo.broker.answers import Later, Parts
from octavo.broker.repetition import refuse_repetition
from octavo.broker.request import Request
from octavo.broker.wire.messages import Struct
from octavo.broker.wire.offset_fetch import (
    GROUPS,
    TOPIC_IDS,
    WHOLE_ERROR,
    GroupOffsets,
    PartitionOffset,
    TopicKey,
    write_offset_fetch,
)
from octavo.coordinator.groups.requests import NO_OFFSET, FetchAnswer, FetchedOffset, FetchRequest
from octavo.errors import ErrorCode
from octavo.schemas.primitives import NO_UUID

if TYPE_CHECKING:
    from octavo.broker.broker import Broker
    from octavo.coordinator.groups.group_shard import GroupShard

_NO_EPOCH: Final = -1
_Topics = list[tuple[TopicKey, list[PartitionOffset]]]


def offset_fetch(broker: Broker, request: Request) -> Parts | Later:
    """Answer an OffsetFetch request."""
    asked, version = request.read(), request.version
    groups: tuple[Struct, ...] = asked.groups if version >= GROUPS else (asked,)
    wanted = [_Wanted(broker, version, group) for group in groups]

    def fetch(each: _Wanted) -> Callable[[GroupShard], FetchAnswer]:
        question = each.request(is_stable=asked.require_stable)
        return lambda shard: shard.offsets.fetch(question)

    def refuse(group_id: str, code: ErrorCode) -> FetchAnswer:
        return FetchAnswer(code)

    def write(answers: list[FetchAnswer]) -> Parts:
        offsets = [each.offsets(answer) for each, answer in zip(wanted, answers, strict=True)]
        return [write_offset_fetch(version, offsets)]

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
            if version < TOPIC_IDS:
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
            refuse_repetition([(name, number) for name, topic in self._known for number in topic.partition_indexes])
            partitions = []
            for name, topic in self._known:
                topic_id = UUID(bytes=topic.topic_id) if self._version >= TOPIC_IDS else NO_UUID
                partitions += [(name, number, topic_id) for number in topic.partition_indexes]
        return FetchRequest(
            group.group_id,
            partitions,
            getattr(group, "member_id", None),
            getattr(group, "member_epoch", -1),
            require_stable=is_stable,
        )

    def offsets(self, answer: FetchAnswer) -> GroupOffsets:
        """Return the part of the response for the group."""
        topics: _Topics = []
        if answer.error_code is ErrorCode.NONE:
            topics = self._all(answer) if self._group.topics is None else self._asked(answer)
            code = ErrorCode.UNKNOWN_TOPIC_ID
            topics += [(topic.topic_id, _failed(topic.partition_indexes, code)) for topic in self._unknown]
        elif self._version < WHOLE_ERROR:
            topics = [(name, _failed(topic.partition_indexes, answer.error_code)) for name, topic in self._known]
        return GroupOffsets(self.group_id, answer.error_code, topics)

    def _asked(self, answer: FetchAnswer) -> _Topics:
        found = iter(answer.offsets)
        return [
            (
                name if self._version < TOPIC_IDS else topic.topic_id,
                _told(islice(found, len(topic.partition_indexes))),
            )
            for name, topic in self._known
        ]

    def _all(self, answer: FetchAnswer) -> _Topics:
        topics: _Topics = []
        for name, several in groupby(answer.offsets, lambda each: each.topic):
            offsets = list(several)
            if self._version < TOPIC_IDS:
                topics.append((name, _told(offsets)))
                continue
            topic_id = offsets[0].topic_id.bytes
            if not any(topic_id):
                known = self._broker.image.topic(name)
                topic_id = topic_id if known is None else known.id
            if any(topic_id):  # without an id it cannot be named
                topics.append((topic_id, _told(offsets)))
        return topics


def _told(found: Iterable[FetchedOffset]) -> list[PartitionOffset]:
    return [
        (partition, offset, leader_epoch, metadata, code)
        for _, partition, offset, leader_epoch, metadata, code, _ in found
    ]


def _failed(partitions: Iterable[int], code: ErrorCode) -> list[PartitionOffset]:
    return [(partition, NO_OFFSET, _NO_EPOCH, "", code) for partition in partitions]
