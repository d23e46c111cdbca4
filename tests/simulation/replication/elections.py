"""How a controller changes one partition: who leads, who is in sync, and who may lead if nobody is (KIP-966)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from octavo.schemas.metadata.topics import PartitionRecord

NOBODY = -1
RECOVERED, RECOVERING = 0, 1


def elr_of(record: PartitionRecord) -> tuple[int, ...]:
    """Return the eligible leader replicas of a partition."""
    return record.eligible_leader_replicas or ()


def last_known_of(record: PartitionRecord) -> tuple[int, ...]:
    """Return the last leader of a partition that has none."""
    return record.last_known_elr or ()


def changed(
    now: PartitionRecord,
    isr: tuple[int, ...],
    is_acceptable: Callable[[int], bool],
    *,
    min_isr: int,
    unclean: Collection[int] = (),
    recovery_state: int | None = None,
    is_preferred: bool = False,
) -> PartitionRecord:
    """Return the partition with other replicas in sync, and a leader if there can be one; `now` if nothing changes.

    unclean: replicas that may have lost something
    recovery_state: what an AlterPartition asks for
    """
    elr: tuple[int, ...] = ()
    if len(isr) < min(min_isr, len(now.replicas)):
        candidates = {*elr_of(now), *now.isr}
        elr = tuple(each for each in now.replicas if each in candidates - {*isr, *unclean})
    leader, is_clean = _elect(now, isr, elr, is_acceptable, is_preferred=is_preferred)
    state = now.leader_recovery_state if recovery_state is None else recovery_state
    is_moved = leader != now.leader
    if is_moved and leader in elr:
        isr, elr = (leader,), tuple(each for each in elr if each != leader)
    elif is_moved and not is_clean:
        isr, elr, state = (leader,), (), RECOVERING
    last_known = last_known_of(now)
    if is_moved and leader == NOBODY and not last_known:
        last_known = (now.leader,)
    elif is_moved and leader != NOBODY:
        last_known = ()
    after = replace(
        now,
        isr=isr,
        leader=leader,
        leader_recovery_state=state,
        eligible_leader_replicas=elr,
        last_known_elr=last_known,
    )
    if after == now:
        return now
    return replace(after, partition_epoch=now.partition_epoch + 1, leader_epoch=now.leader_epoch + is_moved)


def _elect(
    now: PartitionRecord,
    isr: tuple[int, ...],
    elr: tuple[int, ...],
    is_acceptable: Callable[[int], bool],
    *,
    is_preferred: bool,
) -> tuple[int, bool]:
    """Return who leads, and whether he has everything that was committed."""
    valid = [each for each in now.replicas if each in (isr or elr) and is_acceptable(each)]
    if is_preferred and now.replicas[0] in valid:
        return now.replicas[0], True
    if now.leader in valid:
        return now.leader, True
    if valid:
        return valid[0], True
    last_known = last_known_of(now)
    if not isr and not elr and len(last_known) == 1 and is_acceptable(last_known[0]):
        return last_known[0], False
    return NOBODY, True
