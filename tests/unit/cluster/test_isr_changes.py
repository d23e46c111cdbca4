"""The controller is asked to change the replicas in sync."""

from __future__ import annotations

import pytest

from octavo.cluster.isr_changes import IsrChanges, Settled
from octavo.cluster.leading import IsrChange
from octavo.cluster.messages import (
    AlteredPartition,
    AlterPartitionAnswer,
    AlterPartitionChange,
    AlterPartitionRequest,
    BrokerState,
    TopicIdPartition,
)
from octavo.errors import ErrorCode
from tests.unit.cluster.partitions import A, B

ASKED = AlterPartitionChange(5, 20, (BrokerState(1, 101),))
DONE = AlteredPartition(0, 5, (1,), 21)


def change(partition: TopicIdPartition) -> IsrChange:
    return IsrChange(partition, ASKED, frozenset({1, 2}))


def test_all_changes_that_wait_go_into_one_request() -> None:
    changes = IsrChanges(1)
    assert changes.next_request(101, 0) is None
    a, b = change(A), change(B)
    assert changes.submit(a)
    assert changes.submit(b)
    assert changes.next_request(101, 0) == AlterPartitionRequest(1, 101, {A: ASKED, B: ASKED})
    assert changes.next_request(101, 0) is None
    settled = changes.answered(AlterPartitionAnswer(0, {A: DONE, B: DONE}), 0)
    assert settled == Settled([(a, DONE), (b, DONE)])
    assert settled.answers[0][0] is a
    assert changes.next_request(101, 0) is None


def test_a_partition_has_one_change_and_others_wait_for_the_next_request() -> None:
    changes = IsrChanges(1)
    changes.submit(change(A))
    changes.next_request(101, 0)
    assert not changes.submit(change(A))
    assert changes.submit(change(B))
    assert changes.next_request(101, 0) is None
    changes.answered(AlterPartitionAnswer(0, {A: DONE}), 0)
    assert changes.submit(change(A))
    request = changes.next_request(102, 0)
    assert request is not None
    assert (request.broker_epoch, list(request.partitions)) == (102, [B, A])


@pytest.mark.parametrize(
    ("answer", "is_not_controller"),
    [
        (AlterPartitionAnswer(ErrorCode.STALE_BROKER_EPOCH, {}), False),
        (AlterPartitionAnswer(ErrorCode.NOT_CONTROLLER, {}), True),
        (AlterPartitionAnswer(ErrorCode.UNKNOWN_SERVER_ERROR, {}), False),
        (AlterPartitionAnswer(0, {}), False),
        (AlterPartitionAnswer(0, {A: AlteredPartition(ErrorCode.NOT_CONTROLLER)}), True),
        (AlterPartitionAnswer(0, {A: AlteredPartition(ErrorCode.UNKNOWN_SERVER_ERROR)}), False),
        (None, False),
    ],
)
def test_a_change_is_asked_for_again_until_it_is_answered(
    answer: AlterPartitionAnswer | None, is_not_controller: bool
) -> None:
    changes = IsrChanges(1)
    a = change(A)
    changes.submit(a)
    for now_ms in (0, 50, 100):
        assert changes.next_ms == now_ms
        assert changes.next_request(101, now_ms - 1) is None
        assert changes.next_request(101, now_ms) == AlterPartitionRequest(1, 101, {A: ASKED})
        if answer is None:
            changes.failed(now_ms)
        else:
            settled = changes.answered(answer, now_ms)
            assert (list(settled.answers), settled.is_not_controller) == ([], is_not_controller)
    changes.next_request(101, 150)
    assert changes.answered(AlterPartitionAnswer(0, {A: DONE}), 150) == Settled([(a, DONE)])


@pytest.mark.parametrize("error", [ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.INELIGIBLE_REPLICA])
def test_a_refusal_is_given_to_the_partition(error: ErrorCode) -> None:
    changes = IsrChanges(1)
    a = change(A)
    changes.submit(a)
    changes.next_request(101, 0)
    refused = AlteredPartition(error)
    assert changes.answered(AlterPartitionAnswer(0, {A: refused}), 0) == Settled([(a, refused)])
    assert changes.next_ms is None
