"""OffsetCommit (8): commit offsets of a group.

Versions: 2 to 4 say for how long offsets are kept, 6 has leader epochs, 7 static members, 8 is flexible, 9 is also for
groups of the consumer protocol, 10 names topics by their ids.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from octavo.broker.answers import Answer, Parts
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import OFFSET_COMMIT
from octavo.broker.wire.messages import Struct, write_response
from octavo.coordinator.groups.requests import CommitAnswer, CommitRequest, CommittedOffset
from octavo.errors import ErrorCode

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_IDS: Final = 10  # the first version that names topics by their ids
_NEVER: Final = -1

Key = str | bytes
Errors = list[tuple[int, ErrorCode]]


def offset_commit(broker: Broker, request: Request) -> Answer:
    """Answer an OffsetCommit request."""
    asked, version = request.read(), request.version
    sorted_ = SortedOffsets(broker, asked.topics, by_ids=version >= _IDS)

    def write(answer: CommitAnswer) -> Parts:
        content = {"throttle_time_ms": 0, "topics": sorted_.results(answer)}
        return [write_response(OFFSET_COMMIT, version, content)]

    if not sorted_.offsets:
        return write(CommitAnswer(ErrorCode.NONE))
    commit = CommitRequest(
        asked.group_id,
        sorted_.offsets,
        asked.member_id,
        asked.group_instance_id,
        asked.generation_id_or_member_epoch,
        getattr(asked, "retention_time_ms", _NEVER),
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

    def __init__(self, broker: Broker, topics: Iterable[Struct], *, by_ids: bool = False) -> None:
        self._refused: Final[dict[Key, Errors]] = {}
        self._valid: Final[list[tuple[Key, list[CommittedOffset]]]] = []
        for topic in topics:
            key: Key = topic.topic_id if by_ids else topic.name
            offsets, errors = _sorted(broker, key, topic)
            if errors is not None:
                self._refused.setdefault(key, []).extend(errors)
            if offsets:
                self._valid.append((key, offsets))
        self.offsets: Final = [each for _, offsets in self._valid for each in offsets]

    def results(self, answer: CommitAnswer) -> list[dict[str, Any]]:
        """Return the results. The errors come first, and as in Kafka other results join theirs."""
        codes = iter(answer.error_codes)
        topics = [(key, list(errors)) for key, errors in self._refused.items()]
        for key, offsets in self._valid:
            results = [(each.partition, next(codes, answer.error_code)) for each in offsets]
            known = next((errors for other, errors in topics if other == key), None) if self._refused else None
            if known is None:
                topics.append((key, results))
            else:
                known += results
        return [_topic(*each) for each in topics]


def _sorted(broker: Broker, key: Key, topic: Struct) -> tuple[list[CommittedOffset], Errors | None]:
    """Return the offsets for partitions that exist, and the errors for others, if there are any."""
    found = broker.image.topic(key)
    if found is None:
        code = ErrorCode.UNKNOWN_TOPIC_ID if isinstance(key, bytes) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return [], [(each.partition_index, code) for each in topic.partitions]
    topic_id = UUID(bytes=found.id)
    offsets = [
        CommittedOffset(
            found.name,
            each.partition_index,
            each.committed_offset,
            each.committed_leader_epoch,
            each.committed_metadata or "",
            topic_id,
        )
        for each in topic.partitions
        if each.partition_index in found.partitions
    ]
    unknown = [each.partition_index for each in topic.partitions if each.partition_index not in found.partitions]
    return offsets, [(partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for partition in unknown] or None


def _topic(key: Key, results: Errors) -> dict[str, Any]:
    partitions = [{"partition_index": partition, "error_code": code} for partition, code in results]
    return {"topic_id" if isinstance(key, bytes) else "name": key, "partitions": partitions}
