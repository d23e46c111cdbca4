"""Replicas that are in another directory than the metadata say."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID, uuid4

from octavo.cluster.directory_assignments import MAX_PARTITIONS, DirectoryAssignments
from octavo.cluster.messages import TopicIdPartition
from octavo.errors import ErrorCode
from octavo.schemas.metadata.topics import PartitionRecord

NODE = 3
HERE, LOST = uuid4(), uuid4()
TOPIC = uuid4()


def place(number: int) -> TopicIdPartition:
    return TopicIdPartition(TOPIC, number)


def record(*directories: UUID, replicas: Sequence[int] = (1, NODE)) -> PartitionRecord:
    return PartitionRecord(
        topic_id=TOPIC,
        replicas=tuple(replicas),
        isr=tuple(replicas),
        removing_replicas=(),
        adding_replicas=(),
        directories=directories,
    )


def test_nothing_is_told_if_the_controller_knows() -> None:
    assignments = DirectoryAssignments(NODE, HERE)
    assignments.update(place(0), record(LOST, HERE))
    assignments.update(place(1), record(LOST, LOST, replicas=(1, 2)))
    assert assignments.next_ms is None
    assert assignments.next_request(0) == []


def test_a_replaced_disk() -> None:
    assignments = DirectoryAssignments(NODE, HERE)
    assignments.update(place(0), record(HERE, LOST))
    assignments.update(place(1), record())  # of a time without directories
    assert assignments.next_request(5) == [place(0), place(1)]
    assert assignments.next_ms is None
    assert assignments.next_request(5) == []
    assignments.answered(0, {place(0): 0, place(1): 0}, 6)
    assert assignments.next_request(7) == []


def test_the_metadata_are_faster_than_the_answer() -> None:
    assignments = DirectoryAssignments(NODE, HERE)
    assignments.update(place(0), record(LOST, LOST))
    assert assignments.next_request(0) == [place(0)]
    assignments.update(place(0), record(LOST, HERE))
    assignments.failed(0)
    assert assignments.next_request(1000) == []


def test_a_partition_is_deleted() -> None:
    assignments = DirectoryAssignments(NODE, HERE)
    assignments.update(place(0), record(LOST, LOST))
    assignments.update(place(0), None)
    assert assignments.next_ms is None


def test_what_is_refused_is_asked_again_after_the_others() -> None:
    assignments = DirectoryAssignments(NODE, HERE)
    for number in range(MAX_PARTITIONS + 2):
        assignments.update(place(number), record(LOST, LOST))
    first = assignments.next_request(0)
    assert first == [place(number) for number in range(MAX_PARTITIONS)]
    assignments.answered(0, dict.fromkeys(first, 0) | {place(7): int(ErrorCode.UNKNOWN_TOPIC_ID)}, 0)
    assert assignments.next_request(99) == []
    assert assignments.next_request(100) == [place(MAX_PARTITIONS), place(MAX_PARTITIONS + 1), place(7)]


def test_the_controller_is_not_asked_ever_faster() -> None:
    assignments = DirectoryAssignments(NODE, HERE)
    assignments.update(place(0), record(LOST, LOST))
    now_ms, waits = 0, []
    for _ in range(12):
        assert assignments.next_request(now_ms) == [place(0)]
        assignments.answered(ErrorCode.STALE_BROKER_EPOCH, {}, now_ms)
        assert assignments.next_ms is not None
        waits.append(assignments.next_ms - now_ms)
        now_ms = assignments.next_ms
    assert waits[:4] == [100, 200, 400, 800]
    assert waits[-1] == 10_000
    assert assignments.next_request(now_ms) == [place(0)]
    assignments.answered(0, {}, now_ms)  # an answer without the partition
    assert assignments.next_ms is not None
    assert assignments.next_ms > now_ms
