"""The table of reconciliation: what a member gets next."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

import pytest

from octavo.coordinator.groups.consumer.group import ConsumerMember, MemberState
from octavo.coordinator.groups.consumer.reconciliation import Aim, reconcile
from octavo.coordinator.groups.consumer.requests import Refused
from octavo.errors import ErrorCode

T = UUID(int=1)
STABLE, UNREVOKED = MemberState.STABLE, MemberState.UNREVOKED_PARTITIONS
UNRELEASED, UNKNOWN = MemberState.UNRELEASED_PARTITIONS, MemberState.UNKNOWN


def held(*partitions: int, epoch: int = 5) -> Mapping[UUID, Mapping[int, int]]:
    return {T: dict.fromkeys(partitions, epoch)} if partitions else {}


@pytest.mark.parametrize(
    ("state", "has", "pending", "target", "owned", "elsewhere", "expected"),
    [
        # nothing to give back
        (STABLE, (0,), (), (0,), None, (), (STABLE, 6, (0,), ())),
        (STABLE, (0,), (), (0, 1), None, (), (STABLE, 6, (0, 1), ())),
        (STABLE, (0,), (), (0, 1, 2), None, (1,), (UNRELEASED, 6, (0, 2), ())),
        (STABLE, (0,), (), (0, 1), None, (1,), (UNRELEASED, 6, (0,), ())),
        # something to give back
        (STABLE, (0, 1), (), (0, 2), None, (), (UNREVOKED, 5, (0,), (1,))),
        (STABLE, (0, 1), (), (0, 2), (0, 1), (), (UNREVOKED, 5, (0,), (1,))),
        (STABLE, (0, 1), (), (0, 2), (0,), (), (STABLE, 6, (0, 2), ())),
        (STABLE, (0, 1), (), (), (), (), (STABLE, 6, (), ())),
        # giving back
        (UNREVOKED, (0,), (1,), (0, 2), None, (), (UNREVOKED, 5, (0,), (1,))),
        (UNREVOKED, (0,), (1,), (0, 2), (0, 1), (), (UNREVOKED, 5, (0,), (1,))),
        (UNREVOKED, (0,), (1,), (0, 2), (0,), (1,), (STABLE, 6, (0, 2), ())),
        (UNREVOKED, (0,), (1,), (0, 1), (0,), (1,), (STABLE, 6, (0, 1), ())),  # it may have it again after all
        (UNREVOKED, (0,), (1,), (0, 2), (0,), (2,), (UNRELEASED, 6, (0,), ())),
        # waiting for others
        (UNRELEASED, (0,), (), (0, 1), None, (1,), (UNRELEASED, 6, (0,), ())),
        (UNRELEASED, (0,), (), (0, 1), None, (), (STABLE, 6, (0, 1), ())),
        (UNRELEASED, (0, 3), (), (0, 1), None, (), (UNREVOKED, 5, (0,), (3,))),
        # of a Kafka to come
        (UNKNOWN, (0,), (), (0, 1), (), (), (STABLE, 6, (0, 1), ())),
    ],
)
def test_the_next_step(
    state: MemberState,
    has: tuple[int, ...],
    pending: tuple[int, ...],
    target: tuple[int, ...],
    owned: tuple[int, ...] | None,
    elsewhere: tuple[int, ...],
    expected: tuple[MemberState, int, tuple[int, ...], tuple[int, ...]],
) -> None:
    member = ConsumerMember(
        member_id="m",
        member_epoch=5,
        state=state,
        subscribed_topic_names=frozenset({"t"}),
        assigned=held(*has),
        pending_revocation=held(*pending),
    )
    aim = Aim(
        6,
        {T: frozenset(target)} if target else {},
        None if owned is None else {T: owned} if owned else {},
        lambda topic, partition: partition in (*has, *pending, *elsewhere),
        {T},
    )
    next_state, epoch, assigned, revoked = expected
    moved = reconcile(member, aim)
    assert (moved.state, moved.member_epoch) == (next_state, epoch)
    assert set(moved.assigned.get(T, {})) == set(assigned)
    assert set(moved.pending_revocation.get(T, {})) == set(revoked)
    for partition, since in moved.assigned.get(T, {}).items():
        assert since == (5 if partition in has else 6)


def test_nothing_happens_in_the_epoch_of_the_target() -> None:
    member = ConsumerMember(member_id="m", member_epoch=6, assigned=held(0))
    aim = Aim(6, {T: frozenset({0, 1})}, None, lambda topic, partition: False, {T})
    assert reconcile(member, aim) is member


@pytest.mark.parametrize("state", [STABLE, UNREVOKED])
def test_topics_that_are_not_subscribed_to_any_more_are_given_back(state: MemberState) -> None:
    other = UUID(int=2)
    member = ConsumerMember(
        member_id="m",
        member_epoch=6,
        state=state,
        assigned={**held(0), other: {0: 4}},
        pending_revocation=held(1) if state is UNREVOKED else {},
    )
    aim = Aim(6, {T: frozenset({0})}, None, lambda topic, partition: False, {T}, is_subscription_changed=True)
    moved = reconcile(member, aim)
    assert (moved.state, moved.member_epoch, moved.assigned) == (UNREVOKED, 6, held(0))
    assert moved.pending_revocation == {**member.pending_revocation, other: {0: 4}}
    done = reconcile(ConsumerMember(member_id="m", member_epoch=6, assigned={other: {0: 4}}), aim._replace(owned={}))
    assert (done.state, done.assigned, done.pending_revocation) == (STABLE, {}, {})


def test_a_member_in_an_unknown_state_has_to_begin_anew() -> None:
    member = ConsumerMember(member_id="m", member_epoch=5, state=UNKNOWN, assigned=held(0))
    aim = Aim(6, {}, {T: [0]}, lambda topic, partition: False, {T})
    with pytest.raises(Refused) as refused:
        reconcile(member, aim)
    assert refused.value.error_code is ErrorCode.FENCED_MEMBER_EPOCH
