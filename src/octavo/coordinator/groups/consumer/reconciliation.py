"""How a member gets from the partitions that it has to those that it shall have: `reconcile`.

A member keeps what is in both. First it has to give the rest back, in its old epoch; only then it gets what it lacks,
in the epoch of the target, as far as no other member has that. `_NEXT` says what happens in each state.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final, NamedTuple
from uuid import UUID

from octavo.coordinator.groups.consumer.assignors.assignor import Assignment
from octavo.coordinator.groups.consumer.group import ConsumerMember, Held, MemberState
from octavo.coordinator.groups.consumer.requests import Refused
from octavo.errors import ErrorCode

Owned = Mapping[UUID, Collection[int]] | None  # what a member says that it has; None: as before


class Aim(NamedTuple):
    """Where a member shall get to.

    is_held: whether some member has a partition
    topics: what the member subscribes to
    is_subscription_changed: whether it has just changed that
    """

    epoch: int
    target: Assignment
    owned: Owned
    is_held: Callable[[UUID, int], bool]
    topics: Collection[UUID]
    is_subscription_changed: bool = False


def reconcile(member: ConsumerMember, aim: Aim) -> ConsumerMember:
    """Return the member after its next step; the same one if it cannot go on."""
    return _NEXT[member.state](member, aim)


def _from_stable(member: ConsumerMember, aim: Aim) -> ConsumerMember:
    if member.member_epoch != aim.epoch:
        return _step(member, aim)
    return _drop_unsubscribed(member, aim) if aim.is_subscription_changed else member


def _from_unrevoked(member: ConsumerMember, aim: Aim) -> ConsumerMember:
    if _owns_any(aim.owned, member.pending_revocation):
        return _drop_unsubscribed(member, aim) if aim.is_subscription_changed else member
    return _step(member, aim)


def _from_unknown(member: ConsumerMember, aim: Aim) -> ConsumerMember:
    if aim.owned is None or aim.owned:
        message = (
            "The consumer group member is in a unknown state. The member must abandon all its partitions and rejoin."
        )
        raise Refused(ErrorCode.FENCED_MEMBER_EPOCH, message)
    return _step(member._replace(member_epoch=aim.epoch), aim)


def _step(member: ConsumerMember, aim: Aim) -> ConsumerMember:
    kept: dict[UUID, dict[int, int]] = {}
    revoked: dict[UUID, dict[int, int]] = {}
    for topic, partitions in member.assigned.items():
        wanted = aim.target.get(topic, frozenset()) if topic in aim.topics else frozenset()
        for partition, epoch in partitions.items():
            (kept if partition in wanted else revoked).setdefault(topic, {})[partition] = epoch
    if revoked and _owns_any(aim.owned, revoked):
        return _moved(member, MemberState.UNREVOKED_PARTITIONS, member.member_epoch, kept, revoked)
    is_all = True
    for topic, wanted in aim.target.items():
        for partition in wanted if topic in aim.topics else ():
            if partition in kept.get(topic, {}):
                continue
            if aim.is_held(topic, partition) and partition not in member.pending_revocation.get(topic, {}):
                is_all = False
            else:
                kept.setdefault(topic, {})[partition] = aim.epoch
    return _moved(member, MemberState.STABLE if is_all else MemberState.UNRELEASED_PARTITIONS, aim.epoch, kept, {})


def _drop_unsubscribed(member: ConsumerMember, aim: Aim) -> ConsumerMember:
    """Have the member give back the topics that it does not subscribe to any more."""
    dropped = {topic: partitions for topic, partitions in member.assigned.items() if topic not in aim.topics}
    if not dropped:
        return member
    kept = {topic: partitions for topic, partitions in member.assigned.items() if topic in aim.topics}
    pending = dict(member.pending_revocation)
    for topic, partitions in dropped.items():
        pending[topic] = {**pending.get(topic, {}), **partitions}
    if _owns_any(aim.owned, pending):
        return _moved(member, MemberState.UNREVOKED_PARTITIONS, member.member_epoch, kept, pending)
    return _moved(member, member.state, member.member_epoch, kept, member.pending_revocation)


def _moved(member: ConsumerMember, state: MemberState, epoch: int, assigned: Held, pending: Held) -> ConsumerMember:
    return member._replace(
        state=state,
        member_epoch=epoch,
        previous_member_epoch=member.member_epoch,
        assigned=assigned,
        pending_revocation=pending,
    )


def _owns_any(owned: Owned, partitions: Held) -> bool:
    """Return whether a member may still have one of some partitions."""
    if owned is None:
        return True
    return any(partition in partitions.get(topic, {}) for topic, numbers in owned.items() for partition in numbers)


_NEXT: Final[dict[MemberState, Callable[[ConsumerMember, Aim], ConsumerMember]]] = {
    MemberState.STABLE: _from_stable,
    MemberState.UNREVOKED_PARTITIONS: _from_unrevoked,
    MemberState.UNRELEASED_PARTITIONS: _step,
    MemberState.UNKNOWN: _from_unknown,
}
