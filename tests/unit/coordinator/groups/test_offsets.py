"""Committed offsets: commits in and out of transactions, expiry, deletion, and failed writes."""

from __future__ import annotations

import tracemalloc
from typing import Any
from uuid import UUID

import pytest

from octavo.coordinator.groups.classic.group import ClassicGroup
from octavo.coordinator.groups.requests import CommitRequest, CommittedOffset, DeleteRequest, FetchRequest
from octavo.coordinator.shard import Producer
from octavo.errors import ErrorCode
from octavo.schemas.primitives import NO_UUID
from tests.unit.coordinator.groups.running import Running

DAY_MS = 86_400_000
PRODUCER = Producer(7, 0)
ONE, TWO = UUID(int=1), UUID(int=2)


@pytest.fixture(params=[False, True], ids=["as it is", "read from the log"])
def running(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Running:
    """A shard; once with all its state lost before each question."""
    made = Running()
    if request.param:
        ask = made.committed

        def committed(**more: Any) -> Any:
            made.reload()
            return ask(**more)

        monkeypatch.setattr(made, "committed", committed)
        made.do(lambda shard: shard.loaded())
    else:
        made.do(lambda shard: shard.loaded())
    return made


def test_a_commit_is_told(running: Running) -> None:
    assert running.committed() == -1
    assert running.commit(5) == (ErrorCode.NONE, [ErrorCode.NONE])
    assert running.committed() == 5
    running.commit(6)
    assert running.committed() == 6
    answer = running.do(lambda shard: shard.offsets.fetch(FetchRequest("g", None)))
    assert [each[:6] for each in answer.offsets] == [("t", 0, 6, 3, "note", ErrorCode.NONE)]


def test_a_commit_that_cannot_be_written_has_not_happened(running: Running) -> None:
    running.commit(5, fails=True)
    assert "g" not in running.shard.groups
    assert running.committed() == -1


def test_who_claims_to_be_a_member_needs_a_group(running: Running) -> None:
    assert running.commit(5, generation_id_or_member_epoch=1).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert running.commit(5, generation_id_or_member_epoch=1, version=8).error_code == ErrorCode.ILLEGAL_GENERATION
    assert running.log == []


def test_long_notes_are_refused() -> None:
    running = Running(offset_metadata_max_bytes=3)
    assert running.commit(5) == (ErrorCode.NONE, [ErrorCode.OFFSET_METADATA_TOO_LARGE])
    assert running.committed() == -1


@pytest.mark.parametrize("metadata", ["\U0001f600" * 2, "é" * 4])
def test_the_length_of_notes_is_that_of_utf_16(metadata: str) -> None:
    running = Running(offset_metadata_max_bytes=4)
    assert running.commit(5, metadata=metadata) == (ErrorCode.NONE, [ErrorCode.NONE])
    longer = metadata + metadata[0]
    assert running.commit(6, metadata=longer) == (ErrorCode.NONE, [ErrorCode.OFFSET_METADATA_TOO_LARGE])


def test_an_offset_can_be_kept_as_long_as_a_number_says(running: Running) -> None:
    assert running.commit(5, retention_time_ms=2**63 - 1, version=2) == (ErrorCode.NONE, [ErrorCode.NONE])
    running.pass_time(8 * DAY_MS)
    assert running.committed() == 5


def test_a_transaction_counts_when_it_is_committed(running: Running) -> None:
    running.commit(5)
    running.commit(8, producer=PRODUCER)
    assert running.committed() == 5
    assert running.committed(stable=True) == ErrorCode.UNSTABLE_OFFSET_COMMIT
    running.marker(PRODUCER, commit=True)
    assert running.committed(stable=True) == 8


def test_a_transaction_that_is_aborted_leaves_nothing(running: Running) -> None:
    running.commit(8, producer=PRODUCER)
    running.marker(PRODUCER, commit=False)
    assert running.committed(stable=True) == -1
    running.marker(PRODUCER, commit=True)
    assert running.committed() == -1


def test_the_last_record_counts_and_not_the_last_marker(running: Running) -> None:
    other = Producer(8, 0)
    running.commit(3, producer=PRODUCER)
    running.commit(4, producer=other)
    running.commit(9)
    running.marker(PRODUCER, commit=True)
    assert running.committed() == 9
    assert running.committed(stable=True) == ErrorCode.UNSTABLE_OFFSET_COMMIT
    running.marker(other, commit=True)
    assert running.committed(stable=True) == 9


def test_an_offset_of_an_earlier_topic_is_not_told(running: Running) -> None:
    running.commit(5, topic_id=ONE)
    assert running.committed(topic_id=ONE) == 5
    assert running.committed(topic_id=TWO) == -1
    assert running.committed() == 5


def test_a_deleted_topic_takes_its_offsets_along(running: Running) -> None:
    running.commit(5, topic_id=ONE)
    running.commit(6, topic="other")
    running.commit(7, group="h", topic_id=TWO)
    running.commit(8, group="i", producer=PRODUCER)
    running.do(lambda shard: shard.offsets.forget_topic("t", ONE))
    running.marker(PRODUCER, commit=True)
    assert [running.committed(group=each) for each in "ghi"] == [-1, 7, -1]
    assert running.committed(topic="other") == 6


def test_offsets_are_deleted_unless_somebody_subscribes(running: Running) -> None:
    running.commit(5)
    running.commit(6, topic="used")
    group = running.shard.groups["g"]
    assert isinstance(group, ClassicGroup)
    group.subscribed_topics = frozenset({"used"})
    asked = DeleteRequest("g", [("t", 0), ("used", 0), ("t", 9)])
    codes = [ErrorCode.NONE, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE]
    assert running.do(lambda shard: shard.offsets.delete(asked)) == (ErrorCode.NONE, codes)
    assert (running.committed(), running.committed(topic="used")) == (-1, 6)
    gone = running.do(lambda shard: shard.offsets.delete(DeleteRequest("none", [("t", 0)])))
    assert gone.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_expire(running: Running) -> None:
    running.commit(5)
    running.commit(6, topic="short", retention_time_ms=1000, version=2)
    running.commit(7, topic="pending", producer=PRODUCER)
    running.pass_time(600_000)
    assert (running.committed(), running.committed(topic="short")) == (5, -1)
    running.pass_time(7 * DAY_MS)
    assert running.committed() == -1
    running.marker(PRODUCER, commit=True)
    assert running.committed(topic="pending") == 7


@pytest.mark.parametrize("producer", [None, PRODUCER])
def test_a_commit_changes_what_its_records_say(producer: Producer | None) -> None:
    running = Running(offset_metadata_max_bytes=4)
    ids = [NO_UUID, UUID(int=7)]
    offsets = [
        CommittedOffset(topic, number, 100 + number, number - 1, "note" * (number % 3), ids[number % 2])
        for topic in ("t", "u")
        for number in (0, 1, 2, 3, 1)
    ]
    answer = running.do(lambda shard: shard.offsets.commit(CommitRequest("g", offsets, producer=producer)))
    fine, long = ErrorCode.NONE, ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert answer.error_codes == [fine, fine, long, fine, fine] * 2
    before = running.shard.offsets
    running.reload()
    after = running.shard.offsets
    assert (before._groups, before._pending, before._open) == (after._groups, after._pending, after._open)
    assert [partition for _, partition, _ in after._everything()] == [
        ("t", 0),
        ("t", 1),
        ("t", 3),
        ("u", 0),
        ("u", 1),
        ("u", 3),
    ]


def test_a_transaction_with_many_offsets_takes_memory_for_each_of_them_only() -> None:
    running = Running()
    offsets = [CommittedOffset("t", number, 1, -1, "", NO_UUID) for number in range(2_000)]
    tracemalloc.start()
    try:
        running.do(lambda shard: shard.offsets.commit(CommitRequest("g", offsets, producer=PRODUCER)))
        running.marker(PRODUCER, commit=True)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert running.committed() == 1
    assert peak < 16 << 20
