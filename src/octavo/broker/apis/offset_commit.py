"""OffsetCommit (8): commit offsets of a group.

Versions: 2 to 4 say for how long offsets are kept, 6 has leader epochs, 7 static members, 8 is flexible, 9 is also for
groups of the consumer protocol, 10 names topics by their ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from uuid import UUID

from octavo.broker.answers import Answer, Parts
from octavo.broker.request import Request
from octavo.broker.wire.offset_commit import (
    PartitionOffset,
    PartitionResult,
    TopicKey,
    read_offset_commit,
    write_offset_commit,
)
from octavo.coordinator.groups.requests import CommitAnswer, CommitRequest, CommittedOffset
from octavo.errors import ErrorCode

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_NEW: Final = tuple.__new__  # what a named tuple's own constructor does, without a Python call


def offset_commit(broker: Broker, request: Request) -> Answer:
    """Answer an OffsetCommit request."""
    version = request.version
    asked = read_offset_commit(request.body, version)
    sorted_ = SortedOffsets(broker, asked.topics)

    def write(answer: CommitAnswer) -> Parts:
        return [write_offset_commit(version, sorted_.results(answer))]

    if not sorted_.offsets:
        return write(CommitAnswer(ErrorCode.NONE))
    commit = CommitRequest(
        asked.group_id,
        sorted_.offsets,
        asked.member_id,
        asked.group_instance_id,
        asked.generation_id_or_member_epoch,
        asked.retention_time_ms,
        version=version,
    )
    return broker.coordinators.run(
        commit.group_id,
        lambda shard, ticket: shard.answer(ticket, shard.offsets.commit(commit)),
        write,
        CommitAnswer,
    )


class SortedOffsets:
    """The offsets of a request for partitions that exist, and the errors for others."""

    def __init__(self, broker: Broker, topics: Iterable[tuple[TopicKey, Sequence[PartitionOffset]]]) -> None:
        self._refused: Final[dict[TopicKey, list[PartitionResult]]] = {}
        self._valid: Final[list[tuple[TopicKey, list[CommittedOffset]]]] = []
        for key, wanted in topics:
            offsets, errors = _sorted(broker, key, wanted)
            if errors is not None:
                self._refused.setdefault(key, []).extend(errors)
            if offsets:
                self._valid.append((key, offsets))
        self.offsets: Final = [each for _, offsets in self._valid for each in offsets]

    def results(self, answer: CommitAnswer) -> list[tuple[TopicKey, list[PartitionResult]]]:
        """Return the results. The errors come first, and as in Kafka other results join theirs."""
        codes = iter(answer.error_codes)
        topics = [(key, list(errors)) for key, errors in self._refused.items()]
        for key, offsets in self._valid:
            results: list[PartitionResult] = [(each.partition, next(codes, answer.error_code)) for each in offsets]
            known = next((errors for other, errors in topics if other == key), None) if self._refused else None
            if known is None:
                topics.append((key, results))
            else:
                known += results
        return topics


def _sorted(
    broker: Broker, key: TopicKey, wanted: Sequence[PartitionOffset]
) -> tuple[list[CommittedOffset], list[PartitionResult] | None]:
    """Return the offsets for partitions that exist, and the errors for others, if there are any.

    No error at all is an error list, too, if the topic does not exist: the answer names it.
    """
    found = broker.image.topic(key)
    if found is None:
        code = ErrorCode.UNKNOWN_TOPIC_ID if isinstance(key, bytes) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return [], [(partition, code) for partition, *_ in wanted]
    name, known, topic_id = found.name, found.partitions, _uuid(found.id)
    offsets = [
        _NEW(CommittedOffset, (name, partition, offset, leader_epoch, metadata or "", topic_id))
        for partition, offset, leader_epoch, metadata in wanted
        if partition in known
    ]
    if len(offsets) == len(wanted):
        return offsets, None
    unknown = [partition for partition, *_ in wanted if partition not in known]
    return offsets, [(partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for partition in unknown]


@lru_cache(1024)
def _uuid(topic_id: bytes) -> UUID:
    return UUID(bytes=topic_id)
