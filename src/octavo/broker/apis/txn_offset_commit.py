"""TxnOffsetCommit (28): commit offsets of a group as part of a transaction.

Versions: 2 has leader epochs, 3 is flexible and has the member, 4 knows TRANSACTION_ABORTABLE, 5 adds the group to the
transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from octavo.broker.answers import Answer, Parts
from octavo.broker.apis.offset_commit import SortedOffsets
from octavo.broker.at_once import at_once_or_later
from octavo.broker.request import Request
from octavo.broker.transactions import is_fenced, verified
from octavo.broker.wire.api_keys import TXN_OFFSET_COMMIT
from octavo.broker.wire.messages import Struct, write_response
from octavo.broker.wire.offset_commit import PartitionOffset, PartitionResult
from octavo.coordinator.groups.requests import CommitAnswer, CommitRequest
from octavo.coordinator.shard import Producer
from octavo.errors import ErrorCode

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_LOADING_SINCE: Final = 2  # the first version whose clients know COORDINATOR_LOAD_IN_PROGRESS
_ABORTABLE_FROM: Final = 4
_ADDS_FROM: Final = 5


def txn_offset_commit(broker: Broker, request: Request) -> Answer:
    """Answer a TxnOffsetCommit request."""
    asked, version = request.read(), request.version
    sorted_ = SortedOffsets(broker, [(topic.name, _offsets(topic)) for topic in asked.topics])

    def write(answer: CommitAnswer) -> Parts:
        if version < _LOADING_SINCE and answer.error_code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            answer = CommitAnswer(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        topics = [{"name": name, "partitions": _partitions(results)} for name, results in sorted_.results(answer)]
        content = {"throttle_time_ms": 0, "topics": topics}
        return [write_response(TXN_OFFSET_COMMIT, version, content)]

    if not sorted_.offsets:
        return write(CommitAnswer(ErrorCode.NONE))
    if not asked.group_id:
        return write(CommitAnswer(ErrorCode.INVALID_GROUP_ID))
    commit = CommitRequest(
        asked.group_id,
        sorted_.offsets,
        asked.member_id,
        asked.group_instance_id,
        asked.generation_id,
        producer=Producer(asked.producer_id, asked.producer_epoch),
    )

    def work() -> Parts:
        return write(_commit(broker, asked.transactional_id, commit, version))

    return at_once_or_later(work)


def _offsets(topic: Struct) -> list[PartitionOffset]:
    return [
        (each.partition_index, each.committed_offset, each.committed_leader_epoch, each.committed_metadata)
        for each in topic.partitions
    ]


def _partitions(results: Iterable[PartitionResult]) -> list[dict[str, Any]]:
    return [{"partition_index": partition, "error_code": code} for partition, code in results]


def _commit(broker: Broker, transactional_id: str, commit: CommitRequest, version: int) -> CommitAnswer:
    partition = broker.coordinators.find_group_partition(commit.group_id)
    assert commit.producer is not None
    if partition is None:
        return CommitAnswer(broker.coordinators.group_error(commit.group_id))
    log = broker.directory.log(*partition)
    if is_fenced(log, commit.producer):
        return CommitAnswer(ErrorCode.INVALID_PRODUCER_EPOCH)
    adds = version >= _ADDS_FROM
    with verified(broker, transactional_id, commit.producer, [partition], adds=adds) as codes:
        code = codes[partition]
        if code is ErrorCode.TRANSACTION_ABORTABLE and version < _ABORTABLE_FROM:
            code = ErrorCode.INVALID_TXN_STATE
        return CommitAnswer(code) if code is not ErrorCode.NONE else broker.coordinators.commit(commit)
